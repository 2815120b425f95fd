/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fork(2), as the parent sees it, of a process with many anonymous mappings.
 *
 * The mappings are all alike and lie one page apart, so that none can merge
 * with the next: alternating protections would leave half of them read-only,
 * which fork copies more cheaply. /proc/self/maps proves the count.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../workload.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif
#define LONGEST_NAME 79 /* the kernel's limit of 80 holds the final NUL */
#define SPARE_VMAS 64	/* the program's own, and some */
#define FIGURE_LEAST_VMAS 512

enum naming { NONE, SAME, DISTINCT, LONGEST };

struct state {
	char *base;
	size_t page, stride; /* bytes from one mapping to the next */
	unsigned int vmas, pages;
	enum naming naming;
	bool random;
	pid_t child;
};

static enum naming naming_of(const struct wl *wl)
{
	if (wl_param_is(wl, "names", "same"))
		return SAME;
	if (wl_param_is(wl, "names", "distinct"))
		return DISTINCT;
	return wl_param_is(wl, "names", "longest") ? LONGEST : NONE;
}

static long long read_number(const char *path, const char *key)
{
	char line[256];
	long long number = -1;
	FILE *f = fopen(path, "re");

	if (!f)
		return -1;
	while (number < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)))
			number = strtoll(line + strlen(key), NULL, 10);
	fclose(f);
	return number;
}

/* Refuses what cannot fit, before the kernel's OOM killer does. */
static int check_limits(struct wl *wl, const struct state *s)
{
	long long limit = read_number("/proc/sys/vm/max_map_count", "");
	long long free_kib = read_number("/proc/meminfo", "MemAvailable:");
	/* Each populated mapping may need a page table of its own when mappings are sparse. */
	long long need_kib = (long long)s->vmas * (s->pages * (long long)s->page / 1024 + 1);

	if (limit >= 0 && s->vmas + SPARE_VMAS > limit)
		return wl_fail(
			wl,
			"vmas=%u needs vm.max_map_count of %u, here it is %lld: raise the sysctl",
			s->vmas, s->vmas + SPARE_VMAS, limit);
	if (free_kib >= 0 && need_kib > free_kib)
		return wl_fail(wl,
			       "vmas=%u with pages=%u needs %lld MiB, %lld are free: give the "
			       "guest more memory",
			       s->vmas, s->pages, need_kib / 1024, free_kib / 1024);
	return 0;
}

static int set_name(const struct state *s, unsigned int i)
{
	char name[LONGEST_NAME + 1] = "kdelta";

	if (s->naming == DISTINCT)
		snprintf(name, sizeof(name), "kdelta-%u", i);
	else if (s->naming == LONGEST)
		memset(name, 'k', LONGEST_NAME); /* the last byte stays NUL */
	return prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, s->base + i * s->stride, s->stride - s->page,
		     name);
}

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

static void populate(const struct state *s, char *at, uint64_t *x)
{
	size_t used = s->pages * s->page, i;

	if (s->random)
		for (i = 0; i < used; i += sizeof(*x)) {
			uint64_t word = next_random(x);

			memcpy(at + i, &word, sizeof(word));
		}
	else
		for (i = 0; i < used; i += s->page)
			*(volatile char *)(at + i) = 0;
}

static int map_all(struct wl *wl, struct state *s)
{
	size_t span = s->stride * s->vmas;
	uint64_t x = wl->seed ^ 0x2545f4914f6cdd1d;
	unsigned int i;

	/* A free range is found by taking it and giving it back. */
	s->base = mmap(NULL, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (s->base == MAP_FAILED || munmap(s->base, span))
		return wl_fail(wl, "address space of %zu bytes", span);
	for (i = 0; i < s->vmas; i++) {
		char *at = s->base + i * s->stride;

		if (mmap(at, s->stride - s->page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at)
			return wl_fail(wl, "mmap of mapping %u", i);
		populate(s, at, &x);
	}
	return 0;
}

static int name_all(struct wl *wl, const struct state *s)
{
	unsigned int i;

	for (i = 0; s->naming != NONE && i < s->vmas; i++)
		if (set_name(s, i)) {
			if (errno == EINVAL && i == 0)
				return wl_unsupported(wl, "CONFIG_ANON_VMA_NAME (v5.17)");
			return wl_fail(wl, "name of mapping %u", i);
		}
	return 0;
}

/* How many of the mappings of this process lie in the range: no malloc while counting. */
static unsigned int count_mappings(const struct state *s)
{
	uintptr_t first = (uintptr_t)s->base, last = first + s->stride * s->vmas;
	unsigned int count = 0;
	char line[512];
	FILE *f = fopen("/proc/self/maps", "re");

	while (f && fgets(line, sizeof(line), f)) {
		uintptr_t at = strtoull(line, NULL, 16);

		count += at >= first && at < last;
	}
	if (f)
		fclose(f);
	return count;
}

static int setup(struct wl *wl)
{
	struct state *s = calloc(1, sizeof(*s));
	unsigned int mapped;
	int error;

	if (!s)
		return wl_fail(wl, "memory for the state");
	wl->priv = s;
	s->vmas = (unsigned int)wl_param_u64(wl, "vmas");
	s->pages = (unsigned int)wl_param_u64(wl, "pages");
	s->random = wl_param_is(wl, "fill", "random");
	s->naming = naming_of(wl);
	s->page = (size_t)sysconf(_SC_PAGESIZE);
	s->stride = ((s->pages ? s->pages : 1) + 1) * s->page;
	error = check_limits(wl, s);
	if (!error)
		error = map_all(wl, s);
	if (!error)
		error = name_all(wl, s);
	if (error)
		return error;
	mapped = count_mappings(s);
	errno = 0;
	if (mapped != s->vmas)
		return wl_fail(wl,
			       "/proc/self/maps shows %u mappings, not %u: some merged or split",
			       mapped, s->vmas);
	wl_value(wl, "mappings", mapped);
	return 0;
}

static void op(struct wl_task *t)
{
	struct state *s = t->wl->priv;

	s->child = fork();
	if (!s->child)
		_exit(0);
	if (s->child < 0)
		wl_op_failed(t, "fork");
}

static void after(struct wl_task *t)
{
	struct state *s = t->wl->priv;

	while (s->child > 0 && waitpid(s->child, NULL, 0) < 0 && errno == EINTR)
		;
}

static double kernel_bytes(const struct wl_kstat *k)
{
	return (double)k->slab_bytes + (double)k->page_table_bytes;
}

/* Kernel memory of one more process with the mappings that this one has now. */
static int cost_of_child(struct wl *wl, double *bytes)
{
	struct wl_kstat before, during;
	int go[2];
	pid_t child;
	char c;

	if (pipe(go) < 0)
		return wl_fail(wl, "pipe");
	wl_kstat_settled(&before);
	child = fork();
	if (!child) {
		close(go[1]);
		_exit(read(go[0], &c, 1) < 0); /* until the parent closes its end */
	}
	if (child > 0)
		wl_kstat_settled(&during);
	close(go[0]);
	close(go[1]);
	if (child < 0)
		return wl_fail(wl, "fork for the memory figure");
	waitpid(child, NULL, 0);
	*bytes = kernel_bytes(&during) - kernel_bytes(&before);
	return 0;
}

/* The slope between all mappings and half of them: what a process costs by itself cancels out. */
static int figures(struct wl *wl)
{
	struct state *s = wl->priv;
	unsigned int half = s->vmas / 2;
	struct wl_kstat bare, named;
	double all, rest;
	int error;

	if (s->vmas < FIGURE_LEAST_VMAS)
		return 0;
	error = cost_of_child(wl, &all);
	if (error)
		return error;
	munmap(s->base + (s->vmas - half) * s->stride, half * s->stride);
	s->vmas -= half;
	error = cost_of_child(wl, &rest);
	if (error)
		return error;
	if (all > rest) /* else something else on this machine gave memory back meanwhile */
		wl_value(wl, "kernel_bytes_per_vma", (all - rest) / half);
	if (s->naming == NONE)
		return 0;

	/* Names: the same mappings without and with them. */
	munmap(s->base, s->vmas * s->stride);
	s->pages = 0;
	error = map_all(wl, s);
	if (error)
		return error;
	wl_kstat_settled(&bare);
	error = name_all(wl, s);
	if (error)
		return error;
	wl_kstat_settled(&named);
	wl_value(wl, "slab_bytes_per_name", (double)(named.slab_bytes - bare.slab_bytes) / s->vmas);
	return 0;
}

static void teardown(struct wl *wl)
{
	struct state *s = wl->priv;

	if (s && s->base && s->base != MAP_FAILED)
		munmap(s->base, s->stride * s->vmas);
	free(s);
	wl->priv = NULL;
}

static const struct workload fork_vmas = {
	.name = "fork_vmas",
	.setup = setup,
	.op = op,
	.after = after,
	.rested = true,
	.figures = figures,
	.teardown = teardown,
};
WORKLOAD(fork_vmas);

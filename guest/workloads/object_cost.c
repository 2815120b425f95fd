/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Kernel memory of one object, from slopes: live objects are made in batches,
 * and the settled counts before the first batch and after each give a line.
 * What anything costs only once does not change its slope.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../workload.h"

#define BATCHES 3
#define MAX_OBJECTS (BATCHES * 4096)
#define STRIDE 3 /* pages from one mapping to the next, which so cannot merge */
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

struct slot {
	pid_t pid;
	int fd[2];
};

static struct {
	struct slot *slots;
	char *base;
	size_t page;
	unsigned int batch;
} all;

struct kind {
	const char *name;
	int (*make)(unsigned int i);
	void (*unmake)(unsigned int i);
	bool of_process; /* the object belongs to a process that is there before */
};

static int make_process(unsigned int i)
{
	pid_t parent = getpid(), pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (getppid() == parent)
			pause();
		_exit(0);
	}
	all.slots[i].pid = pid;
	return pid < 0 ? -1 : 0;
}

static void unmake_process(unsigned int i)
{
	kill(all.slots[i].pid, SIGKILL);
	while (waitpid(all.slots[i].pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static int make_pidfd(unsigned int i)
{
	all.slots[i].fd[0] = (int)syscall(434, all.slots[i].pid, 0);
	return all.slots[i].fd[0] < 0 ? -1 : 0;
}

static void unmake_pidfd(unsigned int i)
{
	close(all.slots[i].fd[0]);
}

static int make_had(unsigned int i)
{
	int error = make_pidfd(i);

	if (!error)
		unmake_pidfd(i);
	return error;
}

static void unmake_had(unsigned int i)
{
	(void)i; /* it goes with its process */
}

static int make_both(unsigned int i)
{
	return make_process(i) || make_pidfd(i) ? -1 : 0;
}

static void unmake_both(unsigned int i)
{
	unmake_pidfd(i);
	unmake_process(i);
}

static int make_pipe(unsigned int i)
{
	return pipe2(all.slots[i].fd, O_CLOEXEC);
}

static void unmake_pipe(unsigned int i)
{
	close(all.slots[i].fd[0]);
	close(all.slots[i].fd[1]);
}

static char *place(unsigned int i)
{
	return all.base + i * STRIDE * all.page;
}

static int make_vma(unsigned int i)
{
	return mmap(place(i), all.page, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED
		       ? -1
		       : 0;
}

static int make_named(unsigned int i)
{
	char name[32];

	snprintf(name, sizeof(name), "kdelta-%u", i);
	return make_vma(i) || prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, place(i), all.page, name);
}

static void unmake_vma(unsigned int i)
{
	munmap(place(i), all.page);
}

static const struct kind kinds[] = {
	{"process", make_process, unmake_process, false},
	{"process_pidfd", make_both, unmake_both, false},
	{"pidfd", make_pidfd, unmake_pidfd, true},
	{"had_pidfd", make_had, unmake_had, true},
	{"vma", make_vma, unmake_vma, false},
	{"named_vma", make_named, unmake_vma, false},
	{"pipe", make_pipe, unmake_pipe, false},
};
static const struct kind *kind;

static int explain(struct wl *wl)
{
	if (errno == ENOSYS)
		return wl_unsupported(wl, "syscall pidfd_open (v5.3)");
	if (errno == EINVAL && kind->make == make_named)
		return wl_unsupported(wl, "CONFIG_ANON_VMA_NAME (v5.17)");
	return wl_fail(wl, "making a %s", kind->name);
}

/* A free range is found by taking it and giving it back. */
static int find_place(struct wl *wl)
{
	size_t span = (size_t)(BATCHES * all.batch + 1) * STRIDE * all.page;

	all.base = mmap(NULL, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (all.base == MAP_FAILED || munmap(all.base, span))
		return wl_fail(wl, "address space of %zu bytes", span);
	return 0;
}

static int setup(struct wl *wl)
{
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (wl_param_is(wl, "object", kinds[i].name))
			kind = &kinds[i];
	all.batch = (unsigned int)wl_param_u64(wl, "batch");
	all.page = (size_t)sysconf(_SC_PAGESIZE);
	all.slots = calloc(MAX_OBJECTS + 1, sizeof(*all.slots));
	if (!kind || !all.slots || all.batch > MAX_OBJECTS / BATCHES)
		return wl_fail(wl, "no such object, or no memory for %u of them",
			       BATCHES * all.batch);
	/* Touched now: no page of ours may come into being between two counts. */
	memset(all.slots, 0xff, (MAX_OBJECTS + 1) * sizeof(*all.slots));
	if (find_place(wl))
		return -1;
	if (kind->of_process && make_process(0))
		return wl_fail(wl, "fork");
	errno = 0;
	if (kind->make(0))
		return explain(wl);
	kind->unmake(0);
	return 0;
}

static void op(struct wl_task *t)
{
	if (kind->make(0))
		wl_op_failed(t, "making an object");
	else
		kind->unmake(0);
}

/* The least-squares slope of values at 0, batch, 2 batch, ...; NAN where one was not counted. */
static double slope(const int64_t *values)
{
	double sum = 0, squares = 0, middle = BATCHES / 2.0;
	int b;

	for (b = 0; b <= BATCHES; b++) {
		if (values[b] < 0)
			return __builtin_nan("");
		sum += (b - middle) * (double)values[b];
		squares += (b - middle) * (b - middle);
	}
	return sum / squares / all.batch;
}

enum { SLAB_BYTES, SLAB_OBJECTS, PAGE_TABLES, DENTRIES, INODES, FILES, FIGURES };

static int figures(struct wl *wl)
{
	static const char *const names[FIGURES] = {
		"slab_bytes_per_object", "slab_objects_per_object", "page_table_bytes_per_object",
		"dentries_per_object",	 "inodes_per_object",	    "files_per_object",
	};
	int64_t values[FIGURES][BATCHES + 1];
	unsigned int i, made = 0, last = BATCHES * all.batch, f;
	int error = 0;

	for (i = 1; kind->of_process && i <= last && !error; i++)
		error = make_process(i);
	for (i = 0; i <= last && !error; i++) {
		if (i % all.batch == 0) {
			struct wl_kstat k;
			unsigned int b = i / all.batch;

			wl_kstat_settled(&k);
			values[SLAB_BYTES][b] = k.slab_object_bytes;
			values[SLAB_OBJECTS][b] = k.slab_objects;
			values[PAGE_TABLES][b] = k.page_table_bytes;
			values[DENTRIES][b] = k.dentries;
			values[INODES][b] = k.inodes;
			values[FILES][b] = k.files;
		}
		if (i < last) {
			error = kind->make(i + 1);
			made += !error;
		}
	}
	if (error)
		explain(wl);
	for (f = 0; f < FIGURES && !error; f++)
		wl_value(wl, names[f], slope(values[f]));
	for (i = 1; i <= made; i++)
		kind->unmake(i);
	for (i = 1; kind->of_process && i <= last; i++)
		if (all.slots[i].pid > 0)
			unmake_process(i);
	return error;
}

static void teardown(struct wl *wl)
{
	(void)wl;
	if (kind->of_process)
		unmake_process(0);
	free(all.slots);
}

static const char *const params[] = {"object", "batch", NULL};
static const struct workload object_cost = {
	.name = "object_cost",
	.params = params,
	.setup = setup,
	.op = op,
	.figures = figures,
	.teardown = teardown,
};
WORKLOAD(object_cost);

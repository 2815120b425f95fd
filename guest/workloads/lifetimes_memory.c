/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pipes that are closed while full, and named mappings that merge, split and go. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "lifetimes.h"

#define PAGES 9
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

static char filling[65536];

static void pipe_full(struct wl_task *t)
{
	int ends[2];

	if (pipe2(ends, O_NONBLOCK | O_CLOEXEC)) {
		wl_op_failed(t, "pipe2");
		return;
	}
	while (write(ends[1], filling, sizeof(filling)) > 0)
		;
	if (errno != EAGAIN)
		wl_op_failed(t, "write until the pipe is full");
	close(ends[1]);
	close(ends[0]);
}

static int name(char *at, size_t bytes, const char *text)
{
	return prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, at, bytes, text);
}

/* Thirds: named alike (one mapping), the middle otherwise (three), alike again (one), a hole (two), gone. */
static void named_vmas(struct wl_task *t)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), third = PAGES / 3 * page;
	char *at = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			0);

	if (at == MAP_FAILED) {
		wl_op_failed(t, "mmap");
		return;
	}
	memset(at, 1, PAGES * page);
	if (name(at, 3 * third, "kdelta-whole") || name(at + third, third, "kdelta-middle") ||
	    name(at + third, third, "kdelta-whole") || name(at, page, NULL) ||
	    mprotect(at + 2 * third, page, PROT_READ))
		wl_op_failed(t, "name of a mapping");
	munmap(at + third, third);
	munmap(at, PAGES * page);
}

static int setup_named(struct wl *wl)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *at = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int error = at == MAP_FAILED ? 0 : name(at, page, "kdelta") ? errno : 0;

	munmap(at, page);
	return error == EINVAL ? wl_unsupported(wl, "CONFIG_ANON_VMA_NAME (v5.17)") : 0;
}

const struct way lifetimes_memory[] = {
	{"pipe_full", NULL, pipe_full, NULL},
	{"named_vmas", setup_named, named_vmas, NULL},
	{NULL, NULL, NULL, NULL},
};

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What several families need in SETUP. */
#ifndef KDELTA_SYSCALLS_PARTS_H
#define KDELTA_SYSCALLS_PARTS_H

#include "../../case.h"

#define PAGE ((size_t)4096)

/* Memory that is there: no fault falls into an operation. */
static inline char *memory(struct wl_task *t, size_t size)
{
	char *p = OK(mmap(NULL, size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));

	memset(p, 1, size);
	return p;
}

/*
 * A file of that size in the case's directory, open. It was read seconds after it was
 * written: within one second relatime (mount(8)) has more to compare.
 */
static inline int file(struct wl_task *t, const char *name, size_t size)
{
	static const char block[65536] = {1};
	const struct timespec read_at[2] = {{.tv_sec = time(NULL) + 2}, {.tv_nsec = UTIME_OMIT}};
	int fd = OK(open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
	size_t part;

	for (; size; size -= part) {
		part = size < sizeof(block) ? size : sizeof(block);
		EXPECT(write(fd, block, part) == (ssize_t)part);
	}
	OK(futimens(fd, read_at));
	return fd;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What each of these files defines: libFuzzer calls it with inputs, alone.c with files. */
#ifndef KDELTA_FUZZ_TARGET_H
#define KDELTA_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process as a broken target does. */
#define HOLDS(what)                                                    \
	do {                                                           \
		if (!(what)) {                                         \
			fprintf(stderr, "does not hold: %s\n", #what); \
			abort();                                       \
		}                                                      \
	} while (0)

/* The input as a file, for what reads one by its path; the same place each time. */
static inline const char *as_file(const uint8_t *data, size_t size)
{
	static char path[32];
	static int fd = -1;

	if (fd < 0) {
		fd = memfd_create("input", 0);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		HOLDS(fd >= 0 && freopen("/dev/null", "w", stdout));
	}
	HOLDS(!ftruncate(fd, 0) && pwrite(fd, data, size, 0) == (ssize_t)size);
	return path;
}

#endif

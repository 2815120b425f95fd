/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What each of these files defines: libFuzzer calls it with inputs, alone.c with files. */
#ifndef KDELTA_FUZZ_TARGET_H
#define KDELTA_FUZZ_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process as a broken target does. */
#define HOLDS(what)                                                    \
	do {                                                           \
		if (!(what)) {                                         \
			fprintf(stderr, "does not hold: %s\n", #what); \
			abort();                                       \
		}                                                      \
	} while (0)

/* The input, for what opens it by its path; no file system stands between. */
static const uint8_t *input_data;
static size_t input_size;

static inline const char *as_file(const uint8_t *data, size_t size)
{
	static bool quiet;

	if (!quiet)
		HOLDS(freopen("/dev/null", "w", stdout));
	quiet = true;
	input_data = data;
	input_size = size;
	return "input";
}

static inline FILE *input_open(const char *path, const char *mode)
{
	if (strcmp(path, "input"))
		return fopen(path, mode);
	return fmemopen((void *)(uintptr_t)input_data, input_size, mode);
}

#define fopen input_open

#endif

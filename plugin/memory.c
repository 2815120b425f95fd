/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>
#include <stdlib.h>

#include "kdelta.h"

void *xalloc(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p) {
		fprintf(stderr, "kdelta plugin: out of memory (%zu bytes)\n", n * size);
		abort();
	}
	return p;
}

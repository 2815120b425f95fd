/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the host knows of the guest's kernel (kernel=PATH):
 *
 *	kdelta-kernel 1
 *	slab CACHES VMEMMAP DIRECT PAGE HEAD OWNER NAME SIZE LIST	struct slab_layout, in hex
 *	caller LOW HIGH		in order of addresses, in hex: code that acts for its caller
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "callers.h"
#include "kdelta.h"
#include "slabs.h"

#define LINE_MAX_BYTES 256

static bool slab_line(const char *line)
{
	struct slab_layout l;

	if (sscanf(line,
		   "%" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx32 " %" SCNx32 " %" SCNx32
		   " %" SCNx32 " %" SCNx32 " %" SCNx32,
		   &l.caches, &l.vmemmap, &l.direct, &l.page, &l.head, &l.owner, &l.name, &l.size,
		   &l.list) != 9 ||
	    !l.page)
		return false;
	slabs_know(&l);
	return true;
}

static bool caller_line(const char *line)
{
	uint64_t low, high;

	return sscanf(line, "%" SCNx64 " %" SCNx64, &low, &high) == 2 && callers_add(low, high);
}

static bool one_line(const char *line)
{
	if (!strncmp(line, "slab ", 5))
		return slab_line(line + 5);
	return !strncmp(line, "caller ", 7) && caller_line(line + 7);
}

bool guest_facts_read(const char *path)
{
	char line[LINE_MAX_BYTES];
	FILE *in = fopen(path, "r");
	bool ok = in && fgets(line, sizeof(line), in) && !strcmp(line, "kdelta-kernel 1\n");

	while (ok && fgets(line, sizeof(line), in))
		ok = one_line(line);
	if (in)
		fclose(in);
	if (!ok)
		fprintf(stderr, "kdelta plugin: %s is no description of a kernel\n", path);
	return ok;
}

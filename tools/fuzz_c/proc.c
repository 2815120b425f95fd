/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a kernel says in /proc: slabinfo, meminfo, vmstat and kallsyms, as the guest reads them. */
#include "target.h"

#define read_whole told /* instead of guest/readfile.c */
#include "../../guest/kallsyms.c"
#include "../../guest/kstat.c"
#include "../../guest/pressure.c"

static const uint8_t *said;
static size_t said_size;

int told(const char *path, struct text *t)
{
	(void)path;
	text_bytes(t, (const char *)said, said_size);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t sums[PRESSURE_COUNTERS];
	struct pressure p = {0};
	struct slabs slabs = {0};
	struct text t = {0};
	FILE *file;

	said = data;
	said_size = size;
	slabs_read(&slabs);
	for (size_t i = 0; i < slabs.n; i++)
		HOLDS(slabs_find(&slabs, slabs.all[i].name));
	objects(&slabs);
	object_bytes(&slabs);
	slabs_free(&slabs);
	read_counters(sums);
	text_bytes(&t, (const char *)data, size);
	if (t.s) {
		meminfo(&t, "Slab");
		HOLDS(!parse(&p, t.s) || p.workers <= 64);
	}
	text_free(&t);
	file = fopen(as_file(data, size), "r");
	HOLDS(file && !collect(file, &t));
	fclose(file);
	text_free(&t);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KDELTA_OOM_H
#define KDELTA_OOM_H

#include <stdio.h>

/* How often a process was killed because memory ran out; -1 where the kernel does not count (before Linux 4.13). */
static inline long oom_kills(void)
{
	char line[128];
	long found = -1;
	FILE *f = fopen("/proc/vmstat", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "oom_kill %ld", &found) == 1)
			break;
	if (f)
		fclose(f);
	return found;
}

#endif

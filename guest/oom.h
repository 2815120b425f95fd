/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KDELTA_OOM_H
#define KDELTA_OOM_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* Of a line of /proc/sys/kernel/tainted: TAINT_DIE (include/linux/panic.h); such a task ends as if by SIGKILL. */
static inline bool is_taint_of_death(const char *line)
{
	return strtoul(line, NULL, 10) & 1UL << 7;
}

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

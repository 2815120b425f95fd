/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a program's last words, and the kernel, say of why it ended.
 */
#ifndef KDELTA_PROGRAM_WORDS_H
#define KDELTA_PROGRAM_WORDS_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Cuts the last line off @text and returns it. */
static inline char *cut_line(char *text)
{
	size_t n = strlen(text);
	char *line;

	while (n > 0 && text[n - 1] == '\n')
		text[--n] = 0;
	line = strrchr(text, '\n');
	if (!line)
		return text;
	*line = 0;
	return line + 1;
}

/* How often a process was killed because memory ran out; 0 where the kernel does not count (before Linux 4.13). */
static inline long oom_kills(void)
{
	char line[128];
	long found = 0;
	FILE *f = fopen("/proc/vmstat", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "oom_kill %ld", &found) == 1)
			break;
	if (f)
		fclose(f);
	return found;
}

/* Whether memory ran out, which holds its files too: by the kernel's account, or by what C, Python, C++ and Go say. */
static inline bool needs_memory(const char *words, long kills_before)
{
	return oom_kills() > kills_before || strstr(words, "annot allocate memory") ||
	       strstr(words, "ut of memory") || strstr(words, "MemoryError") ||
	       strstr(words, "bad_alloc") || strstr(words, "o space left");
}

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a program's last words, and the kernel, say of why it ended.
 */
#ifndef KDELTA_PROGRAM_WORDS_H
#define KDELTA_PROGRAM_WORDS_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../oom.h"

#define SAID_MOST 1024

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

/* The end of file @fd; how much there is before it. */
static inline off_t end_of(int fd, char *text, size_t size)
{
	off_t end = lseek(fd, 0, SEEK_END);
	off_t from = end < (off_t)size ? 0 : end - (off_t)size + 1;
	ssize_t n = pread(fd, text, size - 1, from);

	text[n > 0 ? n : 0] = 0;
	return from;
}

/*
 * The last line of file @fd, with the one before it where that fits:
 * tar says what is wrong, and then that it was an error.
 */
static inline void last_words(int fd, char *buf, size_t size)
{
	char text[512], *last, *before = "";
	off_t from = end_of(fd, text, sizeof(text));

	last = cut_line(text);
	if (last != text)
		before = cut_line(text);
	if (*before &&
	    strchr(" \t", *last)) /* mount(8) and others go on so about the line before */
		snprintf(buf, size, "%.*s", (int)size - 1, before);
	else if (!*before || strchr(" \t", *before) || (before == text && from) ||
		 snprintf(buf, size, "%s / %s", before, last) >= (int)size)
		snprintf(buf, size, "%.*s", (int)size - 1, last);
}

/* What it says to standard error has room beside what it prints. */
static inline void keep_output(int out, int err, char *buf, size_t size)
{
	off_t said = lseek(err, 0, SEEK_END);
	size_t room = said < 0 ? 0 : said < SAID_MOST ? (size_t)said : SAID_MOST;
	ssize_t n = pread(out, buf, size - 1 - room, 0), more;

	n = n < 0 ? 0 : n;
	if (room && n && buf[n - 1] != '\n') /* what is said begins a line */
		buf[n + room < size - 1 ? n++ : n - 1] = '\n';
	more = pread(err, buf + n, size - 1 - (size_t)n, 0);
	n += more < 0 ? 0 : more;
	buf[n] = 0;
	for (char *at = buf; at < buf + n; at++)
		if (!*at)
			*at = '?'; /* the rest is kept all the same */
}

/* Whether memory ran out, which holds its files too: by the kernel's account, or by what C, Python, C++ and Go say. */
static inline bool needs_memory(const char *words, long kills_before)
{
	return oom_kills() > kills_before || strstr(words, "annot allocate memory") ||
	       strstr(words, "ut of memory") || strstr(words, "MemoryError") ||
	       strstr(words, "bad_alloc") || strstr(words, "o space left");
}

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a program's last words, and the kernel, say of why it ended.
 */
#ifndef KDELTA_PROGRAM_WORDS_H
#define KDELTA_PROGRAM_WORDS_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../oom.h"

#define SAID_MOST 1024
#define BEFORE_LEAST 20 /* bytes of a line; less of it says nothing */

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
 * The last line of file @fd that begins one, with the one before it, cut to the room that is left: tar says what is
 * wrong, and then that it was an error; mount(8) and Java go on indented about the line before.
 */
static inline void last_words(int fd, char *buf, size_t size)
{
	char text[1024], *last, *before = "";
	off_t from = end_of(fd, text, sizeof(text));
	int room, keep;

	do
		last = cut_line(text);
	while (last != text && *last && strchr(" \t", *last));
	if (last != text)
		before = cut_line(text);
	if (before == text && from) /* its beginning is not there */
		before = "";
	room = (int)size - 1 - (int)strlen(last) - (int)strlen(" / ");
	keep = (int)strlen(before) <= room ? room : room - (int)strlen("...");
	if (*before && !strchr(" \t", *before) && keep >= BEFORE_LEAST)
		snprintf(buf, size, "%.*s%s / %s", keep, before, keep < room ? "..." : "", last);
	else if (strlen(last) < size)
		snprintf(buf, size, "%s", last);
	else
		snprintf(buf, size, "%.*s...", (int)size - 1 - (int)strlen("..."), last);
}

static inline void how_ended(int status, int expected, char *buf, size_t size)
{
	if (WIFEXITED(status))
		snprintf(buf, size, "ended with exit status %d, not %d", WEXITSTATUS(status),
			 expected);
	else if (sigabbrev_np(WTERMSIG(status)))
		snprintf(buf, size, "was killed by SIG%s", sigabbrev_np(WTERMSIG(status)));
	else
		snprintf(buf, size, "was killed by signal %d", WTERMSIG(status));
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

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "readfile.h"
#include "stream.h"

bool read_line(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);

	if (fd >= 0)
		close(fd);
	if (n < 0)
		return false;
	buf[n] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return true;
}

int64_t read_field(const char *path, unsigned int nr)
{
	char line[256], *save = NULL, *word;

	if (!read_line(path, line, sizeof(line)))
		return -1;
	for (word = strtok_r(line, " \t", &save); word && nr; nr--)
		word = strtok_r(NULL, " \t", &save);
	return word ? strtoll(word, NULL, 10) : -1;
}

int read_whole(const char *path, struct text *t)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), error = 0;
	char buf[4096];
	ssize_t n = 0;

	if (fd < 0)
		return errno;
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		text_bytes(t, buf, (size_t)n);
	if (n < 0)
		error = errno;
	close(fd);
	return t->lost ? ENOMEM : error;
}

int write_string(const char *path, const char *s)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), error;

	if (fd < 0)
		return errno;
	error = write(fd, s, strlen(s)) < 0 ? errno : 0;
	close(fd);
	return error;
}

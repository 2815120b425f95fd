// SPDX-License-Identifier: GPL-2.0-or-later
/* A copy of a directory, for a program that writes where it runs (--writable). */
#include "program_copy.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

static int copy_all(int from, int to);

static int copy_file(int from, int to, const char *name, const struct stat *st)
{
	int in = openat(from, name, O_RDONLY | O_CLOEXEC);
	int out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	off_t left = st->st_size;
	ssize_t n = 0;

	while (in >= 0 && out >= 0 && left > 0) {
		n = sendfile(out, in, NULL, (size_t)left);
		if (n <= 0)
			break;
		left -= n;
	}
	if (in < 0 || out < 0 || left > 0 || fchmod(out, st->st_mode & 07777))
		n = -1;
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	return n < 0 ? -1 : 0;
}

static int copy_link(int from, int to, const char *name)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(from, name, target, sizeof(target) - 1);

	if (n < 0)
		return -1;
	target[n] = 0;
	return symlinkat(target, to, name);
}

static int copy_folder(int from, int to, const char *name, const struct stat *st)
{
	int in, out, failed;

	if (mkdirat(to, name, st->st_mode & 07777))
		return -1;
	in = openat(from, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	out = openat(to, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	failed = in < 0 || out < 0 ? -1 : copy_all(in, out);
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	return failed;
}

static int copy_one(int from, int to, const char *name)
{
	struct stat st;
	int failed;

	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW))
		return -1;
	if (S_ISDIR(st.st_mode))
		failed = copy_folder(from, to, name, &st);
	else if (S_ISLNK(st.st_mode))
		failed = copy_link(from, to, name);
	else
		failed = copy_file(from, to, name, &st); /* nothing else is packed */
	return failed ? -1
		      : utimensat(to, name, (struct timespec[]){st.st_atim, st.st_mtim},
				  AT_SYMLINK_NOFOLLOW);
}

/* Both stay open. */
static int copy_all(int from, int to)
{
	int again = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), failed = 0;
	DIR *dir = again < 0 ? NULL : fdopendir(again);
	struct dirent *one;

	if (!dir)
		return -1;
	while (!failed && (one = readdir(dir)))
		if (strcmp(one->d_name, ".") && strcmp(one->d_name, ".."))
			failed = copy_one(from, to, one->d_name);
	closedir(dir);
	return failed;
}

int fresh_copy(struct wl *wl, const char *path)
{
	static int from = -1;
	int to, failed;

	if (from >= 0 && umount2(path, MNT_DETACH))
		return wl_fail(wl, "umount of %.200s", path);
	if (from < 0)
		from = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (from < 0 || mount("tmpfs", path, "tmpfs", 0, NULL))
		return wl_fail(wl, "--writable: tmpfs at %.200s", path);
	to = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	failed = to < 0 || copy_all(from, to);
	if (to >= 0)
		close(to);
	return failed ? wl_fail(wl, "--writable: copy of %.200s", path) : 0;
}

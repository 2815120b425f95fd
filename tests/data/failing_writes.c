// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Preloaded into kdelta (LD_PRELOAD): of the calls that write below FAIL_BELOW, the one numbered FAIL_AT fails as
 * FAIL_HOW says: an errno's number, "short" (half of it is written), or "kill". Children such as QEMU and the compiler
 * are left alone. FAIL_COUNT names a file that gets the number of such calls at the end, when none was to fail.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static int calls;

static int below(const char *path)
{
	const char *root = getenv("FAIL_BELOW");

	return root && !strncmp(path, root, strlen(root)) && !strncmp(program_invocation_short_name, "python", 6);
}

static int below_fd(int fd)
{
	char link[64], path[4096];
	ssize_t size;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	size = readlink(link, path, sizeof(path) - 1);
	if (size < 0)
		return 0;
	path[size] = 0;
	return below(path);
}

/* 0: go on, 1: the call fails with errno set, 2: half of it is to be written */
static int fails(void)
{
	const char *at = getenv("FAIL_AT"), *how = getenv("FAIL_HOW");

	if (__atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST) != (at ? atoi(at) : -1) || !how)
		return 0;
	if (!strcmp(how, "kill"))
		raise(SIGKILL);
	if (!strcmp(how, "short"))
		return 2;
	errno = atoi(how);
	return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *data, size_t size)
{
	int how = below_fd(fd) ? fails() : 0;

	return how == 1 ? -1 : REAL(write)(fd, data, how == 2 && size > 1 ? size / 2 : size);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at)
{
	int how = below_fd(fd) ? fails() : 0;

	return how == 1 ? -1 : REAL(pwrite64)(fd, data, how == 2 && size > 1 ? size / 2 : size, at);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
	return pwrite64(fd, data, size, at);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
	return below_fd(fd) && fails() == 1 ? -1 : REAL(writev)(fd, parts, count);
}

int fsync(int fd)
{
	return below_fd(fd) && fails() == 1 ? -1 : REAL(fsync)(fd);
}

int fdatasync(int fd)
{
	return below_fd(fd) && fails() == 1 ? -1 : REAL(fdatasync)(fd);
}

int ftruncate64(int fd, off64_t size)
{
	return below_fd(fd) && fails() == 1 ? -1 : REAL(ftruncate64)(fd, size);
}

int ftruncate(int fd, off_t size)
{
	return ftruncate64(fd, size);
}

int rename(const char *from, const char *to)
{
	return below(to) && fails() == 1 ? -1 : REAL(rename)(from, to);
}

int open64(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list rest;

	va_start(rest, flags);
	if (flags & O_CREAT)
		mode = va_arg(rest, mode_t);
	va_end(rest);
	if ((flags & O_CREAT) && below(path) && fails() == 1)
		return -1;
	return REAL(open64)(path, flags, mode);
}

int open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list rest;

	va_start(rest, flags);
	if (flags & O_CREAT)
		mode = va_arg(rest, mode_t);
	va_end(rest);
	return open64(path, flags, mode);
}

static __attribute__((destructor)) void count(void)
{
	const char *name = getenv("FAIL_COUNT");
	FILE *file = name && !strncmp(program_invocation_short_name, "python", 6) ? fopen(name, "w") : NULL;

	if (file) {
		fprintf(file, "%d\n", calls);
		fclose(file);
	}
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The page cache as filesystems on disks use it (mm/filemap.c), of a ramfs, which has none below. The files of the
 * other cases are in tmpfs, whose pages mm/shmem.c finds, adds and faults in.
 */
#include <sys/mount.h>
#include <sys/sendfile.h>

#include "parts.h"

static int fd, out;
static char *at, *buf;

/* Without a path: the mount goes with the last descriptor or mapping. */
static int in_ramfs(struct wl_task *t, size_t size)
{
	int made;

	NEED("CONFIG_NAMESPACES", unshare(CLONE_NEWNS));
	OK(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL));
	OK(mkdir("ramfs", 0700));
	OK(mount("none", "ramfs", "ramfs", 0, NULL));
	made = file(t, "ramfs/file", size);
	OK(umount2("ramfs", MNT_DETACH));
	return made;
}

CASE_N(ramfs_read, "pread(2) of N bytes of a file in ramfs", 1, 4096, 65536)
{
	EXPECT(pread(fd, buf, N, 0) == (ssize_t)N);
}

OPS(ramfs_read, 1048576 / N)

SETUP(ramfs_read)
{
	fd = in_ramfs(t, N);
	buf = memory(t, N);
}

CASE(ramfs_read_new, "pread(2) of 16 pages of a file in ramfs that are not there yet")
{
	EXPECT(pread(fd, buf, 16 * PAGE, 0) == (ssize_t)(16 * PAGE));
}

OPS(ramfs_read_new, 16)

AFTER(ramfs_read_new)
{
	OK(ftruncate(fd, 0));
	OK(ftruncate(fd, 16 * PAGE));
}

SETUP(ramfs_read_new)
{
	fd = in_ramfs(t, 0);
	OK(ftruncate(fd, 16 * PAGE));
	buf = memory(t, 16 * PAGE);
}

CASE_N(ramfs_write, "pwrite(2) of N bytes over a file in ramfs", 1, 4096, 65536)
{
	EXPECT(pwrite(fd, buf, N, 0) == (ssize_t)N);
}

OPS(ramfs_write, 524288 / N)

SETUP(ramfs_write)
{
	fd = in_ramfs(t, N);
	buf = memory(t, N);
}

CASE(ramfs_append, "pwrite(2) of the first page of a file in ramfs")
{
	EXPECT(pwrite(fd, buf, PAGE, 0) == (ssize_t)PAGE);
}

AFTER(ramfs_append)
{
	OK(ftruncate(fd, 0));
}

SETUP(ramfs_append)
{
	fd = in_ramfs(t, 0);
	buf = memory(t, PAGE);
}

CASE_N(ramfs_sendfile, "sendfile(2) of N bytes from ramfs to /dev/null", 4096, 65536)
{
	off_t from = 0;

	EXPECT(sendfile(out, fd, &from, N) == (ssize_t)N);
}

OPS(ramfs_sendfile, 1048576 / N)

SETUP(ramfs_sendfile)
{
	fd = in_ramfs(t, N);
	out = OK(open("/dev/null", O_WRONLY | O_CLOEXEC));
}

static void map(struct wl_task *t, int flags)
{
	fd = in_ramfs(t, PAGE);
	at = OK(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, flags, fd, 0));
}

CASE(ramfs_private_fault, "the first write to a private mapping of a file in ramfs: copy on write")
{
	*(volatile char *)at = 1;
}

AFTER(ramfs_private_fault)
{
	OK(madvise(at, PAGE, MADV_DONTNEED));
}

SETUP(ramfs_private_fault)
{
	map(t, MAP_PRIVATE);
}

CASE(ramfs_shared_fault, "the first write to a shared mapping of a file in ramfs")
{
	*(volatile char *)at = 1;
}

AFTER(ramfs_shared_fault)
{
	OK(madvise(at, PAGE, MADV_DONTNEED));
}

SETUP(ramfs_shared_fault)
{
	map(t, MAP_SHARED);
}

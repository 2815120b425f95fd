/* SPDX-License-Identifier: GPL-2.0-or-later */
/* File names and what they stand for: look up, make, rename, remove, list; attributes, locks, mounts. */
#include <dirent.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/xattr.h>

#include "parts.h"

static int fd;
static char *buf;

CASE(stat, "stat(2) of a file four directories down")
{
	struct stat st;

	OK(stat("a/b/c/file", &st));
}

static void deep_file(struct wl_task *t)
{
	OK(mkdir("a", 0700));
	OK(mkdir("a/b", 0700));
	OK(mkdir("a/b/c", 0700));
	OK(close(file(t, "a/b/c/file", 0)));
}

SETUP(stat)
{
	deep_file(t);
}

CASE(fstat, "fstat(2)")
{
	struct stat st;

	OK(fstat(fd, &st));
}

SETUP(fstat)
{
	fd = file(t, "file", 0);
}

CASE(statx, "statx(2) of STATX_BASIC_STATS")
{
	struct statx st;

	OK(statx(AT_FDCWD, "file", 0, STATX_BASIC_STATS, &st));
}

SETUP(statx)
{
	OK(close(file(t, "file", 0)));
}

CASE(access, "access(2) of a name that is not there")
{
	EXPECT(access("missing", F_OK) == -1 && errno == ENOENT);
}

CASE(open_close, "open(2) of a file four directories down, close(2)")
{
	OK(close(OK(open("a/b/c/file", O_RDONLY))));
}

SETUP(open_close)
{
	deep_file(t);
}

CASE(openat2, "openat2(2) with RESOLVE_BENEATH, close(2)")
{
	struct open_how how = {.flags = O_RDONLY, .resolve = RESOLVE_BENEATH};

	OK(close((int)OK(syscall(SYS_openat2, AT_FDCWD, "a/b/c/file", &how, sizeof(how)))));
}

SETUP(openat2)
{
	struct open_how how = {.flags = O_RDONLY};

	deep_file(t);
	OK(close((int)NEED("Linux 5.6", syscall(SYS_openat2, AT_FDCWD, "a", &how, sizeof(how)))));
}

CASE_N(create_unlink, "creat(2) of a file of N bytes in tmpfs, unlink(2)", 0, 10240)
{
	int made = OK(creat("new", 0600));

	if (N)
		EXPECT(write(made, buf, N) == (ssize_t)N);
	OK(close(made));
	OK(unlink("new"));
}

OPS(create_unlink, 24)

SETUP(create_unlink)
{
	buf = memory(t, 10240);
}

CASE(rename, "rename(2) there and back")
{
	OK(rename("here", "there"));
	OK(rename("there", "here"));
}

OPS(rename, 16)

SETUP(rename)
{
	OK(close(file(t, "here", 0)));
}

CASE(link, "link(2), unlink(2)")
{
	OK(link("file", "other"));
	OK(unlink("other"));
}

OPS(link, 32)

SETUP(link)
{
	OK(close(file(t, "file", 0)));
}

CASE(symlink, "symlink(2), readlink(2), unlink(2)")
{
	char to[64];

	OK(symlink("file", "other"));
	EXPECT(readlink("other", to, sizeof(to)) == 4);
	OK(unlink("other"));
}

OPS(symlink, 16)

CASE(mkdir, "mkdir(2), rmdir(2)")
{
	OK(mkdir("folder", 0700));
	OK(rmdir("folder"));
}

OPS(mkdir, 24)

CASE(chmod, "chmod(2)")
{
	OK(chmod("file", 0600));
}

SETUP(chmod)
{
	OK(close(file(t, "file", 0)));
}

CASE(truncate, "ftruncate(2) of a file in tmpfs to a page, and to nothing")
{
	OK(ftruncate(fd, 4096));
	OK(ftruncate(fd, 0));
}

SETUP(truncate)
{
	fd = file(t, "file", 0);
}

CASE(fallocate, "fallocate(2) of 16 pages of tmpfs, and the hole punched again")
{
	OK(fallocate(fd, 0, 0, 16 * 4096));
	OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 16 * 4096));
}

OPS(fallocate, 4)

SETUP(fallocate)
{
	fd = file(t, "file", 0);
	OK(ftruncate(fd, 16 * 4096));
}

/* What getdents64(2) says of N files with names of 5 to 8 bytes, and of . and .. */
#define ENTRIES(n) ((n)*32 + 2 * 24)

CASE_N(getdents, "getdents64(2) of a directory of N files in tmpfs", 10, 1000)
{
	size_t got = 0;
	long part;

	OK(lseek(fd, 0, SEEK_SET));
	while ((part = OK(syscall(SYS_getdents64, fd, buf, 32768))) > 0)
		got += (size_t)part;
	EXPECT(got == ENTRIES(N));
}

OPS(getdents, 1000 / N)

SETUP(getdents)
{
	char name[32];

	OK(mkdir("folder", 0700));
	for (uint64_t i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "folder/file%llu", (unsigned long long)i);
		OK(close(file(t, name, 0)));
	}
	fd = OK(open("folder", O_RDONLY | O_DIRECTORY));
	buf = memory(t, 32768);
}

CASE(getxattr, "fgetxattr(2) of 64 bytes")
{
	char value[64];

	EXPECT(fgetxattr(fd, "trusted.kdelta", value, sizeof(value)) == 64);
}

static void with_xattr(struct wl_task *t)
{
	buf = memory(t, 64);
	fd = file(t, "file", 0);
	NEED("CONFIG_TMPFS_XATTR", fsetxattr(fd, "trusted.kdelta", buf, 64, 0));
}

SETUP(getxattr)
{
	with_xattr(t);
}

CASE(setxattr, "fsetxattr(2) of 64 bytes over what was there")
{
	OK(fsetxattr(fd, "trusted.kdelta", buf, 64, 0));
}

SETUP(setxattr)
{
	with_xattr(t);
}

CASE(flock, "flock(2): lock and unlock")
{
	OK(flock(fd, LOCK_EX));
	OK(flock(fd, LOCK_UN));
}

SETUP(flock)
{
	fd = NEED("CONFIG_FILE_LOCKING", file(t, "file", 0));
}

CASE(fcntl_lock, "fcntl(2) F_SETLK: lock and unlock a range")
{
	struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 4096};

	OK(fcntl(fd, F_SETLK, &range));
	range.l_type = F_UNLCK;
	OK(fcntl(fd, F_SETLK, &range));
}

SETUP(fcntl_lock)
{
	fd = file(t, "file", 4096);
}

static int watcher;

CASE(inotify_watch, "inotify_add_watch(2), inotify_rm_watch(2), read(2) of IN_IGNORED")
{
	char events[512];

	OK(inotify_rm_watch(watcher, OK(inotify_add_watch(watcher, "file", IN_MODIFY))));
	EXPECT(read(watcher, events, sizeof(events)) == sizeof(struct inotify_event));
}

OPS(inotify_watch, 32)

SETUP(inotify_watch)
{
	watcher = NEED("CONFIG_INOTIFY_USER", inotify_init1(IN_CLOEXEC));
	OK(close(file(t, "file", 0)));
}

CASE(inotify_event, "fchmod(2) of a watched file, read(2) of the event")
{
	char events[512];

	OK(fchmod(fd, 0600));
	EXPECT(read(watcher, events, sizeof(events)) == sizeof(struct inotify_event));
}

SETUP(inotify_event)
{
	watcher = NEED("CONFIG_INOTIFY_USER", inotify_init1(IN_CLOEXEC));
	fd = file(t, "file", 0);
	OK(inotify_add_watch(watcher, "file", IN_ATTRIB));
}

CASE(mount, "mount(2) of a tmpfs, umount2(2)")
{
	OK(mount("none", "folder", "tmpfs", 0, NULL));
	OK(umount2("folder", 0));
}

OPS(mount, 8)

SETUP(mount)
{
	NEED("CONFIG_NAMESPACES", unshare(CLONE_NEWNS));
	OK(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL));
	OK(mkdir("folder", 0700));
	NEED("CONFIG_TMPFS", mount("none", "folder", "tmpfs", 0, NULL));
	OK(umount2("folder", 0));
}

/* Files that the kernel makes up as they are read. */
static void read_all(struct wl_task *t, const char *path)
{
	int made = OK(open(path, O_RDONLY));

	while (OK(read(made, buf, 65536)) > 0)
		;
	OK(close(made));
}

CASE(proc_self_stat, "open, read, close of /proc/self/stat")
{
	read_all(t, "/proc/self/stat");
}

OPS(proc_self_stat, 16)

SETUP(proc_self_stat)
{
	NEED("CONFIG_PROC_FS", access("/proc/self/stat", R_OK));
	buf = memory(t, 65536);
}

CASE(proc_self_maps, "open, read, close of /proc/self/maps")
{
	read_all(t, "/proc/self/maps");
}

OPS(proc_self_maps, 8)

SETUP(proc_self_maps)
{
	NEED("CONFIG_PROC_PAGE_MONITOR", access("/proc/self/maps", R_OK));
	buf = memory(t, 65536);
}

CASE(sysfs_read, "open, read, close of /sys/kernel/fscaps")
{
	read_all(t, "/sys/kernel/fscaps");
}

OPS(sysfs_read, 32)

SETUP(sysfs_read)
{
	NEED("CONFIG_SYSFS", access("/sys/kernel/fscaps", R_OK));
	buf = memory(t, 65536);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Paths: walked, resolved, told; owners and times; mounts and handles; what /proc says, read again from one descriptor. */
#include <linux/mount.h>
#include <sys/statfs.h>
#include <sys/xattr.h>

#include "parts.h"

/* Of Linux 6.8, on all architectures: libc's headers may be older. */
#define NR_STATMOUNT 457
#define NR_LISTMOUNT 458
#define STATX_ID 0x4000			  /* STATX_MNT_ID_UNIQUE */
#define ROOT_OF_ALL 0xffffffffffffffffULL /* LSMT_ROOT */

struct mount_request {
	uint32_t size, spare;
	uint64_t mount, param;
};

static int fd;
static char *buf;

/* a/b/c/file, and links to it. */
static void tree(struct wl_task *t)
{
	OK(mkdir("a", 0700));
	OK(mkdir("a/b", 0700));
	OK(mkdir("a/b/c", 0700));
	OK(close(file(t, "a/b/c/file", 0)));
	OK(symlink("a/b/c/file", "short"));
	OK(symlink("short", "shorter"));
	buf = memory(t, 65536);
}

CASE(stat_dotdot, "stat(2) of a path that goes up and down again")
{
	struct stat st;

	OK(stat("a/b/../b/c/../../b/c/file", &st));
}

SETUP(stat_dotdot)
{
	tree(t);
}

CASE(stat_symlink, "stat(2) through two symbolic links")
{
	struct stat st;

	OK(stat("shorter", &st));
	EXPECT(S_ISREG(st.st_mode));
}

SETUP(stat_symlink)
{
	tree(t);
}

CASE(readlink, "readlink(2)")
{
	EXPECT(readlink("short", buf, 64) == 10);
}

SETUP(readlink)
{
	tree(t);
}

CASE(getcwd, "getcwd(2)")
{
	OK(syscall(SYS_getcwd, buf, 4096));
}

SETUP(getcwd)
{
	tree(t);
	OK(chdir("a/b/c"));
}

CASE(chdir, "chdir(2) three directories down, fchdir(2) back")
{
	OK(chdir("a/b/c"));
	OK(fchdir(fd));
}

SETUP(chdir)
{
	tree(t);
	fd = OK(open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

CASE(statfs, "statfs(2) of tmpfs")
{
	struct statfs st;

	OK(statfs("a", &st));
}

SETUP(statfs)
{
	tree(t);
}

CASE(utimensat, "utimensat(2) to times that are given")
{
	const struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};

	OK(utimensat(AT_FDCWD, "a/b/c/file", times, 0));
}

SETUP(utimensat)
{
	tree(t);
}

CASE(chown, "fchownat(2)")
{
	OK(fchownat(AT_FDCWD, "a/b/c/file", 0, 0, 0));
}

SETUP(chown)
{
	tree(t);
}

CASE(listxattr, "flistxattr(2) of one attribute")
{
	EXPECT(flistxattr(fd, buf, 64) >= (ssize_t)sizeof("trusted.kdelta"));
}

SETUP(listxattr)
{
	buf = memory(t, PAGE);
	fd = file(t, "file", 0);
	NEED("CONFIG_TMPFS_XATTR", fsetxattr(fd, "trusted.kdelta", buf, 64, 0));
}

CASE(rename_exchange, "renameat2(2) RENAME_EXCHANGE of two files")
{
	OK(syscall(SYS_renameat2, AT_FDCWD, "one", AT_FDCWD, "two", RENAME_EXCHANGE));
}

OPS(rename_exchange, 24)

SETUP(rename_exchange)
{
	OK(close(file(t, "one", 0)));
	OK(close(file(t, "two", 0)));
}

CASE(tmpfile, "open(2) O_TMPFILE in tmpfs, close(2)")
{
	OK(close(OK(open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600))));
}

OPS(tmpfile, 24)

CASE(mkfifo, "mkfifo(3), unlink(2)")
{
	OK(mkfifo("fifo", 0600));
	OK(unlink("fifo"));
}

OPS(mkfifo, 24)

static struct {
	struct file_handle head;
	char bytes[MAX_HANDLE_SZ];
} handle;
static int mount_id;

CASE(name_to_handle, "name_to_handle_at(2)")
{
	handle.head.handle_bytes = MAX_HANDLE_SZ;
	OK(name_to_handle_at(AT_FDCWD, "a/b/c/file", &handle.head, &mount_id, 0));
}

static void with_handle(struct wl_task *t)
{
	tree(t);
	fd = OK(open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	handle.head.handle_bytes = MAX_HANDLE_SZ;
	NEED("CONFIG_FHANDLE",
	     name_to_handle_at(AT_FDCWD, "a/b/c/file", &handle.head, &mount_id, 0));
}

SETUP(name_to_handle)
{
	with_handle(t);
}

CASE(open_by_handle, "open_by_handle_at(2), close(2)")
{
	OK(close(OK(open_by_handle_at(fd, &handle.head, O_RDONLY))));
}

SETUP(open_by_handle)
{
	with_handle(t);
}

CASE(open_tree, "open_tree(2) OPEN_TREE_CLONE of a directory, close(2)")
{
	OK(close((int)OK(syscall(SYS_open_tree, AT_FDCWD, "a", OPEN_TREE_CLONE))));
}

OPS(open_tree, 24)

SETUP(open_tree)
{
	tree(t);
	OK(close((int)NEED("Linux 5.2", syscall(SYS_open_tree, AT_FDCWD, "a", OPEN_TREE_CLONE))));
}

static int new_tmpfs(void)
{
	return (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
}

static int mounted(int context)
{
	return (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, 0);
}

CASE(fsmount, "fsopen(2), fsconfig(2), fsmount(2) of a tmpfs, close(2)")
{
	int context = OK(new_tmpfs());

	OK(syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0));
	OK(close(OK(mounted(context))));
	OK(close(context));
}

OPS(fsmount, 12)

SETUP(fsmount)
{
	OK(close(NEED("Linux 5.2 and CONFIG_TMPFS", new_tmpfs())));
}

CASE(mount_setattr, "mount_setattr(2): read only, and back")
{
	struct mount_attr set = {.attr_set = MOUNT_ATTR_RDONLY},
			  clear = {.attr_clr = MOUNT_ATTR_RDONLY};

	OK(syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &set, sizeof(set)));
	OK(syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &clear, sizeof(clear)));
}

OPS(mount_setattr, 32)

SETUP(mount_setattr)
{
	struct mount_attr none = {.attr_set = 0};

	fd = (int)NEED("Linux 5.2", syscall(SYS_open_tree, AT_FDCWD, ".", OPEN_TREE_CLONE));
	NEED("Linux 5.12", syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &none, sizeof(none)));
}

static struct mount_request request = {.size = sizeof(request)};

/* The mount that the case's directory is on. */
static void this_mount(struct wl_task *t)
{
	struct statx st;

	buf = memory(t, 4 * PAGE);
	NEED("Linux 6.8", statx(AT_FDCWD, ".", 0, STATX_ID, &st));
	memcpy(&request.mount, (char *)&st + 144, sizeof(request.mount)); /* stx_mnt_id */
	request.param = 0x1 | 0x2 | 0x10; /* STATMOUNT_SB_BASIC, _MNT_BASIC, _MNT_POINT */
	NEED("Linux 6.8", syscall(NR_STATMOUNT, &request, buf, 4 * PAGE, 0));
}

CASE(statmount, "statmount(2): the super block, the mount, and where it is")
{
	OK(syscall(NR_STATMOUNT, &request, buf, 4 * PAGE, 0));
}

SETUP(statmount)
{
	this_mount(t);
}

CASE(listmount, "listmount(2) of all below the root")
{
	OK(syscall(NR_LISTMOUNT, &request, buf, 64, 0));
}

SETUP(listmount)
{
	this_mount(t);
	request.mount = ROOT_OF_ALL;
	request.param = 0;
	NEED("Linux 6.8", syscall(NR_LISTMOUNT, &request, buf, 64, 0));
}

static void read_again(struct wl_task *t)
{
	EXPECT(pread(fd, buf, 65536, 0) > 0);
}

static void proc(struct wl_task *t, const char *needs, const char *path)
{
	buf = memory(t, 65536);
	fd = NEED(needs, open(path, O_RDONLY | O_CLOEXEC));
	read_again(t);
}

CASE(proc_self_status, "pread(2) of /proc/self/status")
{
	read_again(t);
}

OPS(proc_self_status, 8)

SETUP(proc_self_status)
{
	proc(t, "CONFIG_PROC_FS", "/proc/self/status");
}

CASE(proc_meminfo, "pread(2) of /proc/meminfo")
{
	read_again(t);
}

OPS(proc_meminfo, 8)

SETUP(proc_meminfo)
{
	proc(t, "CONFIG_PROC_FS", "/proc/meminfo");
}

CASE(proc_mounts, "pread(2) of /proc/self/mounts")
{
	read_again(t);
}

OPS(proc_mounts, 16)

SETUP(proc_mounts)
{
	proc(t, "CONFIG_PROC_FS", "/proc/self/mounts");
}

/* Few bytes: the kernel takes memory for as many as are asked for (fs/proc/proc_sysctl.c). */
CASE(proc_sys, "pread(2) of /proc/sys/kernel/ostype")
{
	EXPECT(pread(fd, buf, 64, 0) == sizeof("Linux"));
}

SETUP(proc_sys)
{
	proc(t, "CONFIG_PROC_SYSCTL", "/proc/sys/kernel/ostype");
}

CASE(proc_self_fd, "getdents64(2) of /proc/self/fd")
{
	OK(lseek(fd, 0, SEEK_SET));
	EXPECT(syscall(SYS_getdents64, fd, buf, 32768) > 0);
}

OPS(proc_self_fd, 24)

SETUP(proc_self_fd)
{
	buf = memory(t, 65536);
	fd = NEED("CONFIG_PROC_FS", open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

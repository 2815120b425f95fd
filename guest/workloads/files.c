/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What operations on files cost on a file system of their own, which is new. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "files_disk.h"

#define BLOCK 4096
#define BYTES (16 * BLOCK)
#define FILES 100 /* of the directory that is read */

/* Of each task, which is a process where there are several. */
static int file = -1, other = -1, folder = -1;
static char *mapped;
static _Alignas(BLOCK) char data[BYTES];

static int whole(int fd, const void *from, size_t size)
{
	return pwrite(fd, from, size, 0) == (ssize_t)size ? 0 : -1;
}

/* A file of BYTES that is on the disk. */
static int with_file(int flags)
{
	memset(data, 'k', sizeof(data));
	file = open("file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (file < 0 || whole(file, data, BYTES) || fsync(file))
		return -1;
	if (!flags)
		return 0;
	close(file);
	file = open("file", O_RDWR | O_CLOEXEC | flags);
	return file < 0 ? -1 : 0;
}

static int with_plain(void)
{
	return with_file(0);
}

static int with_direct(void)
{
	return with_file(O_DIRECT);
}

static int with_mapping(void)
{
	if (with_file(0))
		return -1;
	mapped = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	return mapped == MAP_FAILED ? -1 : 0;
}

static int with_empty(void)
{
	other = open("other", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	return other < 0 ? -1 : with_file(0);
}

static int with_folder(void)
{
	folder = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return folder < 0 ? -1 : 0;
}

static int with_files(void)
{
	char name[16];
	int fd;

	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "file%03d", i);
		fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0 || close(fd))
			return -1;
	}
	return with_folder();
}

static inline int create(void)
{
	int fd = open("new", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	return fd < 0 || close(fd) || unlink("new") ? -1 : 0;
}

static inline int directory(void)
{
	return mkdir("new", 0700) || rmdir("new") ? -1 : 0;
}

static inline int move(void)
{
	return rename("file", "moved") || rename("moved", "file") ? -1 : 0;
}

static inline int hard_link(void)
{
	return link("file", "new") || unlink("new") ? -1 : 0;
}

static inline int soft_link(void)
{
	char to[8];

	return symlink("file", "new") || readlink("new", to, sizeof(to)) != 4 || unlink("new") ? -1
											       : 0;
}

static inline int open_close(void)
{
	int fd = open("file", O_RDONLY | O_CLOEXEC);

	return fd < 0 || close(fd) ? -1 : 0;
}

static inline int list(void)
{
	long n = lseek(folder, 0, SEEK_SET);

	while (!n || n > 0) {
		n = syscall(SYS_getdents64, folder, data, sizeof(data));
		if (!n)
			return 0;
	}
	return -1;
}

static inline int read_cached(void)
{
	return pread(file, data, BYTES, 0) == BYTES ? 0 : -1;
}

static inline int read_cold(void)
{
	return posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) ? -1 : read_cached();
}

static inline int overwrite(void)
{
	return whole(file, data, BLOCK);
}

static inline int append(void)
{
	return whole(other, data, BYTES) || ftruncate(other, 0) ? -1 : 0;
}

static inline int write_sync(void)
{
	return whole(file, data, BLOCK) || fsync(file) ? -1 : 0;
}

static inline int append_sync(void)
{
	return whole(other, data, BYTES) || fsync(other) || ftruncate(other, 0) ? -1 : 0;
}

static inline int create_sync(void)
{
	int fd = open("new", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	return fd < 0 || close(fd) || syncfs(folder) || unlink("new") ? -1 : 0;
}

static inline int direct_read(void)
{
	return pread(file, data, BLOCK, 0) == BLOCK ? 0 : -1;
}

static inline int mapped_sync(void)
{
	mapped[0]++;
	return msync(mapped, BLOCK, MS_SYNC);
}

static inline int cut(void)
{
	return ftruncate(file, 100) || ftruncate(file, BYTES) ? -1 : 0;
}

static inline int allocate(void)
{
	return fallocate(other, 0, 0, 1 << 20) || ftruncate(other, 0) ? -1 : 0;
}

static inline int punch(void)
{
	return fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, BLOCK, BLOCK) ||
			       pwrite(file, data, BLOCK, BLOCK) != BLOCK
		       ? -1
		       : 0;
}

static inline int attribute(void)
{
	return fsetxattr(file, "user.kdelta", data, 64, 0) || fremovexattr(file, "user.kdelta") ? -1
												: 0;
}

static inline int mode(void)
{
	return fchmod(file, 0644) || fchmod(file, 0600) ? -1 : 0;
}

static inline int extents(void)
{
	struct fiemap *map = (struct fiemap *)data;

	memset(map, 0, sizeof(*map));
	map->fm_length = FIEMAP_MAX_OFFSET;
	map->fm_extent_count = 16;
	return ioctl(file, FS_IOC_FIEMAP, map);
}

static inline int clone_file(void)
{
	return ioctl(other, FICLONE, file) || ftruncate(other, 0) ? -1 : 0;
}

struct kind {
	struct workload workload; /* first: the harness knows no more of it */
	int (*with)(void);
	int (*once)(void);
};

static int setup(struct wl *wl);
static int task_setup(struct wl_task *t);
static const char *const params[] = {"on", "op", "tasks", NULL};

#define KIND(kind_name, its_with, its_once)                  \
	static inline void kind_name##_op(struct wl_task *t) \
	{                                                    \
		if (__builtin_expect(its_once(), 0))         \
			wl_op_failed(t, #kind_name);         \
	}                                                    \
	WORKLOAD_BATCH(kind_name##_batch, kind_name##_op)    \
	static const struct kind kind_name = {               \
		.workload = {.name = #kind_name,             \
			     .task_setup = task_setup,       \
			     .op = kind_name##_op,           \
			     .batch = kind_name##_batch,     \
			     .params = params},              \
		.with = its_with,                            \
		.once = its_once,                            \
	}

KIND(creates, NULL, create);
KIND(makes_directory, NULL, directory);
KIND(renames, with_plain, move);
KIND(links, with_plain, hard_link);
KIND(symlinks, with_plain, soft_link);
KIND(opens, with_plain, open_close);
KIND(lists, with_files, list);
KIND(reads, with_plain, read_cached);
KIND(reads_cold, with_plain, read_cold);
KIND(reads_direct, with_direct, direct_read);
KIND(writes, with_plain, overwrite);
KIND(writes_sync, with_plain, write_sync);
KIND(writes_direct, with_direct, overwrite);
KIND(writes_mapped, with_mapping, mapped_sync);
KIND(appends, with_empty, append);
KIND(appends_sync, with_empty, append_sync);
KIND(creates_sync, with_folder, create_sync);
KIND(truncates, with_plain, cut);
KIND(allocates, with_empty, allocate);
KIND(punches, with_plain, punch);
KIND(attributes, with_plain, attribute);
KIND(modes, with_plain, mode);
KIND(maps_extents, with_plain, extents);
KIND(clones, with_empty, clone_file);

static const struct {
	const char *name;
	const struct kind *kind;
} kinds[] = {
	{"create", &creates},
	{"mkdir", &makes_directory},
	{"rename", &renames},
	{"link", &links},
	{"symlink", &symlinks},
	{"open", &opens},
	{"readdir", &lists},
	{"read", &reads},
	{"read_cold", &reads_cold},
	{"read_direct", &reads_direct},
	{"write", &writes},
	{"write_fsync", &writes_sync},
	{"write_direct", &writes_direct},
	{"write_mapped", &writes_mapped},
	{"append", &appends},
	{"append_fsync", &appends_sync},
	{"create_syncfs", &creates_sync},
	{"truncate", &truncates},
	{"fallocate", &allocates},
	{"punch_hole", &punches},
	{"xattr", &attributes},
	{"chmod", &modes},
	{"fiemap", &maps_extents},
	{"clone", &clones},
};

static bool lacks(int error)
{
	return error == EOPNOTSUPP || error == ENOTTY || error == EINVAL || error == ENOSYS;
}

/* A directory of its own, what the operation needs in it, and one operation to see whether it can be done. */
static int task_setup(struct wl_task *t)
{
	const struct kind *kind = (const struct kind *)t->wl->def;
	char name[16];

	snprintf(name, sizeof(name), "%u", t->nr);
	if (chdir(wl_tmpdir(t->wl)) || (mkdir(name, 0700) && errno != EEXIST) || chdir(name))
		return wl_fail(t->wl, "a directory on %s", wl_param(t->wl, "on"));
	if (!(kind->with && kind->with()) && !kind->once())
		return 0;
	if (lacks(errno))
		return wl_unsupported(t->wl, "%s on %s", wl_param(t->wl, "op"),
				      wl_param(t->wl, "on"));
	return wl_fail(t->wl, "%s on %s", wl_param(t->wl, "op"), wl_param(t->wl, "on"));
}

static int setup(struct wl *wl)
{
	wl->tasks = (unsigned int)wl_param_u64(wl, "tasks");
	wl->processes = wl->tasks > 1;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (wl_param_is(wl, "op", kinds[i].name)) {
			wl->def = &kinds[i].kind->workload;
			return mount_new(wl, wl_param(wl, "on"));
		}
	return wl_fail(wl, "no such operation");
}

static const struct workload files_workload = {
	.name = "files",
	.setup = setup,
	.op = creates_op,
	.batch = creates_batch,
	.params = params,
};
WORKLOAD(files_workload);

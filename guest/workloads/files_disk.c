/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A RAM disk (drivers/block/brd.c) with an empty file system, as
 * tools/filesystems.py recorded it. It does its I/O in the caller, so that
 * nothing but the file system itself decides when.
 *
 * A disk is written once: what an earlier case left behind its file system's
 * back (a log) would not be zero, as mkfs leaves it. The next one is taken then;
 * brd makes it as it is opened (CONFIG_BLOCK_LEGACY_AUTOLOAD since v5.18).
 * The RAM disks of a machine that is no guest are its owner's.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "files_disk.h"

#define RAM_MAJOR 1
#define DISKS_MAX 1024
#define DISK_BYTES (512ul << 20) /* of the recorded file systems */
#define FIRST_BYTES (128 << 10)	 /* hold something of each */
#define FILL (1ul << 63)	 /* beside a place: a run of one word */

static const struct {
	const char *type, *config, *options;
} types[] = {
	/* no thread that zeroes tables of inodes meanwhile */
	{"ext4", "CONFIG_EXT4_FS", "noinit_itable"},
	{"xfs", "CONFIG_XFS_FS", "nouuid"},
	{"btrfs", "CONFIG_BTRFS_FS", NULL},
	{"f2fs", "CONFIG_F2FS_FS", NULL},
};

/* Whether all processes here are ours. */
static bool is_ours(void)
{
	struct stat own, first;

	return !stat("/proc/self/exe", &own) && !stat("/proc/1/exe", &first) &&
	       own.st_dev == first.st_dev && own.st_ino == first.st_ino;
}

/* 1: a new disk; 0: one that was used; negative: an outcome. */
static int open_disk(struct wl *wl, unsigned int nr, char *path, size_t size, int *fd)
{
	static char first[FIRST_BYTES];
	uint64_t bytes = 0;
	ssize_t n;
	size_t i;

	snprintf(path, size, "%s/ram%u", wl_tmpdir(wl), nr);
	if (mknod(path, S_IFBLK | 0600, makedev(RAM_MAJOR, nr)))
		return wl_fail(wl, "mknod of RAM disk %u", nr);
	*fd = open(path, O_RDWR | O_CLOEXEC);
	if (*fd < 0)
		return wl_unsupported(wl, nr ? "a RAM disk more: CONFIG_BLOCK_LEGACY_AUTOLOAD"
					     : "CONFIG_BLK_DEV_RAM");
	if (ioctl(*fd, BLKGETSIZE64, &bytes) || bytes < DISK_BYTES)
		return wl_unsupported(wl, "CONFIG_BLK_DEV_RAM_SIZE=%lu", DISK_BYTES >> 10);
	n = pread(*fd, first, sizeof(first), 0);
	if (n != sizeof(first))
		return wl_fail(wl, "read of RAM disk %u", nr);
	for (i = 0; i < sizeof(first) && !first[i]; i++)
		;
	return i == sizeof(first);
}

static int put(int fd, uint64_t at, const uint64_t *words, size_t n)
{
	size_t bytes = n * sizeof(*words);

	return pwrite(fd, words, bytes, (off_t)(at * sizeof(*words))) == (ssize_t)bytes ? 0 : -1;
}

static int fill(int fd, uint64_t at, uint64_t n, uint64_t word)
{
	uint64_t *words = malloc(n * sizeof(word));
	int failed = !words;

	for (uint64_t i = 0; words && i < n; i++)
		words[i] = word;
	failed = failed || put(fd, at, words, n);
	free(words);
	return failed;
}

/* Runs behind each other: place, number of words, and these, or the one that all are. */
static int write_words(int fd, const uint64_t *word, const uint64_t *end)
{
	int failed = 0;

	while (!failed && end - word > 2) {
		uint64_t at = word[0], n = word[1];

		if (at & FILL) {
			failed = fill(fd, at & ~FILL, n, word[2]);
			word += 3;
		} else if (n > (uint64_t)(end - word) - 2) {
			break;
		} else {
			failed = put(fd, at, word + 2, n);
			word += 2 + n;
		}
	}
	return failed || word != end;
}

static int write_image(struct wl *wl, const char *type, int fd)
{
	static uint64_t words[1 << 14];
	char name[64], path[512];
	ssize_t n;
	int from;

	snprintf(name, sizeof(name), "files/%s.words", type);
	from = open(wl_data(name, path, sizeof(path)), O_RDONLY | O_CLOEXEC);
	n = from < 0 ? -1 : read(from, words, sizeof(words));
	if (n <= 0 || n == sizeof(words) || write_words(fd, words, words + n / sizeof(*words)))
		return wl_fail(wl, "the recorded %s cannot be written", type);
	close(from);
	return fsync(fd) ? wl_fail(wl, "fsync of a RAM disk") : 0;
}

static int mount_at(struct wl *wl, const char *from, const char *type, const char *config,
		    const char *options)
{
	if (!mount(from, wl_tmpdir(wl), type, 0, options))
		return 0;
	if (errno == ENODEV)
		return wl_unsupported(wl, "%s", config);
	return wl_fail(wl, "mount of %s", type);
}

int mount_new(struct wl *wl, const char *type)
{
	char path[512];
	int fd = -1, found = 0;
	unsigned int i, nr;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(types[i].type, type))
			break;
	if (i == sizeof(types) / sizeof(types[0]))
		return 0; /* the case's directory is on tmpfs */
	if (!is_ours())
		return wl_unsupported(wl, "a RAM disk of its own, which guests have");
	if (unshare(CLONE_NEWNS)) /* what is mounted goes with the case */
		return wl_unsupported(wl, "CONFIG_NAMESPACES");
	for (nr = 0; !found && nr < DISKS_MAX; nr++) {
		if (fd >= 0)
			close(fd);
		found = open_disk(wl, nr, path, sizeof(path), &fd);
	}
	if (found < 0)
		return found;
	if (!found)
		return wl_fail(wl, "no RAM disk is new");
	if (write_image(wl, type, fd))
		return -1;
	close(fd);
	return mount_at(wl, path, type, types[i].config, types[i].options);
}

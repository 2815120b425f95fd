/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Mappings that are read, split, told about, given up; System V shared memory. Sizes are in pages of 4096 bytes. */
#include <sys/ipc.h>
#include <sys/shm.h>

#include "parts.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

static int fd;
static char *at;

static void read_each(const char *p, uint64_t pages)
{
	for (uint64_t i = 0; i < pages; i++)
		*(const volatile char *)(p + i * PAGE);
}

static void write_each(char *p, uint64_t pages)
{
	for (uint64_t i = 0; i < pages; i++)
		*(volatile char *)(p + i * PAGE) = 1;
}

/* Anonymous, not there yet, and no huge pages; between two that cannot be read, so that nothing merges with them. */
static char *between(struct wl_task *t, uint64_t pages, int flags)
{
	char *p = OK(mmap(NULL, (pages + 2) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));

	p = OK(mmap(p + PAGE, pages * PAGE, PROT_READ | PROT_WRITE,
		    MAP_ANONYMOUS | MAP_FIXED | flags, -1, 0));
	madvise(p, pages * PAGE, MADV_NOHUGEPAGE); /* fails where there are none at all */
	return p;
}

CASE_N(file_read, "a read of each of N pages of a file in tmpfs, just mapped", 16, 256)
{
	read_each(at, N);
}

OPS(file_read, 512 / N)

AFTER(file_read)
{
	OK(munmap(at, N * PAGE));
	at = OK(mmap(NULL, N * PAGE, PROT_READ, MAP_SHARED, fd, 0));
}

SETUP(file_read)
{
	fd = file(t, "file", N * PAGE);
	at = OK(mmap(NULL, N * PAGE, PROT_READ, MAP_SHARED, fd, 0));
}

CASE(zero_fault, "16 anonymous pages read that nobody wrote: the zero page")
{
	read_each(at, 16);
}

OPS(zero_fault, 16)

AFTER(zero_fault)
{
	OK(madvise(at, 16 * PAGE, MADV_DONTNEED));
}

SETUP(zero_fault)
{
	at = between(t, 16, MAP_PRIVATE);
}

CASE(shared_fault, "16 shared anonymous pages written for the first time")
{
	write_each(at, 16);
}

OPS(shared_fault, 12)

AFTER(shared_fault)
{
	OK(madvise(at, 16 * PAGE, MADV_REMOVE));
}

SETUP(shared_fault)
{
	at = between(t, 16, MAP_SHARED);
	NEED("CONFIG_SHMEM", madvise(at, 16 * PAGE, MADV_REMOVE));
}

CASE(mmap_fixed, "mmap(2) MAP_FIXED over the middle of a mapping, read only, and back")
{
	const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;

	OK(mmap(at + 4 * PAGE, 4 * PAGE, PROT_READ, how, -1, 0));
	OK(mmap(at + 4 * PAGE, 4 * PAGE, PROT_READ | PROT_WRITE, how, -1, 0));
}

OPS(mmap_fixed, 24)

SETUP(mmap_fixed)
{
	at = between(t, 16, MAP_PRIVATE);
}

CASE(mprotect_middle, "mprotect(2) of the middle of a mapping: split it, merge it")
{
	OK(mprotect(at + 4 * PAGE, 4 * PAGE, PROT_READ));
	OK(mprotect(at + 4 * PAGE, 4 * PAGE, PROT_READ | PROT_WRITE));
}

OPS(mprotect_middle, 24)

SETUP(mprotect_middle)
{
	at = between(t, 16, MAP_PRIVATE);
	write_each(at, 16);
}

CASE(mincore, "mincore(2) of 16 pages that are there")
{
	unsigned char there[16];

	OK(mincore(at, 16 * PAGE, there));
}

SETUP(mincore)
{
	at = memory(t, 16 * PAGE);
}

CASE(msync, "msync(2) MS_SYNC of 16 pages of a file in tmpfs")
{
	OK(msync(at, 16 * PAGE, MS_SYNC));
}

SETUP(msync)
{
	fd = file(t, "file", 16 * PAGE);
	at = OK(mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	write_each(at, 16);
}

CASE(madvise_free, "madvise(2) MADV_FREE of 16 pages that are there, each written again")
{
	OK(madvise(at, 16 * PAGE, MADV_FREE));
	write_each(at, 16);
}

OPS(madvise_free, 24)

SETUP(madvise_free)
{
	at = between(t, 16, MAP_PRIVATE);
	write_each(at, 16);
	NEED("CONFIG_MMU", madvise(at, 16 * PAGE, MADV_FREE));
}

CASE(madvise_populate, "madvise(2) MADV_POPULATE_WRITE of 16 pages")
{
	OK(madvise(at, 16 * PAGE, MADV_POPULATE_WRITE));
}

OPS(madvise_populate, 12)

AFTER(madvise_populate)
{
	OK(madvise(at, 16 * PAGE, MADV_DONTNEED));
}

SETUP(madvise_populate)
{
	at = between(t, 16, MAP_PRIVATE);
	NEED("Linux 5.14", madvise(at, 16 * PAGE, MADV_POPULATE_WRITE));
	OK(madvise(at, 16 * PAGE, MADV_DONTNEED));
}

CASE(shmat, "shmat(2) of 16 pages, shmdt(2)")
{
	OK(shmdt(OK(shmat(fd, NULL, 0))));
}

OPS(shmat, 32)

/* Removed at once: it lasts until the last detaches. */
SETUP(shmat)
{
	fd = NEED("CONFIG_SYSVIPC", shmget(IPC_PRIVATE, 16 * PAGE, 0600));
	OK(shmat(fd, NULL, 0));
	OK(shmctl(fd, IPC_RMID, NULL));
}

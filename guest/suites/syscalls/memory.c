/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory: mappings, faults, protection, what moves pages. Sizes are in pages of 4096 bytes. */
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#include "parts.h"

static int fd;
static char *at, *other;

static void touch(char *p, uint64_t pages)
{
	for (uint64_t i = 0; i < pages; i++)
		*(volatile char *)(p + i * PAGE) = 1;
}

/* Anonymous pages that are not there yet, and no huge ones. */
static char *untouched(struct wl_task *t, uint64_t pages)
{
	char *p = OK(mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0));

	madvise(p, pages * PAGE, MADV_NOHUGEPAGE); /* fails where there are none at all */
	return p;
}

static char *map_file(struct wl_task *t, uint64_t pages, int flags)
{
	return OK(mmap(NULL, pages * PAGE, PROT_READ, MAP_PRIVATE | flags, fd, 0));
}

CASE_N(mmap, "mmap(2) of N pages of a file in tmpfs", 1, 10, 1000, 10000)
{
	at = map_file(t, N, 0);
}

OPS(mmap, 32)

AFTER(mmap)
{
	OK(munmap(at, N * PAGE));
}

SETUP(mmap)
{
	fd = file(t, "file", 0);
	OK(ftruncate(fd, (off_t)(N * PAGE)));
}

CASE_N(munmap, "munmap(2) of N pages of a file in tmpfs, all of them mapped", 1, 10, 1000, 10000)
{
	OK(munmap(at, N * PAGE));
}

OPS(munmap, 320 / N)

AFTER(munmap)
{
	at = map_file(t, N, MAP_POPULATE);
}

SETUP(munmap)
{
	fd = file(t, "file", N * PAGE);
	at = map_file(t, N, MAP_POPULATE);
}

CASE_N(file_fault, "the first read of a mapping of N pages of a file in tmpfs", 1, 10, 1000, 10000)
{
	*(volatile char *)at;
}

OPS(file_fault, 32)

AFTER(file_fault)
{
	OK(munmap(at, N * PAGE));
	at = map_file(t, N, 0);
}

SETUP(file_fault)
{
	fd = file(t, "file", (N < 32 ? N : 32) * PAGE); /* as far as a fault looks around */
	OK(ftruncate(fd, (off_t)(N * PAGE)));
	at = map_file(t, N, 0);
}

CASE_N(anon_fault, "N anonymous pages written for the first time", 1, 16, 512)
{
	touch(at, N);
}

OPS(anon_fault, 128 / N)

AFTER(anon_fault)
{
	OK(madvise(at, N * PAGE, MADV_DONTNEED));
}

SETUP(anon_fault)
{
	at = untouched(t, N);
}

CASE(huge_fault, "the first write to a transparent huge page")
{
	touch(at, 1);
}

OPS(huge_fault, 1)

AFTER(huge_fault)
{
	OK(madvise(at, 512 * PAGE, MADV_DONTNEED));
}

SETUP(huge_fault)
{
	char *p = OK(mmap(NULL, 1024 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0));

	at = p + (-(uintptr_t)p & (512 * PAGE - 1));
	NEED("CONFIG_TRANSPARENT_HUGEPAGE", madvise(at, 512 * PAGE, MADV_HUGEPAGE));
}

CASE(cow_fault, "a write to a private page of a file: copy on write")
{
	touch(at, 1);
}

AFTER(cow_fault)
{
	OK(madvise(at, PAGE, MADV_DONTNEED));
	*(volatile char *)at;
}

SETUP(cow_fault)
{
	fd = file(t, "file", PAGE);
	at = OK(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0));
	*(volatile char *)at;
}

CASE(mmap_munmap, "mmap(2) of 16 anonymous pages, write to each, munmap(2)")
{
	at = OK(mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	touch(at, 16);
	OK(munmap(at, 16 * PAGE));
}

OPS(mmap_munmap, 4)

CASE(mprotect, "mprotect(2) of 16 pages that are there: read only, and back")
{
	OK(mprotect(at, 16 * PAGE, PROT_READ));
	OK(mprotect(at, 16 * PAGE, PROT_READ | PROT_WRITE));
}

OPS(mprotect, 32)

SETUP(mprotect)
{
	at = memory(t, 16 * PAGE);
}

CASE(madvise, "madvise(2) MADV_DONTNEED of 16 pages that are there")
{
	OK(madvise(at, 16 * PAGE, MADV_DONTNEED));
}

OPS(madvise, 16)

AFTER(madvise)
{
	touch(at, 16);
}

SETUP(madvise)
{
	at = untouched(t, 16);
	touch(at, 16);
}

CASE(mremap, "mremap(2) of 16 pages that are there, to another place and back")
{
	OK(mremap(at, 16 * PAGE, 16 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, other));
	OK(mremap(other, 16 * PAGE, 16 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at));
}

OPS(mremap, 16)

SETUP(mremap)
{
	char *p = OK(mmap(NULL, 64 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));

	at = OK(mmap(p + 16 * PAGE, 16 * PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	other = p + 40 * PAGE;
	touch(at, 16);
}

CASE(brk, "brk(2): 16 pages more, and back")
{
	OK(sbrk(16 * PAGE));
	OK(sbrk(-16 * (intptr_t)PAGE));
}

OPS(brk, 32)

CASE(mlock, "mlock(2) of 16 pages that are there, munlock(2)")
{
	OK(mlock(at, 16 * PAGE));
	OK(munlock(at, 16 * PAGE));
}

OPS(mlock, 8)

SETUP(mlock)
{
	at = memory(t, 16 * PAGE);
	NEED("CONFIG_MMU", mlock(at, 16 * PAGE));
}

CASE(memfd, "memfd_create(2), ftruncate(2) to a page, close(2)")
{
	int made = OK(memfd_create("kdelta", MFD_CLOEXEC));

	OK(ftruncate(made, PAGE));
	OK(close(made));
}

OPS(memfd, 48)

SETUP(memfd)
{
	OK(close(NEED("CONFIG_MEMFD_CREATE", memfd_create("kdelta", MFD_CLOEXEC))));
}

CASE(process_vm_readv, "process_vm_readv(2) of a page of its own")
{
	struct iovec from = {at, PAGE}, to = {at + PAGE, PAGE};

	EXPECT(process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)PAGE);
}

SETUP(process_vm_readv)
{
	struct iovec none;

	at = memory(t, 2 * PAGE);
	NEED("CONFIG_CROSS_MEMORY_ATTACH", process_vm_readv(getpid(), &none, 0, &none, 0, 0));
}

/* A descriptor that answers for one untouched page. */
static int userfault(struct wl_task *t)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	int u = (int)NEED("CONFIG_USERFAULTFD", syscall(SYS_userfaultfd, O_CLOEXEC));

	at = untouched(t, 1);
	other = memory(t, PAGE);
	range.range.start = (uintptr_t)at;
	range.range.len = PAGE;
	OK(ioctl(u, UFFDIO_API, &api));
	OK(ioctl(u, UFFDIO_REGISTER, &range));
	return u;
}

CASE(userfaultfd_copy, "ioctl(2) UFFDIO_COPY of a page that nobody waits for")
{
	struct uffdio_copy copy = {.dst = (uintptr_t)at, .src = (uintptr_t)other, .len = PAGE};

	OK(ioctl(fd, UFFDIO_COPY, &copy));
}

AFTER(userfaultfd_copy)
{
	OK(madvise(at, PAGE, MADV_DONTNEED));
}

SETUP(userfaultfd_copy)
{
	fd = userfault(t);
}

static void *answer_faults(void *arg)
{
	struct wl_task *t = arg;
	struct uffd_msg msg;

	while (read(fd, &msg, sizeof(msg)) == sizeof(msg)) {
		struct uffdio_copy copy = {
			.dst = (uintptr_t)at, .src = (uintptr_t)other, .len = PAGE};

		OK(ioctl(fd, UFFDIO_COPY, &copy));
	}
	return NULL;
}

CASE(userfaultfd_fault, "a fault that another thread answers: read(2), ioctl(2) UFFDIO_COPY")
{
	touch(at, 1);
}

OPS(userfaultfd_fault, 32)

AFTER(userfaultfd_fault)
{
	OK(madvise(at, PAGE, MADV_DONTNEED));
}

SETUP(userfaultfd_fault)
{
	pthread_t thread;

	fd = userfault(t);
	EXPECT(!pthread_create(&thread, NULL, answer_faults, t));
}

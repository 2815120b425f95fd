/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One address space and several; futexes. */
#include <linux/futex.h>
#include <stdatomic.h>

#include "../../case.h"

#define PAGE 4096

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint32_t one;
static __thread uint32_t own;

static inline void map_and_unmap(struct wl_task *t)
{
	void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(p != MAP_FAILED);
	OK(munmap(p, PAGE));
}

static inline void map_and_touch(struct wl_task *t)
{
	volatile char *p =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(p != MAP_FAILED);
	*p = 1;
	OK(munmap((void *)p, PAGE));
}

CASE(mmap_threads, "mmap(2) and munmap(2) of a page by threads: one address space")
{
	map_and_unmap(t);
}

OPS(mmap_threads, 24)
EVERY_CPU(mmap_threads, threads);

CASE(mmap_processes, "mmap(2) and munmap(2) of a page by processes")
{
	map_and_unmap(t);
}

OPS(mmap_processes, 24)
EVERY_CPU(mmap_processes, processes);

CASE(fault_threads, "a page is mapped, touched and unmapped by threads: one address space")
{
	map_and_touch(t);
}

OPS(fault_threads, 24)
EVERY_CPU(fault_threads, threads);

CASE(fault_processes, "a page is mapped, touched and unmapped by processes")
{
	map_and_touch(t);
}

OPS(fault_processes, 24)
EVERY_CPU(fault_processes, processes);

CASE(futex_one, "futex(2) FUTEX_WAKE of one word, on which nobody waits, by threads")
{
	OK(syscall(SYS_futex, &one, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
}

EVERY_CPU(futex_one, threads);

CASE(futex_separate, "futex(2) FUTEX_WAKE, of a word of its own in each thread")
{
	OK(syscall(SYS_futex, &own, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
}

EVERY_CPU(futex_separate, threads);

CASE(mutex_one, "threads take one pthread mutex and yield the CPU while they hold it")
{
	pthread_mutex_lock(&mutex);
	OK(sched_yield());
	pthread_mutex_unlock(&mutex);
}

OPS(mutex_one, 24)
EVERY_CPU(mutex_one, threads);

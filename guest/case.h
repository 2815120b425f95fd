/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A case: one operation in a few lines of C, without a TOML file. Many fit into
 * one file; each runs in a process of its own, so static variables are its state.
 *
 *	static int fd;
 *
 *	CASE(eventfd, "eventfd(2): add to the counter, read it back")
 *	{
 *		uint64_t one = 1;
 *
 *		OK(write(fd, &one, 8));
 *		OK(read(fd, &one, 8));
 *	}
 *
 *	SETUP(eventfd)
 *	{
 *		fd = NEED("CONFIG_EVENTFD", eventfd(0, 0));
 *	}
 *
 * CASE	 the operation: all of it is measured, also what it makes other tasks do
 * SETUP	 once before; the working directory is an empty one on tmpfs
 * AFTER	 undoes each operation, not measured (close after open)
 * TEARDOWN	 once after; descriptors, memory, helpers and files go by themselves
 * EVERY_CPU a task on each CPU at once: EVERY_CPU(name, processes) or (name, threads).
 *		 Without it a case has one task; counted on several CPUs, a process on each
 * SHARED	 once before all processes; SETUP then is each one's, in a directory of its
 *		 own below that of SHARED. Threads share one process: they have SETUP alone
 * CASE_N	 one case for each number, NAME-10 and NAME-100; in all of its parts it is N
 * HELPER	 another process beside it, as CASE's partner
 * OPS	 operations of one exact interval: a number, or NUMBER / N (between 1 and
 *		 64). 64 where nothing is said; aim at 20,000 to 500,000 instructions. An
 *		 operation that takes a random number (a stack canary, a port) wants a
 *		 multiple of 12: the kernel makes 12 longs or 24 words at once (v5.18+,
 *		 drivers/char/random.c), and so each interval pays for as many.
 *
 * All processes of a case are SCHED_BATCH: none preempts another by waking up.
 *
 * The host reads CASE, CASE_N and OPS from the source: they start a line, outside
 * of #if, and take plain strings and decimal numbers (src/kdelta/spec/sources.py).
 */
#ifndef KDELTA_CASE_H
#define KDELTA_CASE_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "workload.h"

/* The value of a call; -1 fails the case with the call's text and errno. Cheap in CASE. */
#define OK(...) CASE_CHECKED(NULL, #__VA_ARGS__, __VA_ARGS__)
/* The same in SETUP; where the kernel lacks it (ENOSYS, EPERM ...) the case is unsupported: "needs CONFIG_X". */
#define NEED(what, ...) CASE_CHECKED(what, #__VA_ARGS__, __VA_ARGS__)
/* Fails the case unless it is true. */
#define EXPECT(...) \
	((void)(__builtin_expect(!(__VA_ARGS__), 0) && case_broke(t, #__VA_ARGS__, NULL)))
/* In SETUP: another process, true in it; it ends when its block does, at the latest with the case. */
#define HELPER() case_helper(t)

#define CASE(name, title) CASE_OF(name, title, 0)
#define CASE_N(name, title, ...) CASE_OF(name, title, __VA_ARGS__)
#define OPS(name, number)                                                \
	uint64_t CASE_ID(ops, name)(uint64_t N __attribute__((unused))); \
	uint64_t CASE_ID(ops, name)(uint64_t N __attribute__((unused)))  \
	{                                                                \
		return number;                                           \
	}
#define SETUP(name) CASE_HOOK(setup, name)
#define SHARED(name) CASE_HOOK(shared, name)
#define EVERY_CPU(name, how) const enum case_tasks CASE_ID(every_cpu, name) = CASE_TASKS_##how
#define AFTER(name) CASE_HOOK(after, name)
#define TEARDOWN(name) CASE_HOOK(teardown, name)

/* From here on it is how, not what. The suite's name (guest/binary.py) keeps equal names apart. */
#ifdef CASE_SUITE
#define CASE_PREFIX CASE_TEXT(CASE_SUITE) "/"
#else
#define CASE_SUITE own
#define CASE_PREFIX ""
#endif
#define CASE_TEXT(x) CASE_TEXT_(x)
#define CASE_TEXT_(x) #x
#define CASE_PASTE(a, suite, b) CASE_PASTE_(a, suite, b)
#define CASE_PASTE_(a, suite, b) case_##a##_##suite##_##b
#define CASE_ID(part, name) CASE_PASTE(part, CASE_SUITE, name)

#define CASE_ARGS \
	struct wl_task *t __attribute__((unused)), const uint64_t N __attribute__((unused))
#define CASE_PART(part, name) void CASE_ID(part, name)(CASE_ARGS)
#define CASE_HOOK(part, name)                        \
	CASE_PART(part, name) __attribute__((weak)); \
	CASE_PART(part, name)

#define CASE_CHECKED(needs, text, ...)                           \
	({                                                       \
		__typeof__(__VA_ARGS__) result_ = (__VA_ARGS__); \
		if (__builtin_expect((long)result_ == -1, 0))    \
			case_broke(t, text, needs);              \
		result_;                                         \
	})

#define CASE_OF(case_name, case_title, ...)                                                \
	static inline CASE_PART(op, case_name);                                            \
	CASE_PART(setup, case_name) __attribute__((weak));                                 \
	CASE_PART(shared, case_name) __attribute__((weak));                                \
	extern const enum case_tasks CASE_ID(every_cpu, case_name) __attribute__((weak));  \
	CASE_PART(after, case_name) __attribute__((weak));                                 \
	CASE_PART(teardown, case_name) __attribute__((weak));                              \
	uint64_t CASE_ID(ops, case_name)(uint64_t) __attribute__((weak));                  \
	static void CASE_ID(once, case_name)(struct wl_task * t)                           \
	{                                                                                  \
		CASE_ID(op, case_name)(t, case_number);                                    \
	}                                                                                  \
	static void CASE_ID(batch, case_name)(struct wl_task * t, uint64_t n)              \
	{                                                                                  \
		for (const uint64_t N = case_number; n; n--)                               \
			CASE_ID(op, case_name)(t, N);                                      \
	}                                                                                  \
	/* Not static: a second case of that name must not link. */                        \
	const struct wl_case CASE_ID(def, case_name) = {                                   \
		.name = CASE_PREFIX #case_name,                                            \
		.title = case_title,                                                       \
		.numbers = (const uint64_t[]){__VA_ARGS__},                                \
		.nnumbers = sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t),    \
		.once = CASE_ID(once, case_name),                                          \
		.batch = CASE_ID(batch, case_name),                                        \
		.setup = CASE_ID(setup, case_name),                                        \
		.shared = CASE_ID(shared, case_name),                                      \
		.every_cpu = &CASE_ID(every_cpu, case_name),                               \
		.after = CASE_ID(after, case_name),                                        \
		.teardown = CASE_ID(teardown, case_name),                                  \
		.ops = CASE_ID(ops, case_name),                                            \
	};                                                                                 \
	static const struct wl_case *const CASE_ID(entry, case_name)                       \
		__attribute__((used, section("kdelta_cases"))) = &CASE_ID(def, case_name); \
	static inline CASE_PART(op, case_name)

enum case_tasks { CASE_TASKS_processes, CASE_TASKS_threads };

struct wl_case {
	const char *name, *title;
	const uint64_t *numbers; /* one 0 where the case has no variants */
	size_t nnumbers;
	void (*once)(struct wl_task *t);
	void (*batch)(struct wl_task *t, uint64_t n);
	/* These are NULL where the case has none. */
	void (*setup)(struct wl_task *t, uint64_t N);
	void (*shared)(struct wl_task *t, uint64_t N);
	const enum case_tasks *every_cpu;
	void (*after)(struct wl_task *t, uint64_t N);
	void (*teardown)(struct wl_task *t, uint64_t N);
	uint64_t (*ops)(uint64_t N);
};

extern uint64_t case_number; /* N of the case that runs */

/* Sets the outcome, and leaves SETUP or CASE for good; true where it cannot (AFTER). */
bool case_broke(struct wl_task *t, const char *what, const char *needs) __attribute__((cold));
bool case_helper(struct wl_task *t);

/* The workload that a case is, NULL where there is none of that name. One at a time. */
const struct workload *case_workload(const char *name);
/* All cases, a line each on standard output: name, operations, title. */
void case_list(void);

#endif

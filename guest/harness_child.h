/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The process of a case, seen from outside: it says whole records and, last, its outcome. */
#ifndef KDELTA_HARNESS_CHILD_H
#define KDELTA_HARNESS_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "jobs.h"
#include "stream.h"

struct child {
	pid_t pid;
	int fd; /* its records */
	int status;
	bool ended, late;
	bool stays;	/* closed the pipe, but lives on */
	long oom_kills; /* of this system, before it began */
	bool died;	/* the kernel had found a bug of its own by then */
	struct text said;
};

/* Reads until the outcome is there, the child has ended, or its time is over. */
void child_collect(struct child *c, uint64_t limit_ns);
/* Ends the child and all that it left behind; `all` says that nobody else's processes are there. */
void child_finish(struct child *c, bool all, const char *cgroup);
/* Where others' processes are there: ends what it left behind in process groups of their own, as programs have. */
void child_end_session(const struct child *c);
bool child_has_outcome(const struct child *c);
bool child_is_ok(const struct child *c);
/* Whether the kernel ended a task for a bug of its own: an oops. */
bool child_kernel_died(void);
/* Why there is no outcome. */
void child_describe_death(const struct child *c, const struct job *job, char *why, size_t size);

#endif

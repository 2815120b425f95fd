/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A process forked ahead of its work, before the snapshot is taken: what it does
 * afterwards is the work alone. It waits for its order on a pipe.
 */
#ifndef KDELTA_HARNESS_READY_H
#define KDELTA_HARNESS_READY_H

#include <stddef.h>
#include <sys/types.h>

struct ready {
	pid_t pid; /* 0: there is none, or it has had its order */
	int order;
};

/* Forks a process that will run(arg, order, bytes) and end; -1 where it cannot. */
int ready_fork(struct ready *r, void (*run)(void *arg, const char *order, size_t n), void *arg);
/*
 * Has it fork the process that takes its place: what that one is made of lies where the kernel's next
 * objects do by now. The pipe, which it has too, takes the word of that. For a caller that adopts
 * orphans; 0, or -1.
 */
int ready_again(struct ready *r, const int says[2]);
/* Hands it its order and gives up its record; returns its pid, or -1. */
pid_t ready_go(struct ready *r, const char *order, size_t n);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ways of lifetimes.c: each is one life of an object, on a path where kernels have leaked. */
#ifndef KDELTA_LIFETIMES_H
#define KDELTA_LIFETIMES_H

#include "../workload.h"

struct way {
	const char *name;
	int (*setup)(struct wl *wl);
	void (*op)(struct wl_task *t);
	void (*teardown)(struct wl *wl);
};

/* Ends with one whose name is NULL. */
extern const struct way lifetimes_pidfd[], lifetimes_limits[], lifetimes_memory[];

int lifetimes_pidfd_open(int pid, unsigned int flags);
/* clone3 of a process with CLONE_PIDFD; `pidfd` is where the kernel stores the descriptor. */
int lifetimes_clone3(int *pidfd);
int lifetimes_need_clone3(struct wl *wl);
/* waitpid, whatever interrupts it. */
void lifetimes_reap(int pid);

#endif

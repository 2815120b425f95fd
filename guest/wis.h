/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What an unmodified will-it-scale testcase is promised, and how it becomes a
 * workload.
 *
 * A testcase NAME.c is built in three steps (guest/binary.py):
 *	cc -c NAME.c			as it is
 *	objcopy --redefine-sym testcase=wis_NAME_testcase
 *		(testcase_description, testcase_prepare, testcase_cleanup alike)
 *		--keep-global-symbol for these four
 *	cc -c -DWIS_SYMBOL=NAME -DWIS_NAME='"NAME"' wis.c
 * so that testcases that define the same names fit into one program.
 */
#ifndef KDELTA_WIS_H
#define KDELTA_WIS_H

#include "workload.h"

/* Called by testcases: a thread or a process, by the mode of the case; ends with the task. */
void new_task(void *(*func)(void *), void *arg);

/* One testcase, as its file defines it; prepare and cleanup may be missing. */
struct wis_testcase {
	void (*run)(unsigned long long *iterations, unsigned long nr);
	void (*prepare)(unsigned long tasks);
	void (*cleanup)(void);
};

int wis_setup(struct wl *wl, const struct wis_testcase *test);
void wis_run(struct wl_task *t, volatile uint64_t *iterations, const struct wis_testcase *test);

#endif

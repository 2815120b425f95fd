/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KDELTA_SELFTEST_H
#define KDELTA_SELFTEST_H

#include "jobs.h"

#define SELFTEST_JOB "selftest" /* in the place of a workload's name */

/*
 * Runs the packed program that the job's parameter program= names, in its own
 * directory, and writes what it says as records to fd:
 *	{"t":"out","j":0,"text":"ok 1 ..."}	a line, on either stream
 *	{"t":"val","j":0,"name":"exit","v":4}	its exit status, or name "signal"
 * The last record is "done": ok where the program ended, whatever it returned.
 */
void selftest_run(const struct job *job, int fd);

#endif

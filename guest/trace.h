/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Causes from inside the kernel: a job's "trace" lines define events and
 * triggers in the tracefs, which count while the marked operations run. What
 * they mean is the host's affair (recipes/collectors); here they are written in
 * order, armed, disarmed, read and undone.
 *
 *	trace probe NAME	one thing to find out, in one of several ways:
 *	trace try NAME		a way; the first whose "do" lines are all accepted is it
 *	trace do FILE TEXT	appends TEXT to FILE, before the case starts
 *	trace arm FILE TEXT	... right before the operations, in the order of the probes
 *	trace disarm FILE TEXT	... right after them, the last probe first
 *	trace read FILE		sends FILE to the host
 *	trace undo FILE TEXT	... once the case has ended, however it did
 */
#ifndef KDELTA_TRACE_H
#define KDELTA_TRACE_H

struct harness;
struct job;
struct text;

/* All do nothing for a job without trace lines. -1 with the error set: there is no tracefs. */
int trace_prepare(struct harness *h);
void trace_arm(struct harness *h);
void trace_disarm(struct harness *h);
/* Adds the records: what was read, what was refused, the kernel's error log. */
void trace_collect(struct harness *h);
/* The records of one text, in chunks. */
void trace_records(struct text *out, unsigned int job, const char *name, const struct text *t);
/* By the process that runs the jobs: a case may have been killed. */
void trace_undo(const struct job *job);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The job list, parsed (ARCHITECTURE.md, "Contract: jobs"). */
#ifndef KDELTA_JOBS_H
#define KDELTA_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct param {
	const char *key, *value;
};

/* A line of what a job collects with the kernel's tracefs (trace.h). */
enum trace_verb {
	TRACE_PROBE,
	TRACE_TRY,
	TRACE_DO,
	TRACE_ARM,
	TRACE_DISARM,
	TRACE_READ,
	TRACE_UNDO
};

struct trace_line {
	enum trace_verb verb;
	const char *name; /* of a probe or a try; else a file below the tracefs */
	const char *text; /* what is written there, "" where nothing is */
};

struct job {
	unsigned int nr;
	const char *workload;
	uint64_t limit_ms, warmup, windows, window_ms, latency_ops, reps, ops;
	uint64_t pmu;	      /* windows under the CPU's counters, after the timed ones */
	uint64_t batches;     /* leak check: lives of `ops` operations each; 0: a measurement */
	const char *pressure; /* "2x60%", NULL without */
	bool cgroup_child;
	struct param *params;
	size_t nparams;
	struct trace_line *trace;
	size_t ntrace;
	char bad[160]; /* why this job cannot run, "" where it can */
};

struct jobs {
	bool exact, snapshot;
	bool unrehearsed; /* shall be: there is one seed */
	bool rehearsal;	  /* uncounted, and once is enough */
	bool rehearsed;	  /* so it was run before, by this guest */
	uint64_t seed, settle_ms;
	uint64_t scatter;  /* where the kernel's objects lie, as this says; 0: as they happen to */
	uint64_t turns_ms; /* several CPUs: how long after the start their turns become short */
	uint64_t tick_ns;  /* a tick of the kernel's timer, by the clock; 0: none is known */
	uint64_t turns_ns; /* that instant, by the clock; whoever starts the jobs sets it */
	const char *port;  /* of a machine that is no guest: its serial console, by name */
	struct job *jobs;
	size_t njobs;
	char *text; /* all strings point into it */
};

#define JOB_NR_MAX 0xffffffu /* an interval's id is nr << 8 | repetition */
#define JOB_REPS_MAX 256u

/*
 * Takes a copy of `text`. A job that cannot run but has a number is kept with
 * `bad` set. Returns 0, or -1 with a sentence in `why` where the list as a
 * whole cannot be believed: no header, no end, an unknown setting.
 */
int jobs_parse(struct jobs *js, const char *text, size_t n, char *why, size_t size);
void jobs_free(struct jobs *js);
const char *job_param(const struct job *j, const char *key);

#endif

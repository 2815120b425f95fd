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

struct job {
	unsigned int nr;
	const char *workload;
	uint64_t limit_ms, warmup, windows, window_ms, latency_ops, reps, ops;
	bool cgroup_child;
	struct param *params;
	size_t nparams;
	char bad[160]; /* why this job cannot run, "" where it can */
};

struct jobs {
	bool exact, snapshot;
	uint64_t seed, settle_ms;
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

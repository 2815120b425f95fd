/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inside the harness. A case is a process: it sets the workload up, drives its
 * tasks, and hands its records to the process that owns the stream in one go at
 * its end, so that nothing of ours runs beside a measurement.
 *
 *	harness_boss.c	runs each job in a child, with its time limit, cgroup, scratch directory
 *	harness_case.c	a case from setup to its outcome; what workloads call
 *	harness_tasks.c	tasks as threads or processes: gate, stop, exit
 *	harness_timed.c	windows, latencies; harness_exact.c  marked intervals
 *	harness_batch.c	one life of a case without measuring; harness_leaks.c  what lives leave behind
 */
#ifndef KDELTA_HARNESS_H
#define KDELTA_HARNESS_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <time.h>

#include "jobs.h"
#include "stream.h"
#include "workload.h"

#define CACHE_LINES 128 /* x86 fetches lines in pairs */

enum phase { PHASE_WAIT, PHASE_RUN, PHASE_LATENCY, PHASE_STOP };
enum state { STATE_OK, STATE_UNSUPPORTED, STATE_FAILED };

/* One task, on cache lines of its own, in memory that all tasks' processes share. */
struct slot {
	struct wl_task t;
	volatile uint64_t ops;
	volatile uint64_t span_ns; /* of ops alone, where `after` is left out of the time */
	uint64_t nsamples;
	uint64_t *samples; /* ns, of the latency phase; one mapping a task */
	pid_t pid;
	pthread_t thread;
	_Atomic bool sampled; /* has its share of latencies */
	_Atomic bool left;    /* has ended its loop */
} __attribute__((aligned(CACHE_LINES)));

struct harness {
	struct wl wl;
	const struct job *job;
	const char *tmp_dir;
	uint64_t give_up_ns; /* half the time limit: no latency is sampled beyond */
	struct text out;     /* records, a line each */
	struct slot *slots;
	cpu_set_t cpus;	      /* those allowed */
	unsigned int counted; /* tasks whose operations count */
	pid_t owner;
	_Atomic uint32_t phase __attribute__((aligned(CACHE_LINES)));
	_Atomic uint32_t rep; /* exact: counts gates opened */
	_Atomic uint32_t event
		__attribute__((aligned(CACHE_LINES))); /* the controller waits for it */
	_Atomic uint32_t ready, pending, counted_left;
	_Atomic int state;
	char why[256];
};

static inline struct harness *harness_of(const struct wl *wl)
{
	return wl->harness;
}

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* n operations and, where the workload has one, what undoes each. */
static inline void run_ops(const struct workload *def, struct wl_task *t, uint64_t n)
{
	if (def->batch && !def->after) {
		def->batch(t, n);
		return;
	}
	for (; n; n--) {
		def->op(t);
		if (def->after)
			def->after(t);
	}
}

/* harness_case.c */
const struct workload *workload_named(const char *name);
bool case_known(const struct job *job);
/* Runs a job to its outcome and writes its records to fd, the last one is "done". */
void case_run(const struct jobs *js, const struct job *job, const char *data_dir,
	      const char *tmp_dir, int fd);
bool case_failed(struct harness *h);
int case_blame(struct harness *h, enum state state, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* A mapping that all processes of the case share; NULL with the case blamed. */
void *case_shared(struct harness *h, size_t bytes);
/* "unsupported", "failed" ... as one record. */
void done_record(struct text *t, unsigned int job, const char *state, const char *why);

/* harness_tasks.c */
bool tasks_inline(const struct harness *h);
/* Pins the caller to the CPU of task nr, round robin over those allowed. */
void tasks_pin(const struct harness *h, unsigned int nr);
/* Starts all tasks and returns when each has been set up; -1 with the case blamed. */
int tasks_start(struct harness *h);
/* Says stop, waits until all have ended. */
void tasks_stop(struct harness *h);
void tasks_phase(struct harness *h, enum phase phase);
/* Wakes the controller. */
void tasks_event(struct harness *h);
/* Waits for cond(h) or a failure; without a timer, so also inside exact intervals. */
void tasks_wait(struct harness *h, bool (*cond)(struct harness *h));
void futex_wait(_Atomic uint32_t *word, uint32_t value);
void futex_wake(_Atomic uint32_t *word);

/* harness_timed.c, harness_exact.c: what the controller does, and a task's loop. */
void timed_inline(struct harness *h);
void timed_tasks(struct harness *h);
void timed_loop(struct harness *h, struct slot *s);
void exact_inline(struct harness *h);
void exact_tasks(struct harness *h);
void exact_loop(struct harness *h, struct slot *s);

/* harness_batch.c */
void batch_life(struct harness *h);
void batch_loop(struct harness *h, struct slot *s);

/* harness_leaks.c: one reading before the first counted life, one after each. */
struct leaks;
struct leaks *leaks_start(struct stream *s, unsigned int job);
void leaks_read(struct leaks *l);
void leaks_report(const struct leaks *l, uint64_t ops);
void leaks_end(struct leaks *l);

/* harness_clock.c */
struct clock_cost {
	double read_median_ns, read_least_ns, step_ns;
};
void clock_measure(struct clock_cost *c);

/* harness_kbest.c: 0, or -1 where the samples have no K-best. Sorts them. */
int kbest(uint64_t *samples, size_t n, double *ns);

/* harness_perturb.c */
void crng_seed(uint64_t seed);
/* A process that holds what (seed, job) says, until it is killed; -1 where there is none. */
pid_t perturb_start(uint64_t seed, unsigned int job);

/* harness_boss.c; harness_hello.c */
struct boss {
	struct stream *stream;
	const char *data_dir;
	bool init;   /* PID 1 of a guest of our own */
	char **argv; /* of PID 1, else NULL: the kernel hands it the words that it does not know */
};
void boss_run(const struct boss *b, const struct jobs *js);
void boss_hello(const struct boss *b, const char *port);

#endif

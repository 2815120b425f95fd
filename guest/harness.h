/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inside the harness. A case is a process: it sets the workload up, drives its
 * tasks, and hands its records to the process that owns the stream in one go at
 * its end, so that nothing of ours runs beside a measurement.
 *
 * Who calls whom, from the top; nobody calls upwards:
 *
 *	harness_supervisor.c	runs the jobs, one after another: cgroup, scratch directory, records
 *	harness_child.c		the process of a case: its records, its time limit, its end
 *	harness_case.c		a case from setup to its outcome
 *	harness_timed.c		windows, latencies; harness_exact.c  marked intervals,
 *				harness_free.c  of loops that never return;
 *				harness_tick.c  both begin right after a tick;
 *				harness_pmu.c  windows under the CPU's counters;
 *				harness_batch.c  one life without measuring, for harness_leaks.c
 *	harness_rehearsal.c	cases before guests part, for what QEMU translates
 *	harness_api.c		what workloads call (workload.h)
 *	harness_tasks.c		tasks as threads or processes: gate, stop, exit
 *	harness_outcome.c	how the case went
 */
#ifndef KDELTA_HARNESS_H
#define KDELTA_HARNESS_H

#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <time.h>

#include "harness_ready.h"
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
	pid_t tid; /* timed */
	pthread_t thread;
	_Atomic bool sampled; /* has its share of latencies */
	_Atomic bool left;    /* has ended its loop */
} __attribute__((aligned(CACHE_LINES)));

struct harness {
	struct wl wl;
	const struct job *job;
	const char *tmp_dir;
	bool stays;	     /* no process ends: the machine does */
	bool rehearsal;	     /* exact: no round warms up */
	bool rehearsed;	     /* exact: before this process began */
	uint64_t give_up_ns; /* half the time limit: no latency is sampled beyond */
	struct text out;     /* records, a line each */
	struct slot *slots;
	void (*loop)(struct harness *h,
		     struct slot *s); /* of each task, between the gate and the stop */
	cpu_set_t cpus;		      /* those allowed */
	unsigned int counted;	      /* tasks whose operations count */
	pid_t owner;
	_Atomic uint32_t phase __attribute__((aligned(CACHE_LINES)));
	_Atomic uint32_t rep; /* exact: counts gates opened */
	uint32_t rests;	      /* exact: that the controller has taken */
	uint64_t tick_ns;     /* exact: when one of the kernel's timer was, or 0 */
	uint64_t turns_ns;    /* exact, several CPUs: when their turns become short; 0: they are */
	uint64_t round_ops;   /* exact: of each counted task, once the gate opens */
	char *counters;	      /* exact, free_run: a page a task, shared */
	uint64_t *rep_ops;    /* exact, free_run: by interval, shared */
	_Atomic uint32_t event
		__attribute__((aligned(CACHE_LINES))); /* the controller waits for it */
	_Atomic uint32_t ready, pending, counted_left;
	_Atomic uint32_t
		met; /* exact, several CPUs: tasks that have come to the start of their operations, ever */
	_Atomic int state;
	char why[256];
};

static inline struct harness *harness_of(const struct wl *wl)
{
	return wl->harness;
}

/* Of the machine: then exact counts are also of what crosses between them. */
static inline bool several_cpus(const struct harness *h)
{
	return CPU_COUNT(&h->cpus) > 1;
}

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The same, where nobody makes it go faster (guest/workloads/program_clock.h). */
static inline uint64_t steady_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
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

/* harness_outcome.c: the first error stays, and is the outcome. */
bool case_failed(struct harness *h);
int set_error(struct harness *h, enum state state, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* With the text of errno value `error`, unless it is 0. */
int set_verror(struct harness *h, enum state state, int error, const char *fmt, va_list args)
	__attribute__((format(printf, 4, 0)));
/* "unsupported", "failed" ... as one record. */
void done_record(struct text *t, unsigned int job, const char *state, const char *why);
/* The record of counted operations. */
void put_rep(struct harness *h, uint32_t r, uint64_t ops);

/* harness_tasks.c */
bool tasks_inline(const struct harness *h);
/* Pins the caller to the CPU of task nr, round robin over those allowed. */
void tasks_pin(const struct harness *h, unsigned int nr);
/* A mapping that all processes of the case share; NULL with the error set. */
void *tasks_shared(struct harness *h, size_t bytes);
/* Starts all tasks and returns when each has been set up; -1 with the error set. */
int tasks_start(struct harness *h, void (*loop)(struct harness *h, struct slot *s));
/* The loop of a task that is not counted: it goes on until no counted one can need it. */
void tasks_background(struct harness *h, struct slot *s);
/* Says stop, waits until all have ended. */
void tasks_stop(struct harness *h);
void tasks_phase(struct harness *h, enum phase phase);
/* Wakes the controller. */
void tasks_event(struct harness *h);
/* Waits for cond(h) or a failure; without a timer, so also inside exact intervals. */
void tasks_wait(struct harness *h, bool (*cond)(struct harness *h));
void futex_wait(_Atomic uint32_t *word, uint32_t value);
void futex_wake(_Atomic uint32_t *word);

/* harness_api.c: where wl_data() looks. */
void api_data_root(const char *folder);

/* harness_timed.c, harness_exact.c, harness_batch.c: all that is between setup and teardown. */
void timed_inline(struct harness *h);
void timed_tasks(struct harness *h);
void exact_inline(struct harness *h);
void exact_tasks(struct harness *h);
void exact_free(struct harness *h);
void batch_life(struct harness *h);

/* harness_pmu.c: does nothing where the job does not ask for it. Windows of n operations of the only task. */
void pmu_inline(struct harness *h, uint64_t n);
/* Of tasks that run; next waits for the end of a window and says its operations, 0 where a task has left. */
void pmu_tasks(struct harness *h, uint64_t (*next)(struct harness *h));

/* harness_case.c */
bool case_known(const struct job *job);
/* Whether it is a workload: not selftests, not the kernel's names. */
bool case_measures(const struct job *job);
/*
 * Runs a job to its outcome and writes its records to fd, the last one is "done". With
 * `stays` it does not return: the machine ends with the outcome.
 */
void case_run(const struct jobs *js, const struct job *job, const char *data_dir,
	      const char *tmp_dir, int fd, bool stays);

/* harness_rest.c: the sleep before exact and traced operations. */
void exact_rest(struct harness *h);
/* The one before operations that are counted: on several CPUs, until their turns are short. */
void exact_rest_counted(struct harness *h);
/* harness_tick.c: waits until right after a tick of the kernel's timer; the time then. */
uint64_t exact_after_tick(const struct harness *h);
/* Waits for a tick; the time right after it. */
uint64_t exact_tick(void);
/* harness_arm.c: from here on code is translated with its counters. */
void exact_arm(void);
/* It is translated without: said by PID 1 at the start, and after the last interval. */
void exact_quiet(void);
/* harness_traced.c: the operations of a job with trace lines, by rounds of some for each counted task. */
void traced_ops(struct harness *h, void (*round)(struct harness *h, uint64_t ops));

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
/* Of a sequence that the state says: splitmix64 (Steele, Lea, Flood 2014). */
static inline uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}
void crng_seed(uint64_t seed);
/* Its buffers are filled anew: when that is no longer hangs on what ran before. */
void crng_renew(void);
/* What holds what the seed says, and the pipe on which it says that it does. */
struct holder {
	struct ready ready; /* forked ahead, or not */
	int says[2];
	bool in_guest; /* of our own; another machine waits for each gap that is left (synchronize_net) */
};
/* A process that holds until it is killed; -1 where there is none. */
pid_t perturb_start(uint64_t seed, struct holder *holder);
/* A span that the seed says, for the nr-th time. */
uint64_t perturb_ns(uint64_t seed, uint32_t nr, uint64_t below);
int perturb_prepare(struct holder *holder);
/* Sleeps until what went before, an exit or a perturbation, has come to rest. */
void perturb_rest(void);

/* harness_supervisor.c; harness_hello.c */
/* Forked before the snapshot was taken, for the first job of the restored guest. */
struct prepared {
	struct ready child;
	struct holder holder;
	int records[2];
	const char *source; /* the list of jobs as it came */
	size_t source_bytes;
};
struct supervisor {
	struct stream *stream;
	const char *data_dir;
	bool init;		   /* PID 1 of a guest of our own */
	struct prepared *prepared; /* NULL: no snapshot */
	char **argv; /* of PID 1, else NULL: the kernel hands it the words that it does not know */
};
void supervisor_run(const struct supervisor *sv, const struct jobs *js);
/* Disturbs a restored guest by its seed; -1 where it cannot. */
int supervisor_perturb(const struct supervisor *sv, uint64_t seed);
/* Forks what the first job will need; -1 where it cannot. */
int supervisor_prepare(const struct supervisor *sv);
/* harness_rehearsal.c: uncounted; where that fails, each guest pays for it itself. */
/* Once through what any case needs. */
void rehearse_any(const struct supervisor *sv, uint64_t tick_ns);
/* Once through the only job of the list that has come, where it is a case that counts: whether it was. */
bool rehearse_own(const struct supervisor *sv, uint64_t tick_ns);
/* The first record, as JSON. */
void supervisor_hello(const struct supervisor *sv, const char *port, struct text *t);
/* The second one on a machine that is no guest. */
void supervisor_kernel(struct stream *s);

#endif

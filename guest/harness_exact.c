/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Marked intervals of a fixed number of operations, for the counting plugin.
 * No clock is read in one and nothing is written. With several tasks, each says
 * when it is at its operations; gate, waiting and the controller do not count,
 * but whatever the tasks make others do does, to the last byte drained.
 */
#include <sched.h>

#include "harness.h"
#include "mark.h"

#define WARM_ROUNDS 2	 /* the first interval after the first rest still finds slabs to fill */
#define AGREE_LEAST 1000 /* two intervals agree when they differ by less than a thousandth */
#define DRIFT_MOST 43	 /* rounds of an empty loop, three instructions each */
#define TASKS_MOST 64

static uint32_t warm_rounds(const struct harness *h)
{
	return h->rehearsal ? 0 : h->rehearsed && h->wl.def->rested ? 1 : WARM_ROUNDS;
}

/*
 * Operations that follow the rest unmarked: they take the path back into the
 * caches of the CPU, unless what they leave to be freed would fall into the interval.
 */
static uint64_t first_few(const struct workload *def, uint64_t n)
{
	return def->rested ? 0 : n / 4 + 1;
}

/* Marks cost nothing outside of an interval, so the operations that warm up are the same code. */
static inline __attribute__((always_inline)) void
ops_with_after(const struct workload *def, struct wl_task *t, uint64_t n, bool alone)
{
	void (*op)(struct wl_task *) = def->op, (*after)(struct wl_task *) = def->after;

	for (; n; n--) {
		op(t);
		if (alone)
			MARK(MARK_OP_PAUSE, MARK_ALONE);
		else
			MARK(MARK_OP_PAUSE, 0);
		after(t);
		MARK(MARK_OP_RESUME, 0);
	}
}

static inline __attribute__((always_inline)) void marked_ops(const struct workload *def,
							     struct wl_task *t, uint64_t n)
{
	void (*batch)(struct wl_task *, uint64_t) = def->batch;

	if (def->after && def->after_alone)
		ops_with_after(def, t, n, true);
	else if (def->after)
		ops_with_after(def, t, n, false);
	else if (batch)
		batch(t, n);
	else
		for (; n; n--)
			def->op(t);
}

/*
 * How long the last two took, on a clock that counts what is executed: one more
 * is made only where they differ. The first is compared with the last round that
 * warmed up, which was the same. Within a boot, more of them are no evidence; of
 * several CPUs no two are alike, and seeds are the evidence.
 */
struct agreement {
	uint64_t last, now;
	uint32_t made; /* of those that are counted */
};

static bool wanted(struct harness *h, const struct agreement *a)
{
	uint64_t apart = a->now > a->last ? a->now - a->last : a->last - a->now;
	uint32_t most = several_cpus(h) || h->rehearsal ? 1 : h->job->reps;

	return a->made < most && !case_failed(h) && (!a->made || apart > a->now / AGREE_LEAST);
}

static void took(struct agreement *a, uint64_t since)
{
	a->last = a->now;
	a->now = steady_ns() - since;
}

static __attribute__((noinline)) void interval(const struct workload *def, struct wl_task *t,
					       uint64_t n)
{
	MARK(MARK_OP_BEGIN, 0);
	marked_ops(def, t, n);
	MARK(MARK_OP_END, 0);
}

static __attribute__((noinline)) void uncounted(const struct workload *def, struct wl_task *t,
						uint64_t n)
{
	marked_ops(def, t, n);
}

/*
 * CPUs whose turns are all alike keep step: those that met at a lock in the first
 * operation met there in the last, and the seed said which. Some instructions of
 * user space, up to 126, let them drift apart as the caches of real ones
 * do (four seeds on 8 CPUs: transfers of dup and close varied by 1.4 %, now by 0.8,
 * those of pread(2) on one file by 11.5 %, now by 6.6).
 */
static void drift(const struct wl_task *t, uint64_t nr)
{
	uint64_t state = (t->wl->seed * TASKS_MOST + t->nr) << 16 ^ (uint32_t)nr, n;

	MARK(MARK_OP_ASIDE, 0); /* none of it is the case's: each block of it says so */
	n = random_next(&state) % DRIFT_MOST;
	for (; n; n--)
		MARK(MARK_OP_ASIDE, 0);
}

/* The share of one of several tasks; before and after it, what the task does does not count. */
static __attribute__((noinline)) void share(const struct workload *def, struct wl_task *t,
					    uint64_t n)
{
	bool apart = several_cpus(harness_of(t->wl));

	MARK(MARK_OP_RESUME, 0);
	if (!apart)
		marked_ops(def, t, n);
	else if (def->batch_apart)
		def->batch_apart(t, n, drift);
	else
		for (; n; n--) {
			marked_ops(def, t, 1);
			drift(t, n);
		}
	MARK(MARK_OP_PAUSE, MARK_ALONE);
}

/*
 * An operation with an `after` may start others (fork): whether they run inside
 * the interval must not hang on when a timer tick comes. So the task cannot be
 * preempted by them; they are ordinary tasks and run once it waits for them.
 */
static void run_first(void)
{
	struct sched_param first = {.sched_priority = 1};

	sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first);
}

/*
 * Whether a wake-up preempts the one who wakes hangs on virtual runtimes, to the
 * nanosecond: a pipe took two or three patterns of switches, and a seed told which
 * (1 to 2 % of its instructions). SCHED_BATCH (sched(7)) is the fair class without that:
 * a task runs until it blocks or its slice ends. Its children are the same.
 */
static void run_until_blocked(const struct harness *h)
{
	struct sched_param none = {0};

	if (!several_cpus(h))
		sched_setscheduler(0, SCHED_BATCH, &none);
}

static void inline_round(struct harness *h, uint64_t ops)
{
	struct wl_task *t = &h->slots[0].t;

	run_ops(h->wl.def, t, ops);
	if (t->done)
		set_error(h, STATE_FAILED, "the task ran out of work");
}

static void inline_end(const struct workload *def, struct wl_task *t)
{
	if (def->finish)
		def->finish(t);
	if (def->task_teardown)
		def->task_teardown(t);
}

void exact_inline(struct harness *h)
{
	const struct workload *def = h->wl.def;
	struct wl_task *t = &h->slots[0].t;
	uint64_t n = h->job->ops, start;
	struct agreement a = {0};
	uint32_t r;

	tasks_pin(h, 0);
	if (def->task_setup && def->task_setup(t)) {
		set_error(h, STATE_FAILED, "task_setup failed");
		return;
	}
	if (def->after)
		run_first();
	else
		run_until_blocked(h);
	if (h->job->ntrace) {
		traced_ops(h, inline_round);
		inline_end(def, t);
		return;
	}
	for (r = 0; r < warm_rounds(h); r++) {
		exact_rest(h);
		run_ops(def, t, first_few(def, n));
		start = exact_after_tick(h);
		uncounted(def, t, n);
		took(&a, start);
	}
	while (wanted(h, &a)) {
		exact_rest_counted(h);
		exact_arm();
		run_ops(def, t, first_few(def, n));
		mark_id(h->job->nr << 8 | a.made);
		start = exact_after_tick(h);
		interval(def, t, n);
		if (t->done)
			set_error(h, STATE_FAILED, "the task ran out of work in interval %u",
				  a.made);
		took(&a, start);
		put_rep(h, a.made++, n);
	}
	exact_quiet();
	inline_end(def, t);
}

/* Several tasks. */

static inline void cpu_relax(void)
{
#ifdef __x86_64__
	__builtin_ia32_pause();
#else
	__asm__ __volatile__("yield");
#endif
}

/*
 * On several CPUs all begin at once, however long it took to wake each. Nobody is
 * inside before that. To wait without the kernel costs next to nothing: the
 * emulator lets another CPU run.
 */
static void meet(struct harness *h, uint32_t round)
{
	uint32_t all = round * h->counted;

	atomic_fetch_add(&h->met, 1);
	while ((int32_t)(atomic_load(&h->met) - all) < 0 && !case_failed(h))
		cpu_relax();
}

static void exact_loop(struct harness *h, struct slot *s)
{
	const struct workload *def = h->wl.def;
	uint32_t seen = 0;

	run_until_blocked(h);
	if (!s->t.counted) {
		tasks_background(h, s);
		return;
	}
	MARK(MARK_OP_PAUSE, MARK_ALONE);
	for (;;) {
		while (atomic_load(&h->rep) == seen)
			futex_wait(&h->rep, seen);
		seen = atomic_load(&h->rep);
		if (atomic_load(&h->phase) == PHASE_STOP)
			return;
		if (several_cpus(h))
			meet(h, seen);
		share(def, &s->t, h->round_ops);
		if (s->t.done)
			set_error(h, STATE_FAILED, "task %u ran out of work", s->t.nr);
		if (atomic_fetch_sub(&h->pending, 1) == 1)
			tasks_event(h);
	}
}

static bool none_pending(struct harness *h)
{
	return !atomic_load(&h->pending);
}

/* Each counted task does `ops` operations, and what they set going has come to rest. */
static void round_of_all(struct harness *h, uint64_t ops)
{
	h->round_ops = ops;
	atomic_store(&h->pending, h->counted);
	atomic_fetch_add(&h->rep, 1);
	futex_wake(&h->rep);
	tasks_wait(h, none_pending);
	if (h->wl.def->quiesce && !case_failed(h))
		h->wl.def->quiesce(&h->wl);
}

static void counted_rounds(struct harness *h)
{
	uint64_t n = h->job->ops, start;
	struct agreement a = {0};
	uint32_t r;

	for (r = 0; r < warm_rounds(h) && !case_failed(h); r++) {
		exact_rest(h);
		round_of_all(h, first_few(h->wl.def, n));
		start = exact_after_tick(h);
		round_of_all(h, n);
		took(&a, start);
	}
	while (wanted(h, &a)) {
		exact_rest_counted(h);
		exact_arm();
		round_of_all(h, first_few(h->wl.def, n));
		mark_id(h->job->nr << 8 | a.made);
		start = exact_after_tick(h);
		MARK(MARK_OP_BEGIN, MARK_ALONE);
		round_of_all(h, n);
		MARK(MARK_OP_END, 0);
		took(&a, start);
		put_rep(h, a.made++, n * h->counted);
	}
	exact_quiet();
}

void exact_tasks(struct harness *h)
{
	if (tasks_start(h, exact_loop))
		return;
	tasks_phase(h, PHASE_RUN);
	if (h->job->ntrace)
		traced_ops(h, round_of_all);
	else
		counted_rounds(h);
	if (!case_failed(h))
		tasks_stop(h);
}

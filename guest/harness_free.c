/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Marked intervals of a loop that never returns (the will-it-scale ABI): all it
 * gives is a counter, and it cannot be asked to stop. So the page of task 0's
 * counter is made read only when an interval is to begin or to end: the next
 * increment faults, and the handler marks there, between two operations. An
 * interval is as many operations as were counted between two such faults.
 *
 * Inside it, once, are the return of the first handler, a timer's signal and the
 * second fault, some 10,000 instructions; intervals are millions. With several
 * tasks the edge of each other one is a fraction of one of its operations.
 *
 * One task's interval begins after a rest and a tick, and ends before the next, as in
 * harness_tick.c. Of what operations leave to be freed later (RCU), an interval of
 * two ticks held a part, and the seed said which: brk1 on 6.12 differed by 1.5 % (sd)
 * between seeds, now by 0.001 %. It holds none of it, as elsewhere.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"
#include "mark.h"

#define PAGE 4096u
#define PILOT_NS 1000000u    /* virtual ns, about as many instructions */
#define SHORTEST_NS 3000000u /* it ends before the next tick, at up to 300 Hz */
#define LONGEST_NS 200000000u
#define REST_NS 60000000L /* as in harness_rest.c */
#define AGREE_LEAST 1000  /* as in harness_exact.c */

/* The first interval is like those that are counted, and shows whether one of these is enough. */
enum step { STEP_START, STEP_PILOT, STEP_FEW, STEP_FIRST, STEP_COUNT };

/* Of the process of task 0, which alone handles these signals. */
static struct {
	struct harness *h;
	char *page;
	timer_t timer;
	enum step step;
	uint64_t before, began_ns, span_ns;
	uint64_t last_ops, last_ns; /* of the interval before: none yet */
	uint32_t rep;
} run;

static volatile uint64_t *counter(const struct harness *h, unsigned int task)
{
	return (uint64_t *)(h->counters + (size_t)task * PAGE);
}

static uint64_t all_counted(const struct harness *h)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < h->wl.tasks; i++)
		sum += *counter(h, i);
	return sum;
}

static void may_count(bool may)
{
	mprotect(run.page, PAGE, may ? PROT_READ | PROT_WRITE : PROT_READ);
}

static void wake_after(uint64_t ns)
{
	struct itimerspec at = {
		.it_value = {.tv_sec = (time_t)(ns / 1000000000),
			     .tv_nsec = (long)(ns % 1000000000)},
	};

	timer_settime(run.timer, 0, &at, NULL);
}

/* The span has passed: stop at the next operation's end. */
static void on_timer(int sig)
{
	int saved = errno;

	(void)sig;
	MARK(MARK_OP_PAUSE, MARK_ALONE);
	may_count(false);
	errno = saved;
	MARK(MARK_OP_RESUME, 0);
}

/* How long an interval is so that it holds the operations asked for. */
static uint64_t span_for(uint64_t ops, uint64_t ns)
{
	uint64_t want = ns * run.h->job->ops / (ops ? ops : 1);

	return want < SHORTEST_NS ? SHORTEST_NS : want > LONGEST_NS ? LONGEST_NS : want;
}

/* Another task's loop would run while this one rests. */
static bool alone(const struct harness *h)
{
	return h->wl.tasks == 1 && !several_cpus(h);
}

/* One task's last two intervals took as long for each operation: one more would say the same. */
static bool agrees(uint64_t ops, uint64_t ns)
{
	uint64_t a = ns * run.last_ops, b = run.last_ns * ops;

	return alone(run.h) && (a > b ? a - b : b - a) <= a / AGREE_LEAST;
}

static bool first(void)
{
	return alone(run.h) && !run.last_ops;
}

static void rest_and_warm(void)
{
	if (alone(run.h))
		exact_rest(run.h);
	else
		nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
	if (!first())
		exact_arm();
	run.step = STEP_FEW;
	wake_after(run.span_ns / 4);
}

/* As the first: whether the span holds one tick more is no chance where it begins after one. */
static void begin(uint64_t now)
{
	if (alone(run.h))
		exact_after_tick(run.h);
	run.step = first() ? STEP_FIRST : STEP_COUNT;
	run.before = now;
	run.began_ns = now_ns();
	wake_after(run.span_ns);
	if (run.step == STEP_COUNT)
		mark_id(run.h->job->nr << 8 | run.rep);
}

static void counted(uint64_t ops, bool enough)
{
	struct harness *h = run.h;

	h->rep_ops[run.rep++] = ops;
	if (run.rep < h->job->reps && !enough)
		return;
	h->rep_ops[JOB_REPS_MAX] = run.rep;
	exact_quiet();
	atomic_store(&h->pending, 0);
	tasks_event(h);
	for (;;)
		pause(); /* until the case ends */
}

static void ended(uint64_t now)
{
	uint64_t ops = now - run.before, ns = now_ns() - run.began_ns;
	bool enough = agrees(ops, ns);

	run.last_ops = ops;
	run.last_ns = ns;
	if (run.step == STEP_COUNT)
		counted(ops, enough || run.h->rehearsal);
}

/* The loop is between two operations, and its counter may be written again. */
static void step(void)
{
	uint64_t now = all_counted(run.h);

	switch (run.step) {
	case STEP_START:
		run.step = STEP_PILOT;
		run.before = now;
		run.began_ns = now_ns();
		wake_after(PILOT_NS);
		return;
	case STEP_PILOT:
		run.span_ns = span_for(now - run.before, now_ns() - run.began_ns);
		break;
	case STEP_FEW:
		begin(now);
		return;
	case STEP_FIRST:
	case STEP_COUNT:
		ended(now);
		break;
	}
	rest_and_warm();
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	int saved = errno;

	(void)context;
	MARK(MARK_OP_END, 0); /* nothing where no interval is open */
	if (info->si_addr < (void *)run.page || info->si_addr >= (void *)(run.page + PAGE)) {
		signal(sig, SIG_DFL); /* the testcase's own fault: it comes again */
		return;
	}
	may_count(true);
	step();
	errno = saved;
	if (run.step == STEP_COUNT)
		MARK(MARK_OP_BEGIN, 0);
}

static int take_over(struct harness *h)
{
	struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct sigaction timer = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMAX - 1};

	run.h = h;
	run.page = h->counters;
	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	sigaddset(&fault.sa_mask, SIGRTMAX - 1);
	if (sigaction(SIGSEGV, &fault, NULL) || sigaction(SIGRTMAX - 1, &timer, NULL) ||
	    timer_create(CLOCK_MONOTONIC, &event, &run.timer)) {
		set_error(h, STATE_FAILED, "no timer for the intervals: %s", strerror(errno));
		return -1;
	}
	may_count(false);
	return 0;
}

static void free_loop(struct harness *h, struct slot *s)
{
	if (!s->t.nr && take_over(h))
		return;
	h->wl.def->free_run(&s->t, counter(h, s->t.nr));
}

static bool none_pending(struct harness *h)
{
	return !atomic_load(&h->pending);
}

void exact_free(struct harness *h)
{
	uint32_t r;

	h->counters = tasks_shared(h, (size_t)h->wl.tasks * PAGE);
	h->rep_ops = tasks_shared(h, (JOB_REPS_MAX + 1) * sizeof(*h->rep_ops));
	if (!h->counters || !h->rep_ops)
		return;
	if (several_cpus(h))
		exact_rest_counted(h); /* before there are loops that never rest */
	atomic_store(&h->pending, 1);
	if (tasks_start(h, free_loop))
		return;
	tasks_phase(h, PHASE_RUN);
	tasks_wait(h, none_pending);
	for (r = 0; r < h->rep_ops[JOB_REPS_MAX] && !case_failed(h); r++)
		put_rep(h, r, h->rep_ops[r]);
	if (!case_failed(h))
		tasks_stop(h);
}

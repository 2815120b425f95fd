/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the CPU's own counters say of operations (perf_event_open(2)), in
 * windows after the timed ones: a counter costs each context switch time, so
 * nothing is timed beside one.
 *
 * Two kinds at once, each in kernel and in user mode: so many counters all CPUs
 * have. A counter that was shared all the same is dropped, never scaled up.
 * Counted are the case's tasks and what they start, with the interrupts that
 * come meanwhile; kernel threads are not. No counters are opened in exact mode.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness.h"

#define AT_ONCE 4
#define EMPTY_GOES 9
#define SHARED_LEAST 1000 /* a counter that missed more than a thousandth of the time was shared */

static const struct kind {
	const char *name;
	uint32_t config;
	bool user;
} kinds[][AT_ONCE] = {
	{
		{"pmu_kernel_instructions", PERF_COUNT_HW_INSTRUCTIONS, false},
		{"pmu_user_instructions", PERF_COUNT_HW_INSTRUCTIONS, true},
		{"pmu_kernel_cycles", PERF_COUNT_HW_CPU_CYCLES, false},
		{"pmu_user_cycles", PERF_COUNT_HW_CPU_CYCLES, true},
	},
	{
		{"pmu_kernel_cache_misses", PERF_COUNT_HW_CACHE_MISSES, false},
		{"pmu_user_cache_misses", PERF_COUNT_HW_CACHE_MISSES, true},
		{"pmu_kernel_branch_misses", PERF_COUNT_HW_BRANCH_MISSES, false},
		{"pmu_user_branch_misses", PERF_COUNT_HW_BRANCH_MISSES, true},
	},
};

/* As read(2) gives it, with the two times. */
struct count {
	uint64_t value, enabled_ns, running_ns;
};

struct reading {
	struct count of[AT_ONCE];
};

struct pmu {
	const struct kind *kinds;
	int *fds; /* AT_ONCE a task */
	unsigned int tasks;
	int error[AT_ONCE];	 /* errno: why it does not count, 0 where it does */
	uint64_t empty[AT_ONCE]; /* what two readings with nothing between them count */
	struct count total[AT_ONCE];
	uint64_t ops;
};

static int open_one(const struct kind *kind, pid_t tid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = kind->config,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		.inherit = 1,
		.exclude_user = !kind->user,
		.exclude_kernel = kind->user,
		.exclude_hv = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* The kinds of one round on all tasks; a kind that one task is refused is counted on none. */
static int pmu_open(struct pmu *p, const struct kind *round, const pid_t *tids, unsigned int tasks)
{
	unsigned int k, i;

	*p = (struct pmu){.kinds = round, .tasks = tasks};
	p->fds = malloc((size_t)tasks * AT_ONCE * sizeof(*p->fds));
	if (!p->fds)
		return -1;
	for (k = 0; k < AT_ONCE; k++)
		for (i = 0; i < tasks; i++) {
			int *fd = &p->fds[i * AT_ONCE + k];

			*fd = p->error[k] ? -1 : open_one(&round[k], tids[i]);
			if (*fd < 0 && !p->error[k])
				p->error[k] = errno;
		}
	return 0;
}

static void pmu_close(struct pmu *p)
{
	unsigned int i;

	for (i = 0; i < p->tasks * AT_ONCE; i++)
		if (p->fds[i] >= 0)
			close(p->fds[i]);
	free(p->fds);
}

static bool counts_any(const struct pmu *p)
{
	unsigned int k;

	for (k = 0; k < AT_ONCE; k++)
		if (!p->error[k])
			return true;
	return false;
}

static void pmu_read(struct pmu *p, struct reading *r)
{
	unsigned int k, i;

	memset(r, 0, sizeof(*r));
	for (k = 0; k < AT_ONCE; k++)
		for (i = 0; !p->error[k] && i < p->tasks; i++) {
			struct count one;

			if (read(p->fds[i * AT_ONCE + k], &one, sizeof(one)) != sizeof(one)) {
				p->error[k] = EIO;
				break;
			}
			r->of[k].value += one.value;
			r->of[k].enabled_ns += one.enabled_ns;
			r->of[k].running_ns += one.running_ns;
		}
}

/* What passed between two readings, less what reading counts of itself. */
static void pmu_add(struct pmu *p, const struct reading *from, const struct reading *to)
{
	unsigned int k;

	for (k = 0; k < AT_ONCE; k++) {
		uint64_t value = to->of[k].value - from->of[k].value;

		p->total[k].value += value > p->empty[k] ? value - p->empty[k] : 0;
		p->total[k].enabled_ns += to->of[k].enabled_ns - from->of[k].enabled_ns;
		p->total[k].running_ns += to->of[k].running_ns - from->of[k].running_ns;
	}
}

/* Where a task reads its own counters, the calls that read them are in what they count. */
static void pmu_measure_empty(struct pmu *p)
{
	struct reading from, to;
	unsigned int go, k;

	for (go = 0; go < EMPTY_GOES; go++) {
		pmu_read(p, &from);
		pmu_read(p, &to);
		for (k = 0; k < AT_ONCE; k++) {
			uint64_t value = to.of[k].value - from.of[k].value;

			if (!go || value < p->empty[k])
				p->empty[k] = value;
		}
	}
}

/* Why a kind has no figure, 0 where it has one. */
static int why_not(const struct pmu *p, unsigned int k)
{
	const struct count *c = &p->total[k];
	bool always = p->kinds[k].config == PERF_COUNT_HW_INSTRUCTIONS && !p->kinds[k].user;

	if (p->error[k])
		return p->error[k];
	if (c->enabled_ns - c->running_ns > c->enabled_ns / SHARED_LEAST)
		return EBUSY;
	return !p->ops || (always && !c->value) ? ENODATA : 0;
}

static void pmu_put(struct harness *h, const struct pmu *p)
{
	unsigned int k;

	for (k = 0; k < AT_ONCE; k++) {
		int error = why_not(p, k);

		if (!error)
			wl_value(&h->wl, p->kinds[k].name,
				 (double)p->total[k].value / (double)p->ops);
		else if (p->kinds == kinds[0] && !k)
			wl_value(&h->wl, "pmu_errno", error);
	}
}

static void inline_window(struct harness *h, struct pmu *p, uint64_t n)
{
	const struct workload *def = h->wl.def;
	struct wl_task *t = &h->slots[0].t;
	struct reading from, to;
	uint64_t done = 0, at_once = def->after ? 1 : n;

	for (; done < n && !t->done && !case_failed(h); done += at_once) {
		pmu_read(p, &from);
		if (def->after)
			def->op(t);
		else
			run_ops(def, t, n);
		pmu_read(p, &to);
		if (t->done)
			return; /* short of operations */
		pmu_add(p, &from, &to);
		p->ops += at_once;
		if (def->after)
			def->after(t);
	}
}

/* Whether there is time for window i: of the second half of the limit, half. */
static bool next_window(struct harness *h, uint64_t i)
{
	return i < h->job->pmu && !case_failed(h) &&
	       (!i || now_ns() < h->give_up_ns + h->job->limit_ms * 250000u);
}

void pmu_inline(struct harness *h, uint64_t n)
{
	const pid_t self = 0;
	unsigned int round;
	struct pmu p;
	uint64_t i;

	for (round = 0; h->job->pmu && round < sizeof(kinds) / sizeof(*kinds); round++) {
		if (pmu_open(&p, kinds[round], &self, 1))
			return;
		pmu_measure_empty(&p);
		for (i = 0; counts_any(&p) && next_window(h, i); i++)
			inline_window(h, &p, n);
		pmu_put(h, &p);
		pmu_close(&p);
	}
}

/* Four counters a task are four files. */
static void allow_files(void)
{
	struct rlimit files;

	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
}

static pid_t *all_tids(const struct harness *h)
{
	pid_t *tids = malloc(h->wl.tasks * sizeof(*tids));
	unsigned int i;

	for (i = 0; tids && i < h->wl.tasks; i++)
		tids[i] = h->slots[i].tid;
	return tids;
}

static void tasks_window(struct harness *h, struct pmu *p, uint64_t (*next)(struct harness *h))
{
	struct reading from, to;
	uint64_t ops;

	pmu_read(p, &from);
	ops = next(h);
	pmu_read(p, &to);
	if (!ops)
		return; /* a task has left */
	pmu_add(p, &from, &to);
	p->ops += ops;
}

void pmu_tasks(struct harness *h, uint64_t (*next)(struct harness *h))
{
	unsigned int round;
	pid_t *tids;
	struct pmu p;
	uint64_t i;

	if (!h->job->pmu)
		return;
	if (h->wl.def->after) { /* nobody but the tasks knows when they are in an operation */
		wl_value(&h->wl, "pmu_errno", EOPNOTSUPP);
		return;
	}
	allow_files();
	tids = all_tids(h);
	for (round = 0; tids && round < sizeof(kinds) / sizeof(*kinds); round++) {
		if (pmu_open(&p, kinds[round], tids, h->wl.tasks))
			break;
		for (i = 0; counts_any(&p) && next_window(h, i); i++)
			tasks_window(h, &p, next);
		pmu_put(h, &p);
		pmu_close(&p);
	}
	free(tids);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Windows of operations between two clock reads, then operations timed one by
 * one. The cost of reading the clock is reported (hello), never subtracted.
 *
 * One task: the number of operations of a window is calibrated once and then
 * fixed. Several: they run free, and the controller samples their counters with
 * the time that has really passed. Where a workload undoes each operation
 * (`after`), each is timed alone and a window's time is the mean over the
 * counted tasks of the time spent in operations.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "harness.h"
#include "hdr.h"

static void put_window(struct harness *h, uint64_t i, uint64_t ops, uint64_t ns, uint64_t bytes)
{
	text_put(&h->out,
		 "{\"t\":\"win\",\"j\":%u,\"i\":%" PRIu64 ",\"warm\":%d,\"ops\":%" PRIu64
		 ",\"ns\":%" PRIu64 ",\"bytes\":%" PRIu64 "}\n",
		 h->job->nr, i, i < h->job->warmup, ops, ns, bytes);
}

static void put_task(struct harness *h, unsigned int k, uint64_t ops, uint64_t ns)
{
	text_put(&h->out,
		 "{\"t\":\"task\",\"j\":%u,\"k\":%u,\"ops\":%" PRIu64 ",\"ns\":%" PRIu64 "}\n",
		 h->job->nr, k, ops, ns);
}

/* Latencies of all tasks as one histogram, and their K-best. */
static void put_latencies(struct harness *h)
{
	struct hdr *hdr = calloc(1, sizeof(*hdr));
	uint8_t *payload = malloc(hdr_encoded_max());
	uint64_t *all = NULL;
	size_t n = 0;
	unsigned int i;
	uint64_t k;
	double best;

	for (i = 0; i < h->wl.tasks; i++)
		n += h->slots[i].nsamples;
	if (n)
		all = malloc(n * sizeof(*all));
	if (!hdr || !payload || (n && !all)) {
		set_error(h, STATE_FAILED, "no memory for %zu latencies", n);
	} else if (n) {
		for (n = 0, i = 0; i < h->wl.tasks; i++)
			for (k = 0; k < h->slots[i].nsamples; k++)
				hdr_record(hdr, all[n++] = h->slots[i].samples[k]);
		text_put(&h->out,
			 "{\"t\":\"hist\",\"j\":%u,\"name\":\"latency\",\"unit\":\"ns\",\"count\":"
			 "%" PRIu64 ",\"b64\":\"",
			 h->job->nr, hdr->total);
		text_base64(&h->out, payload, hdr_encode(hdr, payload));
		text_put(&h->out, "\"}\n");
		if (!kbest(all, n, &best))
			wl_value(&h->wl, "kbest_ns", best);
	}
	free(all);
	free(payload);
	free(hdr);
}

/* n operations; their time, without `after`. */
static uint64_t span(const struct workload *def, struct wl_task *t, uint64_t n)
{
	uint64_t start, sum = 0;

	if (!def->after) {
		start = now_ns();
		run_ops(def, t, n);
		return now_ns() - start;
	}
	for (; n; n--) {
		start = now_ns();
		def->op(t);
		sum += now_ns() - start;
		def->after(t);
	}
	return sum;
}

/* The least time of three goes at n operations; 0 where the case has failed. */
static uint64_t least_span(struct harness *h, struct wl_task *t, uint64_t n)
{
	uint64_t least = UINT64_MAX;
	unsigned int go;

	for (go = 0; go < 3; go++) {
		uint64_t start = now_ns(), passed;

		span(h->wl.def, t, n);
		passed = now_ns() - start;
		if (case_failed(h) || t->done)
			return 0;
		if (passed < least)
			least = passed;
		if (least < h->job->window_ms * 1000000u / 8)
			break;
	}
	return least ? least : 1;
}

/*
 * Operations that fill a window, at least 1; 0 where the case has failed. One
 * go decides nothing: a host that took the CPU away in it made windows of one
 * operation, some 500 ns long, of a system call.
 */
static uint64_t calibrate(struct harness *h, struct wl_task *t)
{
	uint64_t window_ns = h->job->window_ms * 1000000u, n = 1, passed;

	for (;; n *= 2) {
		passed = least_span(h, t, n);
		if (!passed)
			return 0;
		if (passed >= window_ns / 8)
			break;
		if (n > UINT64_MAX / 4) { /* the loop is gone, and 2 * n would be 0 for ever */
			set_error(h, STATE_FAILED,
				  "an operation takes no time: the compiler left nothing of it");
			return 0;
		}
	}
	n = (uint64_t)((double)n * (double)window_ns / (double)passed);
	return n ? n : 1;
}

/* One operation timed alone; false once the task has its share. */
static bool sample(struct harness *h, struct slot *s)
{
	const struct workload *def = h->wl.def;
	uint64_t start = now_ns(), end;

	def->op(&s->t);
	end = now_ns();
	if (s->t.done)
		return false;
	s->samples[s->nsamples++] = end - start;
	s->ops++;
	if (def->after) {
		s->span_ns += end - start;
		def->after(&s->t);
	}
	return s->nsamples < h->job->latency_ops && end < h->give_up_ns;
}

void timed_inline(struct harness *h)
{
	const struct workload *def = h->wl.def;
	struct slot *s = &h->slots[0];
	uint64_t i, n, ops = 0, ns = 0;

	tasks_pin(h, 0);
	if (def->task_setup && def->task_setup(&s->t)) {
		set_error(h, STATE_FAILED, "task_setup failed");
		return;
	}
	n = calibrate(h, &s->t);
	for (i = 0; n && i < h->job->warmup + h->job->windows; i++) {
		uint64_t bytes = s->t.bytes, took = span(def, &s->t, n);

		if (case_failed(h) || s->t.done)
			break;
		put_window(h, i, n, took, s->t.bytes - bytes);
		ops += i < h->job->warmup ? 0 : n;
		ns += i < h->job->warmup ? 0 : took;
	}
	if (s->t.done && !ops)
		set_error(h, STATE_FAILED, "the task ran out of work before the first window");
	if (ops)
		put_task(h, 0, ops, ns);
	while (s->samples && !case_failed(h) && !s->t.done && sample(h, s))
		;
	if (!case_failed(h) && ops)
		pmu_inline(h, n);
	if (def->finish)
		def->finish(&s->t);
	if (def->task_teardown)
		def->task_teardown(&s->t);
	put_latencies(h);
}

static void timed_loop(struct harness *h, struct slot *s)
{
	const struct workload *def = h->wl.def;

	if (def->free_run)
		def->free_run(&s->t, &s->ops);
	if (!s->t.counted) {
		tasks_background(h, s);
		return;
	}
	while (!s->t.done) {
		uint32_t phase = atomic_load_explicit(&h->phase, memory_order_relaxed);

		if (phase == PHASE_STOP)
			return;
		if (phase == PHASE_LATENCY && !s->sampled) {
			if (!sample(h, s)) {
				s->sampled = true;
				tasks_event(h);
			}
			continue;
		}
		if (def->after)
			s->span_ns += span(def, &s->t, 1);
		else
			def->op(&s->t);
		s->ops += !s->t.done;
	}
}

struct reading {
	uint64_t at_ns, ops, span_ns, bytes;
};

static struct reading read_all(const struct harness *h)
{
	struct reading r = {.at_ns = now_ns()};
	unsigned int i;

	for (i = 0; i < h->wl.tasks; i++) {
		const struct slot *s = &h->slots[i];

		if (!s->t.counted)
			continue;
		r.ops += s->ops;
		r.span_ns += s->span_ns;
		r.bytes += *(const volatile uint64_t *)&s->t.bytes;
	}
	return r;
}

/* Sleeps to the end of a window, and on while no operation has ended. Signals may cut it short. */
static struct reading next_reading(struct harness *h, const struct reading *last)
{
	struct reading r = *last;
	uint64_t until = last->at_ns;

	do {
		struct timespec t;
		int error;

		until += h->job->window_ms * 1000000u;
		t.tv_sec = (time_t)(until / 1000000000u);
		t.tv_nsec = (long)(until % 1000000000u);
		do
			error = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
		while (error == EINTR && !case_failed(h));
		r = read_all(h);
	} while (r.ops == last->ops && !case_failed(h) &&
		 atomic_load(&h->counted_left) < h->counted);
	return r;
}

static bool all_sampled(struct harness *h)
{
	unsigned int i;

	for (i = 0; i < h->wl.tasks; i++) {
		const struct slot *s = &h->slots[i];

		if (s->t.counted && !s->sampled && !s->left)
			return false;
	}
	return true;
}

static uint64_t window_ops(struct harness *h)
{
	struct reading last = read_all(h), next = next_reading(h, &last);

	return atomic_load(&h->counted_left) ? 0 : next.ops - last.ops;
}

void timed_tasks(struct harness *h)
{
	uint64_t i, windows = h->job->warmup + h->job->windows, ns[2] = {0};
	uint64_t *first = calloc(2 * (size_t)h->wl.tasks, sizeof(*first));
	struct reading last, next;
	unsigned int k;

	if (!first) {
		set_error(h, STATE_FAILED, "no memory for the counters of %u tasks", h->wl.tasks);
		return;
	}
	if (tasks_start(h, timed_loop))
		goto out;
	tasks_phase(h, PHASE_RUN);
	for (last = read_all(h), i = 0; i < windows && !case_failed(h); last = next, i++) {
		if (i == h->job->warmup) {
			ns[0] = last.at_ns;
			for (k = 0; k < h->wl.tasks; k++) {
				first[2 * k] = h->slots[k].ops;
				first[2 * k + 1] = h->slots[k].span_ns;
			}
		}
		next = next_reading(h, &last);
		if (atomic_load(&h->counted_left))
			break; /* a task had nothing left to do: this window is short of it */
		put_window(h, i, next.ops - last.ops,
			   h->wl.def->after ? (next.span_ns - last.span_ns) / h->counted
					    : next.at_ns - last.at_ns,
			   next.bytes - last.bytes);
	}
	if (i <= h->job->warmup && h->job->windows)
		set_error(h, STATE_FAILED, "a task ran out of work before the first window");
	ns[1] = now_ns();
	for (k = 0; k < h->wl.tasks; k++)
		if (h->slots[k].t.counted && ns[0])
			put_task(h, k, h->slots[k].ops - first[2 * k],
				 h->wl.def->after ? h->slots[k].span_ns - first[2 * k + 1]
						  : ns[1] - ns[0]);
	if (!case_failed(h) && h->slots[0].samples) {
		tasks_phase(h, PHASE_LATENCY);
		tasks_wait(h, all_sampled);
	}
	if (!case_failed(h))
		pmu_tasks(h, window_ops);
	if (!case_failed(h))
		tasks_stop(h);
	if (!case_failed(h))
		put_latencies(h);
out:
	free(first);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness.h"
#include "selftest.h"
#include "trace.h"

/* The linker makes these two from the name of the section that WORKLOAD() fills. */
extern const struct workload *const __start_kdelta_workloads[];
extern const struct workload *const __stop_kdelta_workloads[];

const struct workload *workload_named(const char *name)
{
	const struct workload *const *w;

	for (w = __start_kdelta_workloads; w < __stop_kdelta_workloads; w++)
		if (!strcmp((*w)->name, name))
			return *w;
	return NULL;
}

static bool is_selftest(const struct job *job)
{
	return !strcmp(job->workload, SELFTEST_JOB);
}

bool case_known(const struct job *job)
{
	return is_selftest(job) || workload_named(job->workload);
}

bool case_failed(struct harness *h)
{
	return atomic_load_explicit(&h->state, memory_order_relaxed) != STATE_OK;
}

static int case_vblame(struct harness *h, enum state state, int error, const char *fmt,
		       va_list args)
{
	int expected = STATE_OK;
	char text[sizeof(h->why)];

	vsnprintf(text, sizeof(text), fmt, args);
	/* The first to fail says why: later failures follow from it. */
	if (atomic_compare_exchange_strong(&h->state, &expected, state)) {
		if (error)
			snprintf(h->why, sizeof(h->why), "%.180s: %s", text, strerror(error));
		else
			snprintf(h->why, sizeof(h->why), "%s", text);
	}
	return -1;
}

int case_blame(struct harness *h, enum state state, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	case_vblame(h, state, 0, fmt, args);
	va_end(args);
	return -1;
}

void *case_shared(struct harness *h, size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p != MAP_FAILED)
		return p;
	case_blame(h, STATE_FAILED, "no %zu bytes of shared memory: %s", bytes, strerror(errno));
	return NULL;
}

/* What workloads call. */

const char *wl_param(const struct wl *wl, const char *name)
{
	struct harness *h = harness_of(wl);
	const char *value = job_param(h->job, name);

	if (value)
		return value;
	case_blame(h, STATE_FAILED, "parameter %s is missing in the job", name);
	return "";
}

uint64_t wl_param_u64(const struct wl *wl, const char *name)
{
	const char *value = wl_param(wl, name);
	char *end;
	uint64_t v;

	errno = 0;
	v = strtoull(value, &end, 0);
	if (*value < '0' || *value > '9' || *end || errno)
		case_blame(harness_of(wl), STATE_FAILED, "parameter %s=%.60s is not a number", name,
			   value);
	return v;
}

bool wl_param_is(const struct wl *wl, const char *name, const char *value)
{
	return !strcmp(wl_param(wl, name), value);
}

int wl_unsupported(struct wl *wl, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	case_vblame(harness_of(wl), STATE_UNSUPPORTED, 0, fmt, args);
	va_end(args);
	return -1;
}

int wl_fail(struct wl *wl, const char *fmt, ...)
{
	int error = errno;
	va_list args;

	va_start(args, fmt);
	case_vblame(harness_of(wl), STATE_FAILED, error, fmt, args);
	va_end(args);
	return -1;
}

void wl_op_failed(struct wl_task *t, const char *what)
{
	struct harness *h = harness_of(t->wl);
	int error = errno;

	if (case_failed(h))
		return;
	case_blame(h, STATE_FAILED, "operation of task %u failed: %s%s%s", t->nr, what,
		   error ? ": " : "", error ? strerror(error) : "");
	tasks_event(h);
}

void wl_value(struct wl *wl, const char *name, double value)
{
	struct harness *h = harness_of(wl);
	char why[128];

	if (getpid() != h->owner) { /* another process' memory would not reach the records */
		case_blame(h, STATE_FAILED, "value %s was not set by the case's own process", name);
		return;
	}
	if (!isfinite(value)) { /* not measured: no value, but said */
		snprintf(why, sizeof(why), "job %u: %s was not measured", h->job->nr, name);
		text_put(&h->out, "{\"t\":\"note\",\"text\":");
		text_json(&h->out, why);
		text_put(&h->out, "}\n");
		return;
	}
	text_put(&h->out, "{\"t\":\"val\",\"j\":%u,\"name\":", h->job->nr);
	text_json(&h->out, name);
	text_put(&h->out, ",\"v\":");
	text_number(&h->out, value);
	text_put(&h->out, "}\n");
}

static const char *data_root = "/data";

const char *wl_data(const char *name, char *buf, size_t size)
{
	snprintf(buf, size, "%s/%s", data_root, name);
	return buf;
}

const char *wl_tmpdir(struct wl *wl)
{
	return harness_of(wl)->tmp_dir;
}

/* The life of a case. */

static bool hook(struct harness *h, const char *name, int result)
{
	if (result && !case_failed(h))
		case_blame(h, STATE_FAILED, "%s returned %d", name, result);
	return !case_failed(h);
}

static bool known_params(struct harness *h, const struct workload *def)
{
	size_t i, k;

	for (i = 0; def->params && i < h->job->nparams; i++) {
		for (k = 0; def->params[k]; k++)
			if (!strcmp(def->params[k], h->job->params[i].key))
				break;
		if (!def->params[k]) {
			case_blame(h, STATE_FAILED, "workload %s has no parameter %.60s", def->name,
				   h->job->params[i].key);
			return false;
		}
	}
	return true;
}

static bool make_slots(struct harness *h)
{
	const struct workload *def = h->wl.def;
	unsigned int i;

	if (!h->wl.tasks || h->wl.tasks > 4096) {
		case_blame(h, STATE_FAILED, "%u tasks: 1 to 4096 are possible", h->wl.tasks);
		return false;
	}
	h->slots = case_shared(h, h->wl.tasks * sizeof(*h->slots));
	for (i = 0; h->slots && i < h->wl.tasks; i++) {
		h->slots[i].t = (struct wl_task){.wl = &h->wl, .nr = i, .counted = true};
		if (h->wl.exact || def->free_run || !h->job->latency_ops)
			continue;
		h->slots[i].samples = case_shared(h, h->job->latency_ops * sizeof(uint64_t));
	}
	return !case_failed(h);
}

static void measure(struct harness *h)
{
	const struct workload *def = h->wl.def;

	if (h->job->batches)
		batch_life(h);
	else if (h->wl.exact && def->free_run)
		case_blame(h, STATE_UNSUPPORTED,
			   "a loop that never returns has no end of an operation to count to: "
			   "timed only");
	else if (!tasks_inline(h))
		h->wl.exact ? exact_tasks(h) : timed_tasks(h);
	else
		h->wl.exact ? exact_inline(h) : timed_inline(h);
}

static void drive(struct harness *h)
{
	const struct workload *def = h->wl.def;

	if (def->shared_size) {
		h->wl.shared = case_shared(h, def->shared_size);
		if (!h->wl.shared)
			return;
	}
	if (!known_params(h, def) || (def->setup && !hook(h, "setup", def->setup(&h->wl))) ||
	    case_failed(h) || !make_slots(h))
		return;
	def = h->wl.def; /* setup may have chosen another */
	if (trace_prepare(h))
		return;
	measure(h);
	trace_collect(h);
	/* Figures cost time and say nothing that counting would say better. */
	if (!case_failed(h) && def->figures && !h->wl.exact)
		hook(h, "figures", def->figures(&h->wl));
}

void done_record(struct text *t, unsigned int job, const char *state, const char *why)
{
	text_put(t, "{\"t\":\"done\",\"j\":%u,\"state\":\"%s\",\"why\":", job, state);
	text_json(t, why);
	text_put(t, "}\n");
}

static void report(struct harness *h, int fd)
{
	static const char *const names[] = {"ok", "unsupported", "failed"};

	if (case_failed(h) || h->out.lost)
		text_free(&h->out); /* the measured span is void */
	done_record(&h->out, h->job->nr, names[h->state], h->why);
	write_all(fd, h->out.s, h->out.len);
}

void case_run(const struct jobs *js, const struct job *job, const char *data_dir,
	      const char *tmp_dir, int fd)
{
	struct harness *h = mmap(NULL, sizeof(*h), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (is_selftest(job)) {
		selftest_run(job, fd);
		return;
	}
	if (h == MAP_FAILED || sched_getaffinity(0, sizeof(h->cpus), &h->cpus))
		return; /* the boss says that the case ended without a result */
	data_root = data_dir;
	h->job = job;
	h->owner = getpid();
	h->tmp_dir = tmp_dir;
	h->give_up_ns = now_ns() + job->limit_ms * 500000u;
	h->wl = (struct wl){
		.def = workload_named(job->workload),
		.tasks = 1,
		.exact = js->exact || job->batches,
		.seed = js->seed,
		.harness = h,
	};
	drive(h);
	if (case_failed(h)) {
		report(h, fd); /* before teardown, which may hang after a failure */
		return;
	}
	if (h->wl.def->teardown)
		h->wl.def->teardown(&h->wl);
	if (h->out.lost)
		case_blame(h, STATE_FAILED, "out of memory for the records");
	report(h, fd);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A case from setup to its outcome. */
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "case.h"
#include "harness.h"
#include "kallsyms.h"
#include "selftest.h"
#include "trace.h"

/* The linker makes these two from the name of the section that WORKLOAD() fills. */
extern const struct workload *const __start_kdelta_workloads[];
extern const struct workload *const __stop_kdelta_workloads[];

static const struct workload *workload_named(const char *name)
{
	const struct workload *const *w;

	for (w = __start_kdelta_workloads; w < __stop_kdelta_workloads; w++)
		if (!strcmp((*w)->name, name))
			return *w;
	return case_workload(name);
}

static bool is_selftest(const struct job *job)
{
	return !strcmp(job->workload, SELFTEST_JOB);
}

static bool is_kallsyms(const struct job *job)
{
	return !strcmp(job->workload, KALLSYMS_JOB);
}

bool case_known(const struct job *job)
{
	return is_selftest(job) || is_kallsyms(job) || workload_named(job->workload);
}

bool case_measures(const struct job *job)
{
	return workload_named(job->workload);
}

static bool hook(struct harness *h, const char *name, int result)
{
	if (result && !case_failed(h))
		set_error(h, STATE_FAILED, "%s returned %d", name, result);
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
			set_error(h, STATE_FAILED, "workload %s has no parameter %.60s", def->name,
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
		set_error(h, STATE_FAILED, "%u tasks: 1 to 4096 are possible", h->wl.tasks);
		return false;
	}
	h->slots = tasks_shared(h, h->wl.tasks * sizeof(*h->slots));
	for (i = 0; h->slots && i < h->wl.tasks; i++) {
		h->slots[i].t = (struct wl_task){.wl = &h->wl, .nr = i, .counted = true};
		if (h->wl.exact || def->free_run || !h->job->latency_ops)
			continue;
		h->slots[i].samples = tasks_shared(h, h->job->latency_ops * sizeof(uint64_t));
	}
	return !case_failed(h);
}

static void measure(struct harness *h)
{
	const struct workload *def = h->wl.def;

	if (h->job->batches)
		batch_life(h);
	else if (h->wl.exact && def->free_run)
		exact_free(h);
	else if (!tasks_inline(h))
		h->wl.exact ? exact_tasks(h) : timed_tasks(h);
	else
		h->wl.exact ? exact_inline(h) : timed_inline(h);
}

static void drive(struct harness *h)
{
	const struct workload *def = h->wl.def;

	if (def->shared_size) {
		h->wl.shared = tasks_shared(h, def->shared_size);
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

static void report(struct harness *h, int fd)
{
	static const char *const names[] = {"ok", "unsupported", "failed"};

	if (case_failed(h) || h->out.lost)
		text_free(&h->out); /* the measured span is void */
	done_record(&h->out, h->job->nr, names[h->state], h->why);
	write_all(fd, h->out.s, h->out.len);
}

void case_run(const struct jobs *js, const struct job *job, const char *data_dir,
	      const char *tmp_dir, int fd, bool stays)
{
	struct harness *h = mmap(NULL, sizeof(*h), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (is_selftest(job)) {
		selftest_run(job, fd);
		return;
	}
	if (is_kallsyms(job)) {
		kallsyms_run(job, fd);
		return;
	}
	if (h == MAP_FAILED || sched_getaffinity(0, sizeof(h->cpus), &h->cpus))
		return; /* the supervisor says that the case ended without a result */
	api_data_root(data_dir);
	h->job = job;
	h->owner = getpid();
	h->tmp_dir = tmp_dir;
	h->stays = stays;
	h->tick_ns = js->tick_ns;
	h->turns_ns = js->turns_ns;
	h->rehearsal = js->rehearsal;
	h->rehearsed = js->rehearsed;
	h->give_up_ns = now_ns() + job->limit_ms * 500000u;
	h->wl = (struct wl){
		.def = workload_named(job->workload),
		.tasks = 1,
		.exact = js->exact || job->batches,
		.seed = js->seed,
		.harness = h,
	};
	drive(h);
	if (h->wl.def->teardown && !case_failed(h)) /* after a failure it may hang */
		h->wl.def->teardown(&h->wl);
	if (h->out.lost)
		set_error(h, STATE_FAILED, "out of memory for the records");
	report(h, fd);
	while (stays)
		pause();
}

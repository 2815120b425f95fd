/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs each job in a child of its own and owns the stream. Whatever a child was
 * killed in the middle of is dropped here.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgroup.h"
#include "harness.h"
#include "harness_child.h"
#include "kstat.h"
#include "mark.h"
#include "oom.h"
#include "pressure.h"
#include "readfile.h"
#include "trace.h"

static void done(const struct supervisor *sv, const struct job *job, const char *state,
		 const char *why)
{
	struct text t = {0};

	done_record(&t, job->nr, state, why);
	stream_record(sv->stream, t.s, t.len - 1);
	text_free(&t);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st;
	(void)ftw;
	if (kind == FTW_DP || kind == FTW_D)
		rmdir(path);
	else
		unlink(path);
	return 0;
}

static void remove_folder(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void empty_folder(const char *tmp)
{
	remove_folder(tmp);
	mkdir(tmp, 0700);
}

/* A name that repeats where everything is ours, one that nobody can guess elsewhere. */
static bool make_tmp(const struct supervisor *sv, unsigned int job, char *path, size_t size)
{
	if (sv->init) {
		snprintf(path, size, "/tmp/job%u", job);
		return !mkdir(path, 0700);
	}
	snprintf(path, size, "%s/kdelta.XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	return mkdtemp(path) != NULL;
}

static void forward(const struct supervisor *sv, const struct child *c, const struct job *job)
{
	char *line = c->said.s, *end, why[200];

	if (child_has_outcome(c)) {
		for (; line && (end = strchr(line, '\n')); line = end + 1)
			stream_record(sv->stream, line, (size_t)(end - line));
		return;
	}
	child_describe_death(c, job, why, sizeof(why));
	done(sv, job, c->late ? "hung" : "failed", why);
}

/* Nothing comes after the only job of a restored guest: no folder is emptied, no process ends. */
static bool is_last(const struct supervisor *sv, const struct jobs *js)
{
	return sv->prepared && js->njobs == 1 && !js->rehearsal;
}

static void child_main(const struct supervisor *sv, const struct jobs *js, const struct job *job,
		       const char *cgroup, const char *tmp, int fd)
{
	char why[200];
	struct text t = {0};
	sigset_t none;

	if (!sv->init)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	close(sv->stream->fd);
	if (cgroup_join(cgroup, why, sizeof(why))) {
		done_record(&t, job->nr, "unsupported", why);
		write_all(fd, t.s, t.len);
		_exit(0);
	}
	case_run(js, job, sv->data_dir, tmp, fd, is_last(sv, js));
	_exit(0);
}

/* What the pressure beside the case came to; a run that it did not last for counts for nothing. True if it did. */
static bool pressure_held(const struct supervisor *sv, const struct job *job, struct pressure *p)
{
	char why[200];

	if (!job->pressure)
		return true;
	if (pressure_check(p, why, sizeof(why))) {
		done(sv, job, "failed", why);
		return false;
	}
	pressure_report(p, sv->stream, job->nr);
	return true;
}

/* What a child that was forked before its job was known is told; the list of jobs follows. */
struct order {
	unsigned int job;
	char cgroup[256], tmp[64];
	uint64_t tick_ns, turns_ns, seed;
	bool rehearsal, rehearsed;
};

static void child_with_order(void *arg, const char *text, size_t n)
{
	const struct supervisor *sv = arg;
	const struct order *order = (const void *)text;
	struct jobs js;
	char why[200];

	if (n <= sizeof(*order) ||
	    jobs_parse(&js, text + sizeof(*order), n - sizeof(*order), why, sizeof(why)))
		return; /* the supervisor says that the case ended without a result */
	js.tick_ns = order->tick_ns;
	js.turns_ns = order->turns_ns;
	js.seed = order->seed;
	js.rehearsal = order->rehearsal;
	js.rehearsed = order->rehearsed;
	child_main(sv, &js, &js.jobs[order->job], order->cgroup, order->tmp,
		   sv->prepared->records[1]);
}

static pid_t order_child(const struct supervisor *sv, const struct jobs *js, const struct job *job,
			 const char *cgroup, const char *tmp, int *records)
{
	struct prepared *p = sv->prepared;
	struct order order = {
		.job = (unsigned int)(job - js->jobs),
		.tick_ns = js->tick_ns,
		.turns_ns = js->turns_ns,
		.seed = js->seed,
		.rehearsal = js->rehearsal,
		.rehearsed = js->rehearsed,
	};
	struct text t = {0};
	pid_t pid;

	snprintf(order.cgroup, sizeof(order.cgroup), "%s", cgroup);
	snprintf(order.tmp, sizeof(order.tmp), "%s", tmp);
	text_bytes(&t, (const char *)&order, sizeof(order));
	text_bytes(&t, p->source, p->source_bytes);
	pid = t.lost ? -1 : ready_go(&p->child, t.s, t.len);
	text_free(&t);
	close(p->records[1]);
	*records = p->records[0];
	return pid;
}

int supervisor_perturb(const struct supervisor *sv, uint64_t seed)
{
	struct prepared *p = sv->prepared;

	if (perturb_start(seed, &p->holder) < 0)
		return -1;
	return ready_again(&p->child, p->records);
}

int supervisor_prepare(const struct supervisor *sv)
{
	struct prepared *p = sv->prepared;

	/* The holder first: it shall not keep the child's pipe open. */
	if (perturb_prepare(&p->holder) || pipe2(p->records, O_CLOEXEC))
		return -1;
	return ready_fork(&p->child, child_with_order, (void *)(uintptr_t)sv);
}

static pid_t start_child(const struct supervisor *sv, const struct jobs *js, const struct job *job,
			 const char *cgroup, const char *tmp, int *records)
{
	int ends[2];
	pid_t pid;

	if (sv->prepared && sv->prepared->child.pid)
		return order_child(sv, js, job, cgroup, tmp, records);
	if (pipe2(ends, O_CLOEXEC))
		return -1;
	pid = fork();
	if (!pid) {
		close(ends[0]);
		setsid();
		child_main(sv, js, job, cgroup, tmp, ends[1]);
	}
	close(ends[1]);
	*records = ends[0];
	return pid;
}

/* A life of the case; what it said goes out, but for a life of a leak check that went well. True if so. */
static bool run_child(const struct supervisor *sv, const struct jobs *js, const struct job *job,
		      const char *cgroup, const char *tmp, struct pressure *p)
{
	struct child c = {.fd = -1};
	bool ok = false, held, fresh = sv->init && (js->exact || job->batches);

	/* In a guest that counts nothing came before, and to read it would move what is counted. */
	c.oom_kills = fresh ? 0 : oom_kills();
	c.died = !fresh && child_kernel_died();
	c.pid = start_child(sv, js, job, cgroup, tmp, &c.fd);
	if (c.pid > 0) {
		child_collect(&c, job->limit_ms * 1000000u);
		held = pressure_held(sv, job, p);
		if (!is_last(sv, js) || !child_has_outcome(&c))
			child_finish(&c, sv->init && !js->rehearsal, cgroup);
		if (!sv->init)
			child_end_session(&c);
		if (!c.ended && (c.late || c.stays))
			stream_note(sv->stream, "process %d of a job could not be killed",
				    (int)c.pid);
		ok = child_is_ok(&c);
		if (held && (!ok || !job->batches))
			forward(sv, &c, job);
	} else {
		done(sv, job, "failed", "no process or no pipe for the case");
	}
	close(c.fd);
	text_free(&c.said);
	return ok;
}

static void run_lives(const struct supervisor *sv, const struct jobs *js, const struct job *job,
		      const char *cgroup, const char *tmp)
{
	struct leaks *l = leaks_start(sv->stream, job->nr);
	uint64_t i;

	if (!l) {
		done(sv, job, "failed", "no memory for the leak check");
		return;
	}
	for (i = 0; i <= job->batches && run_child(sv, js, job, cgroup, tmp, NULL); i++) {
		empty_folder(tmp);
		leaks_read(l);
	}
	if (i > job->batches) {
		leaks_report(l, job->ops);
		done(sv, job, "ok", "");
	}
	leaks_end(l);
}

static void run_pressed(const struct supervisor *sv, const struct jobs *js, const struct job *job,
			const char *cgroup, const char *tmp)
{
	struct pressure p = {0};
	char why[200];

	if (!sv->init || js->exact || job->batches) {
		done(sv, job, "unsupported", "memory pressure is for timed runs in a guest");
		return;
	}
	if (pressure_start(&p, job->pressure, why, sizeof(why))) {
		done(sv, job, "failed", why);
		return;
	}
	run_child(sv, js, job, cgroup, tmp, &p);
	pressure_stop(&p);
}

static void run_job(const struct supervisor *sv, const struct jobs *js, const struct job *job)
{
	char tmp[64], cgroup[256] = "", why[200];
	struct holder holder = {.in_guest = sv->init};
	pid_t held = -1;

	MARK(MARK_OP_FORGET, 0);
	if (job->bad[0]) {
		done(sv, job, "failed", job->bad);
		return;
	}
	if (!case_known(job)) {
		snprintf(why, sizeof(why), "this guest has no workload %.100s", job->workload);
		done(sv, job, "failed", why);
		return;
	}
	if (job->cgroup_child &&
	    cgroup_make(job->nr, sv->init, cgroup, sizeof(cgroup), why, sizeof(why))) {
		done(sv, job, "unsupported", why);
		return;
	}
	if (!make_tmp(sv, job->nr, tmp, sizeof(tmp))) {
		done(sv, job, "failed", "no scratch directory");
	} else {
		if (js->exact && !sv->prepared)
			held = perturb_start(js->seed, &holder);
		if (job->pressure)
			run_pressed(sv, js, job, cgroup, tmp);
		else if (job->batches)
			run_lives(sv, js, job, cgroup, tmp);
		else
			run_child(sv, js, job, cgroup, tmp, NULL);
		if (is_last(sv, js))
			return;
		trace_undo(job);
		if (held > 0 && !kill(held, SIGKILL))
			waitpid(held, NULL, 0);
		remove_folder(tmp);
	}
	cgroup_remove(cgroup);
}

static void no_action(int sig)
{
	(void)sig;
}

void supervisor_run(const struct supervisor *sv, const struct jobs *js)
{
	struct sigaction sa = {.sa_handler = no_action};
	sigset_t child;
	size_t i;

	kstat_alone = sv->init;

	/* SIGCHLD only has to end ppoll(). */
	sigaction(SIGCHLD, &sa, NULL);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (i = 0; i < js->njobs && !sv->stream->error; i++) {
		struct text t = {0};

		text_put(&t, "{\"t\":\"job\",\"j\":%u,\"case\":", js->jobs[i].nr);
		text_json(&t, js->jobs[i].workload);
		text_put(&t, "}");
		stream_record(sv->stream, t.s, t.len);
		text_free(&t);
		run_job(sv, js, &js->jobs[i]);
	}
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs each job in a child of its own and owns the stream. A child hands over
 * whole records and, last, its outcome; whatever it was killed in the middle of
 * is dropped here.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <poll.h>
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
#include "kstat.h"
#include "pressure.h"
#include "readfile.h"
#include "trace.h"

#define RECORDS_MAX (64u << 20)
#define GRACE_MS 5000 /* for a child to end by itself after its outcome, or to die when killed */

static void done(const struct boss *b, const struct job *job, const char *state, const char *why)
{
	struct text t = {0};

	done_record(&t, job->nr, state, why);
	stream_record(b->stream, t.s, t.len - 1);
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

static void empty_tmp(const char *tmp)
{
	nftw(tmp, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	mkdir(tmp, 0700);
}

/* A name that repeats where everything is ours, one that nobody can guess elsewhere. */
static bool make_tmp(const struct boss *b, unsigned int job, char *path, size_t size)
{
	if (b->init) {
		snprintf(path, size, "/tmp/job%u", job);
		return !mkdir(path, 0700);
	}
	snprintf(path, size, "%s/kdelta.XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	return mkdtemp(path) != NULL;
}

struct child {
	pid_t pid;
	int fd; /* its records */
	int status;
	bool ended, late;
	bool stays; /* closed the pipe, but lives on */
	struct text said;
};

static void reap(struct child *c)
{
	pid_t pid;

	while ((pid = waitpid(-1, &c->status, WNOHANG)) > 0)
		if (pid == c->pid) {
			c->ended = true;
			return;
		}
}

static bool has_outcome(const struct text *said)
{
	const char *at = said->s ? strstr(said->s, "{\"t\":\"done\"") : NULL;

	return at && strchr(at, '\n');
}

/* Reads until the outcome is there, the child has ended, or its time is over. */
static void collect(struct child *c, uint64_t limit_ns)
{
	uint64_t deadline = now_ns() + limit_ns;
	sigset_t none;

	sigemptyset(&none);
	while (!has_outcome(&c->said) && c->said.len < RECORDS_MAX) {
		struct pollfd p = {.fd = c->fd, .events = POLLIN};
		uint64_t now = now_ns(), left = deadline > now ? deadline - now : 0;
		struct timespec t = {(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
		char buf[65536];
		ssize_t n;

		reap(c); /* SIGCHLD is blocked but in ppoll, so none is missed */
		if (!left)
			c->late = true;
		if (ppoll(&p, 1, c->ended || c->late ? &(struct timespec){0} : &t, &none) > 0) {
			n = read(c->fd, buf, sizeof(buf));
			if (n <= 0)
				return;
			text_bytes(&c->said, buf, (size_t)n);
		} else if (c->ended || c->late) {
			return;
		}
	}
}

static void wait_ended(struct child *c, int grace_ms)
{
	uint64_t deadline = now_ns() + (uint64_t)grace_ms * 1000000u;

	for (reap(c); !c->ended && now_ns() < deadline; reap(c))
		usleep(1000);
}

/* Ends the child and all that it left behind. */
static void finish_child(const struct boss *b, struct child *c, const char *cgroup)
{
	if (!c->late)
		wait_ended(c, GRACE_MS);
	c->stays = !c->ended;
	cgroup_kill(cgroup);
	kill(-c->pid, SIGKILL);
	if (b->init)
		kill(-1, SIGKILL); /* all but PID 1 itself */
	wait_ended(c, GRACE_MS);
	while (waitpid(b->init ? -1 : -c->pid, NULL, b->init && c->ended ? 0 : WNOHANG) > 0)
		;
	if (!c->ended)
		stream_note(b->stream, "process %d of a job could not be killed", (int)c->pid);
}

static void describe_death(const struct child *c, const struct job *job, char *why, size_t size)
{
	if (c->late)
		snprintf(why, size, "no end within the time limit of %" PRIu64 " ms",
			 job->limit_ms);
	else if (c->stays)
		snprintf(why, size, "the case closed its record pipe without a result");
	else if (WIFSIGNALED(c->status))
		snprintf(why, size, "the case was killed by SIG%s%s",
			 sigabbrev_np(WTERMSIG(c->status)) ?: "?",
			 WTERMSIG(c->status) == SIGKILL ? " (out of memory?)" : "");
	else
		snprintf(why, size, "the case exited with status %d and without a result",
			 WEXITSTATUS(c->status));
}

static bool is_ok(const struct child *c)
{
	const char *at = has_outcome(&c->said) ? strstr(c->said.s, "{\"t\":\"done\"") : NULL;

	return at && strstr(at, "\"state\":\"ok\"");
}

static void forward(const struct boss *b, const struct child *c, const struct job *job)
{
	char *line = c->said.s, *end, why[128];

	if (has_outcome(&c->said)) {
		for (; line && (end = strchr(line, '\n')); line = end + 1)
			stream_record(b->stream, line, (size_t)(end - line));
		return;
	}
	describe_death(c, job, why, sizeof(why));
	done(b, job, c->late ? "hung" : "failed", why);
}

static void child_main(const struct boss *b, const struct jobs *js, const struct job *job,
		       const char *cgroup, const char *tmp, int fd)
{
	char why[200];
	struct text t = {0};
	sigset_t none;

	setsid();
	if (!b->init)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	close(b->stream->fd);
	if (cgroup_join(cgroup, why, sizeof(why))) {
		done_record(&t, job->nr, "unsupported", why);
		write_all(fd, t.s, t.len);
		_exit(0);
	}
	case_run(js, job, b->data_dir, tmp, fd);
	_exit(0);
}

/* What the pressure beside the case came to; a run that it did not last for counts for nothing. True if it did. */
static bool pressure_held(const struct boss *b, const struct job *job, struct pressure *p)
{
	char why[200];

	if (!job->pressure)
		return true;
	if (pressure_check(p, why, sizeof(why))) {
		done(b, job, "failed", why);
		return false;
	}
	pressure_report(p, b->stream, job->nr);
	return true;
}

/* A life of the case; what it said goes out, but for a life of a leak check that went well. True if so. */
static bool run_child(const struct boss *b, const struct jobs *js, const struct job *job,
		      const char *cgroup, const char *tmp, struct pressure *p)
{
	struct child c = {0};
	bool ok = false, held;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC)) {
		done(b, job, "failed", "no pipe for the records");
		return false;
	}
	c.pid = fork();
	if (!c.pid) {
		close(ends[0]);
		child_main(b, js, job, cgroup, tmp, ends[1]);
	}
	close(ends[1]);
	c.fd = ends[0];
	if (c.pid > 0) {
		collect(&c, job->limit_ms * 1000000u);
		held = pressure_held(b, job, p);
		finish_child(b, &c, cgroup);
		ok = is_ok(&c);
		if (held && (!ok || !job->batches))
			forward(b, &c, job);
	} else {
		done(b, job, "failed", "fork of the case failed");
	}
	close(c.fd);
	text_free(&c.said);
	return ok;
}

static void run_lives(const struct boss *b, const struct jobs *js, const struct job *job,
		      const char *cgroup, const char *tmp)
{
	struct leaks *l = leaks_start(b->stream, job->nr);
	uint64_t i;

	if (!l) {
		done(b, job, "failed", "no memory for the leak check");
		return;
	}
	for (i = 0; i <= job->batches && run_child(b, js, job, cgroup, tmp, NULL); i++) {
		empty_tmp(tmp);
		leaks_read(l);
	}
	if (i > job->batches) {
		leaks_report(l, job->ops);
		done(b, job, "ok", "");
	}
	leaks_end(l);
}

static void run_pressed(const struct boss *b, const struct jobs *js, const struct job *job,
			const char *cgroup, const char *tmp)
{
	struct pressure p = {0};
	char why[200];

	if (!b->init || js->exact || job->batches) {
		done(b, job, "unsupported", "memory pressure is for timed runs in a guest");
		return;
	}
	if (pressure_start(&p, job->pressure, why, sizeof(why))) {
		done(b, job, "failed", why);
		return;
	}
	run_child(b, js, job, cgroup, tmp, &p);
	pressure_stop(&p);
}

static void run_job(const struct boss *b, const struct jobs *js, const struct job *job)
{
	char tmp[64], cgroup[256] = "", why[200];
	pid_t holder = -1;

	if (job->bad[0]) {
		done(b, job, "failed", job->bad);
		return;
	}
	if (!case_known(job)) {
		snprintf(why, sizeof(why), "this guest has no workload %.100s", job->workload);
		done(b, job, "failed", why);
		return;
	}
	if (job->cgroup_child &&
	    cgroup_make(job->nr, b->init, cgroup, sizeof(cgroup), why, sizeof(why))) {
		done(b, job, "unsupported", why);
		return;
	}
	if (!make_tmp(b, job->nr, tmp, sizeof(tmp))) {
		done(b, job, "failed", "no scratch directory");
	} else {
		if (js->exact)
			holder = perturb_start(js->seed, job->nr);
		if (job->pressure)
			run_pressed(b, js, job, cgroup, tmp);
		else if (job->batches)
			run_lives(b, js, job, cgroup, tmp);
		else
			run_child(b, js, job, cgroup, tmp, NULL);
		trace_undo(job);
		if (holder > 0 && !kill(holder, SIGKILL))
			waitpid(holder, NULL, 0);
		nftw(tmp, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	}
	cgroup_remove(cgroup);
}

static void no_action(int sig)
{
	(void)sig;
}

void boss_run(const struct boss *b, const struct jobs *js)
{
	struct sigaction sa = {.sa_handler = no_action};
	sigset_t child;
	size_t i;

	kstat_alone = b->init;

	/* SIGCHLD only has to end ppoll(). */
	sigaction(SIGCHLD, &sa, NULL);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (i = 0; i < js->njobs && !b->stream->error; i++) {
		struct text t = {0};

		text_put(&t, "{\"t\":\"job\",\"j\":%u,\"case\":", js->jobs[i].nr);
		text_json(&t, js->jobs[i].workload);
		text_put(&t, "}");
		stream_record(b->stream, t.s, t.len);
		text_free(&t);
		run_job(b, js, &js->jobs[i]);
	}
}

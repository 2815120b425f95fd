/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgroup.h"
#include "harness.h"
#include "harness_child.h"
#include "oom.h"
#include "readfile.h"

#define RECORDS_MAX (64u << 20)
#define GRACE_MS 5000 /* for a child to end by itself after its outcome, or to die when killed */

/* The statuses of others who ended, as of what holds a seed's memory, are nobody's. */
static void reap(struct child *c)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == c->pid) {
			c->status = status;
			c->ended = true;
			return;
		}
}

static const char *outcome(const struct child *c)
{
	const char *at = c->said.s ? strstr(c->said.s, "{\"t\":\"done\"") : NULL;

	return at && strchr(at, '\n') ? at : NULL;
}

bool child_has_outcome(const struct child *c)
{
	return outcome(c);
}

bool child_is_ok(const struct child *c)
{
	const char *at = outcome(c);

	return at && strstr(at, "\"state\":\"ok\"");
}

void child_collect(struct child *c, uint64_t limit_ns)
{
	uint64_t deadline = now_ns() + limit_ns;
	sigset_t none;

	sigemptyset(&none);
	while (!child_has_outcome(c) && c->said.len < RECORDS_MAX) {
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

void child_finish(struct child *c, bool all, const char *cgroup)
{
	if (!c->late)
		wait_ended(c, GRACE_MS);
	c->stays = !c->ended;
	cgroup_kill(cgroup);
	kill(-c->pid, SIGKILL);
	if (all)
		kill(-1, SIGKILL); /* all but PID 1 itself */
	wait_ended(c, GRACE_MS);
	while (waitpid(all ? -1 : -c->pid, NULL, all && c->ended ? 0 : WNOHANG) > 0)
		;
}

/* Of a process of /proc, or 0. */
static pid_t session_of(const char *pid)
{
	char path[300], line[512], *at;
	int session = 0;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	at = read_line(path, line, sizeof(line)) ? strrchr(line, ')') : NULL;
	return at && sscanf(at, ") %*c %*d %*d %d", &session) == 1 ? session : 0;
}

void child_end_session(const struct child *c)
{
	DIR *all = opendir("/proc");
	struct dirent *e;

	while (all && (e = readdir(all)))
		if (isdigit((unsigned char)e->d_name[0]) && session_of(e->d_name) == c->pid)
			kill(atoi(e->d_name), SIGKILL);
	if (all)
		closedir(all);
}

bool child_kernel_died(void)
{
	char line[32];

	return read_line("/proc/sys/kernel/tainted", line, sizeof(line)) && is_taint_of_death(line);
}

/* Who may have sent it. */
static const char *sender(const struct child *c)
{
	switch (WTERMSIG(c->status)) {
	case SIGKILL:
		if (!c->died && child_kernel_died())
			return ", by the kernel, which met a bug of its own: see its console";
		if (oom_kills() < 0)
			return " (out of memory?)";
		if (oom_kills() > c->oom_kills)
			return ", for memory ran out";
		return ", by a process, perhaps its own: memory did not run out, and "
		       "kill(-1, SIGKILL) ends the case too";
	case SIGHUP:
	case SIGINT:
	case SIGQUIT:
	case SIGTERM:
		return ", by a process, perhaps its own: kill(-1, ...) ends the case too";
	default:
		return "";
	}
}

void child_describe_death(const struct child *c, const struct job *job, char *why, size_t size)
{
	if (c->late)
		snprintf(why, size, "timed out after %" PRIu64 " ms", job->limit_ms);
	else if (c->stays)
		snprintf(why, size, "the case closed its record pipe without a result");
	else if (WIFSIGNALED(c->status))
		snprintf(why, size, "the case was killed by SIG%s%s",
			 sigabbrev_np(WTERMSIG(c->status)) ?: "?", sender(c));
	else
		snprintf(why, size, "the case exited with status %d and without a result",
			 WEXITSTATUS(c->status));
}

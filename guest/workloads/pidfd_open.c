/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pidfd_open(2) on a live process, timed alone; the close(2) follows outside
 * the measured span and before the next open, so that each open finds the
 * target without a pidfd unless the case holds one.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../workload.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
/* The kernel defines both by these flags of open(2). */
#define FLAG_NONBLOCK ((unsigned int)O_NONBLOCK)
#define FLAG_THREAD ((unsigned int)O_EXCL)

/* Live processes for the memory figures. */
#define FIGURE_CHILDREN 256
#define SLEEPER_STACK 4096
#define MAX_TARGETS 4096
#define MAX_SLEEPERS (MAX_TARGETS + FIGURE_CHILDREN)

struct state {
	pid_t *pids;
	int *held;
	unsigned int count;
	unsigned int next;
	unsigned int flags;
	int fd;
};

static int pidfd_open_raw(pid_t pid, unsigned int flags)
{
	return (int)syscall(SYS_pidfd_open, pid, flags);
}

static int sleeper(void *parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == *(pid_t *)parent)
		for (;;)
			pause();
	return 0;
}

/*
 * A process that lives until it is killed, also when its parent dies first. It
 * shares the parent's memory, which makes it cheap to have many.
 */
static pid_t spawn_sleeper(void)
{
	static char stacks[MAX_SLEEPERS][SLEEPER_STACK] __attribute__((aligned(16)));
	static unsigned int next;
	static pid_t parent;

	parent = getpid();
	return clone(sleeper, stacks[next++ % MAX_SLEEPERS] + SLEEPER_STACK, CLONE_VM | SIGCHLD,
		     &parent);
}

static void reap(const pid_t *pids, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		kill(pids[i], SIGKILL);
	for (i = 0; i < count; i++)
		while (waitpid(pids[i], NULL, 0) < 0 && errno == EINTR)
			;
}

/* Tells a kernel without the feature from one that refused the call. */
static int explain(struct wl *wl, const struct state *s)
{
	if (errno == ENOSYS)
		return wl_unsupported(wl, "syscall pidfd_open (v5.3)");
	if (errno == EINVAL && s->flags == FLAG_THREAD)
		return wl_unsupported(wl, "PIDFD_THREAD (v6.9)");
	if (errno == EINVAL && s->flags == FLAG_NONBLOCK)
		return wl_unsupported(wl, "PIDFD_NONBLOCK (v5.10)");
	return wl_fail(wl, "pidfd_open");
}

static int setup(struct wl *wl)
{
	struct state *s = calloc(1, sizeof(*s));
	bool child = wl_param_is(wl, "target", "child");
	bool held = wl_param_u64(wl, "held");
	unsigned int wanted = child ? (unsigned int)wl_param_u64(wl, "targets") : 1;

	if (!s || wanted > MAX_TARGETS)
		return wl_fail(wl, "memory for %u targets, of at most %d", wanted, MAX_TARGETS);
	wl->priv = s;
	s->pids = calloc(wanted, sizeof(*s->pids));
	s->held = calloc(wanted, sizeof(*s->held));
	if (!s->pids || !s->held)
		return wl_fail(wl, "memory for %u targets", wanted);
	if (wl_param_is(wl, "flags", "nonblock"))
		s->flags = FLAG_NONBLOCK;
	else if (wl_param_is(wl, "flags", "thread"))
		s->flags = FLAG_THREAD;
	for (; s->count < wanted; s->count++) {
		pid_t pid = child ? spawn_sleeper() : getpid();
		int fd;

		if (pid < 0)
			return wl_fail(wl, "clone of target %u", s->count);
		s->pids[s->count] = pid;
		s->held[s->count] = -1;
		fd = pidfd_open_raw(pid, s->flags);
		if (fd < 0)
			return explain(wl, s); /* the sleepers die with this process */
		if (held)
			s->held[s->count] = fd;
		else
			close(fd);
	}
	return 0;
}

static void op(struct wl_task *t)
{
	struct state *s = t->wl->priv;

	s->fd = pidfd_open_raw(s->pids[s->next], s->flags);
	if (s->fd < 0)
		wl_op_failed(t, "pidfd_open");
}

static void after(struct wl_task *t)
{
	struct state *s = t->wl->priv;

	close(s->fd);
	if (++s->next == s->count)
		s->next = 0;
}

static int64_t objects(const struct wl_kstat *k)
{
	return k->dentries + k->inodes + k->pids;
}

/* Slab bytes for each target: while its pidfd is held, and once it was closed again. */
struct cost {
	double held, had;
};

static int64_t slab_bytes(const struct wl_kstat *k)
{
	return k->slab_object_bytes >= 0 ? k->slab_object_bytes : k->slab_bytes;
}

/*
 * One life of FIGURE_CHILDREN targets. Returns what a pidfd costs while all of
 * them live, and in *left the objects that stay when all have gone.
 */
static int life(struct wl *wl, unsigned int flags, struct cost *cost, int64_t *left)
{
	pid_t pids[FIGURE_CHILDREN];
	int fds[FIGURE_CHILDREN];
	struct wl_kstat before, none, held, had, after_exit;
	unsigned int n;

	wl_kstat_settled(&before);
	for (n = 0; n < FIGURE_CHILDREN; n++) {
		pids[n] = spawn_sleeper();
		if (pids[n] < 0) {
			reap(pids, n);
			return wl_fail(wl, "clone of %d processes for the memory figure",
				       FIGURE_CHILDREN);
		}
	}
	wl_kstat_settled(&none);
	for (n = 0; n < FIGURE_CHILDREN; n++)
		fds[n] = pidfd_open_raw(pids[n], flags);
	wl_kstat_settled(&held);
	for (n = 0; n < FIGURE_CHILDREN; n++)
		close(fds[n]);
	wl_kstat_settled(&had);
	reap(pids, FIGURE_CHILDREN);
	wl_kstat_settled(&after_exit);

	cost->held = (double)(slab_bytes(&held) - slab_bytes(&none)) / FIGURE_CHILDREN;
	cost->had = (double)(slab_bytes(&had) - slab_bytes(&none)) / FIGURE_CHILDREN;
	*left = objects(&after_exit) - objects(&before);
	return 0;
}

static int figures(struct wl *wl)
{
	const struct state *s = wl->priv;
	struct cost cost, again;
	int64_t left, more;
	int error = life(wl, s->flags, &cost, &left);

	/* A leak grows with every life; a cache that fills, only with the first. */
	if (!error && left > 0) {
		error = life(wl, s->flags, &again, &more);
		left = more < left ? more : left;
	}
	if (error)
		return error;
	wl_value(wl, "slab_bytes_per_process", cost.had > 0 ? cost.had : 0);
	wl_value(wl, "slab_bytes_per_pidfd", cost.held > 0 ? cost.held : 0);
	wl_value(wl, "objects_left", left > 0 ? (double)left : 0);
	return 0;
}

static void teardown(struct wl *wl)
{
	struct state *s = wl->priv;
	unsigned int i;

	for (i = 0; i < s->count; i++)
		if (s->held[i] >= 0)
			close(s->held[i]);
	if (wl_param_is(wl, "target", "child"))
		reap(s->pids, s->count);
	free(s->held);
	free(s->pids);
	free(s);
}

static const struct workload pidfd_open_workload = {
	.name = "pidfd_open",
	.setup = setup,
	.op = op,
	.after = after,
	.figures = figures,
	.teardown = teardown,
};
WORKLOAD(pidfd_open_workload);

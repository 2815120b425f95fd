/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes that a limit forbids, and an open(2) that a signal ends. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "lifetimes.h"

#define ROOT "/sys/fs/cgroup"
#define NOBODY 65534

static const char group[] = ROOT "/kdelta-lifetimes";

static int put(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : write(fd, value, strlen(value));

	if (fd >= 0)
		close(fd);
	return n < 0 ? -1 : 0;
}

static int put_in_group(const char *file, const char *value)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/%s", group, file);
	return put(path, value);
}

/* From here on no further process fits into this one's cgroup. */
static int enter_full_cgroup(struct wl *wl)
{
	if (put(ROOT "/cgroup.subtree_control", "+pids"))
		return wl_unsupported(wl, "pids.max of cgroup2 (CONFIG_CGROUP_PIDS, as root)");
	if (mkdir(group, 0755) && errno != EEXIST)
		return wl_fail(wl, "a cgroup");
	if (put_in_group("pids.max", "1") || put_in_group("cgroup.procs", "0"))
		return wl_fail(wl, "entering a cgroup with pids.max");
	return 0;
}

static void leave_cgroup(struct wl *wl)
{
	if (put(ROOT "/cgroup.procs", "0") || rmdir(group))
		wl_fail(wl, "leaving the cgroup");
}

static int setup_clone3_eagain(struct wl *wl)
{
	int error = lifetimes_need_clone3(wl);

	return error ? error : enter_full_cgroup(wl);
}

static void must_fail(struct wl_task *t, int pid)
{
	if (!pid)
		_exit(0);
	if (pid < 0 && errno == EAGAIN)
		return;
	wl_op_failed(t, "fork beyond the limit did not fail with EAGAIN");
	if (pid > 0)
		lifetimes_reap(pid);
}

/* The pidfd is made, then the cgroup says no. */
static void clone3_eagain(struct wl_task *t)
{
	int pidfd = -1;

	must_fail(t, lifetimes_clone3(&pidfd));
}

static void fork_refused(struct wl_task *t)
{
	must_fail(t, fork());
}

static int setup_fork_nproc(struct wl *wl)
{
	struct rlimit none = {0};

	if (setrlimit(RLIMIT_NPROC, &none))
		return wl_fail(wl, "RLIMIT_NPROC");
	/* Root may have as many as it likes. */
	if (!geteuid() && (setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY)))
		return wl_fail(wl, "becoming nobody");
	return 0;
}

static char fifo[192];

static void no_action(int sig)
{
	(void)sig;
}

static int setup_interrupted(struct wl *wl)
{
	struct sigaction sa = {.sa_handler = no_action}; /* no SA_RESTART */

	sigaction(SIGALRM, &sa, NULL);
	snprintf(fifo, sizeof(fifo), "%s/fifo", wl_tmpdir(wl));
	if (mkfifo(fifo, 0600))
		return wl_fail(wl, "mkfifo");
	return 0;
}

/* Nobody opens the other end; the alarm repeats in case the first comes before open(2) sleeps. */
static void interrupted_open(struct wl_task *t)
{
	struct itimerval soon = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
	int fd;

	setitimer(ITIMER_REAL, &soon, NULL);
	fd = open(fifo, O_WRONLY | O_CLOEXEC);
	if (fd >= 0 || errno != EINTR)
		wl_op_failed(t, "open of a fifo that nobody reads was not interrupted");
	if (fd >= 0)
		close(fd);
	setitimer(ITIMER_REAL, &never, NULL);
}

static void teardown_interrupted(struct wl *wl)
{
	(void)wl;
	unlink(fifo);
}

const struct way lifetimes_limits[] = {
	{"clone3_eagain", setup_clone3_eagain, clone3_eagain, leave_cgroup},
	{"fork_pids_max", enter_full_cgroup, fork_refused, leave_cgroup},
	{"fork_nproc", setup_fork_nproc, fork_refused, NULL},
	{"interrupted_open", setup_interrupted, interrupted_open, teardown_interrupted},
	{NULL, NULL, NULL, NULL},
};

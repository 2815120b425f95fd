/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tasks in CPU cgroups, as services and containers have them: each level is another runqueue that a wakeup goes up
 * through (kernel/sched/fair.c, CONFIG_FAIR_GROUP_SCHED). The tasks of the other cases are in the root cgroup.
 *
 *	/sys/fs/cgroup/kdelta-PID	half, with the controllers that the case needs
 *		a/in, b/in		leaves
 */
#include <sys/eventfd.h>

#include "parts.h"

#define CGROUP2 "a cgroup2 at /sys/fs/cgroup with a cpu controller (CONFIG_CGROUP_SCHED)"

static char top[64];
static int fd, other, leaf[2];

static int write_to(const char *path, const char *text)
{
	int to = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n = to < 0 ? -1 : write(to, text, strlen(text));

	if (to >= 0)
		close(to);
	return n < 0 ? -1 : 0;
}

static int set(const char *below, const char *file, const char *text)
{
	char path[160];

	snprintf(path, sizeof(path), "%s%s/%s", top, below, file);
	return write_to(path, text);
}

static int make(const char *below)
{
	char path[160];

	snprintf(path, sizeof(path), "%s%s", top, below);
	return mkdir(path, 0755);
}

static int procs_of(const char *below)
{
	char path[160];

	snprintf(path, sizeof(path), "%s%s/cgroup.procs", top, below);
	return open(path, O_WRONLY | O_CLOEXEC);
}

/* Two leaves, each two levels below the root, and this task in the first of them. */
static void in_groups(struct wl_task *t)
{
	NEED(CGROUP2, write_to("/sys/fs/cgroup/cgroup.subtree_control", "+cpu"));
	snprintf(top, sizeof(top), "/sys/fs/cgroup/kdelta-%d", getpid());
	NEED(CGROUP2, make(""));
	OK(set("", "cgroup.subtree_control", "+cpu"));
	OK(make("/a"));
	OK(make("/b"));
	OK(set("/a", "cgroup.subtree_control", "+cpu"));
	OK(set("/b", "cgroup.subtree_control", "+cpu"));
	OK(make("/a/in"));
	OK(make("/b/in"));
	OK(set("/a/in", "cgroup.procs", "0"));
}

/* Helpers end after this: they are in the second leaf, which is emptied first. */
static void out_of_groups(void)
{
	static const char *const made[] = {"/a/in", "/b/in", "/a", "/b", ""};
	char path[160];

	write_to("/sys/fs/cgroup/cgroup.procs", "0");
	set("/b/in", "cgroup.kill", "1");
	for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", top, made[i]);
		for (int again = 0; rmdir(path) && errno == EBUSY && again < 100; again++)
			usleep(10000);
	}
}

static inline void wake_and_wait(struct wl_task *t)
{
	uint64_t one = 1;

	OK(write(fd, &one, sizeof(one)));
	OK(read(other, &one, sizeof(one)));
}

static void partner(struct wl_task *t)
{
	uint64_t one;

	fd = NEED("CONFIG_EVENTFD", eventfd(0, 0));
	other = OK(eventfd(0, 0));
	if (HELPER()) {
		OK(set("/b/in", "cgroup.procs", "0"));
		while (OK(read(fd, &one, sizeof(one))))
			OK(write(other, &one, sizeof(one)));
	}
}

CASE(cgroup_pingpong, "eventfd(2): wake a process in another CPU cgroup, be woken by it")
{
	wake_and_wait(t);
}

OPS(cgroup_pingpong, 32)

SETUP(cgroup_pingpong)
{
	in_groups(t);
	partner(t);
}

TEARDOWN(cgroup_pingpong)
{
	out_of_groups();
}

CASE(cgroup_quota_pingpong, "the same, both with a cpu.max that is never used up")
{
	wake_and_wait(t);
}

OPS(cgroup_quota_pingpong, 32)

SETUP(cgroup_quota_pingpong)
{
	in_groups(t);
	NEED("CONFIG_CFS_BANDWIDTH", set("/a/in", "cpu.max", "1000000 1000000"));
	OK(set("/b/in", "cpu.max", "1000000 1000000"));
	partner(t);
}

TEARDOWN(cgroup_quota_pingpong)
{
	out_of_groups();
}

CASE(cgroup_attach, "cgroup.procs: into another CPU cgroup, and back")
{
	EXPECT(write(leaf[1], "0", 1) == 1);
	EXPECT(write(leaf[0], "0", 1) == 1);
}

OPS(cgroup_attach, 8)

SETUP(cgroup_attach)
{
	in_groups(t);
	leaf[0] = OK(procs_of("/a/in"));
	leaf[1] = OK(procs_of("/b/in"));
}

TEARDOWN(cgroup_attach)
{
	out_of_groups();
}

CASE(cgroup_mkdir, "mkdir(2) and rmdir(2) of a CPU cgroup")
{
	OK(mkdir("/sys/fs/cgroup/kdelta", 0755));
	OK(rmdir("/sys/fs/cgroup/kdelta"));
}

OPS(cgroup_mkdir, 2)

SETUP(cgroup_mkdir)
{
	NEED(CGROUP2, write_to("/sys/fs/cgroup/cgroup.subtree_control", "+cpu"));
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Any program: an operation is a run of it, from execve(2) to the end of the
 * last process that it has started. What to run is in a data file of the host's
 * (program/PACK, src/kdelta/guest/packing.py): strings KEY=VALUE, each with a NUL at its end.
 *
 * In a guest the program is in a root of its own, read-only but for a scratch
 * directory (/tmp), which is a new tmpfs for each run unless there is a setup; so is, if it shall be writable,
 * a copy of the directory that it runs in. Natively it is where it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../mark.h" /* what the child does before execve is not the program's */
#include "../workload.h"
#include "program_clock.h"
#include "program_copy.h"
#include "program_devices.h"
#include "program_words.h"

#define WORDS 4096
#define UNTIMED_LIMIT 127 /* exit status of a child that could not become the program */
#define ERROR_ROOM \
	224 /* bytes that a record keeps of the error, without "operation of task 0 failed: " and the like */
#define WORDS_LEAST 60

struct command {
	char *argv[WORDS + 1];
	size_t n;
};

static struct {
	struct command run, setup, between;
	char *env[WORDS + 1];
	size_t nenv;
	const char *root, *cwd, *stdin_path;
	const char *scratch;  /* in a guest: where a run may write */
	const char *writable; /* and what of its files it has a copy of, or NULL */
	char kept[4096];      /* what the last run printed first */
	int expected, out, err;
	bool cold, batch, said;
	long oom_kills; /* of this system, before the first run */
	struct clocked clock;
	char what[512]; /* why it failed */
} p;

static bool add(char **list, size_t *n, char *word)
{
	if (*n == WORDS)
		return false;
	list[(*n)++] = word;
	return true;
}

static bool take(const char *key, char *value)
{
	if (!strcmp(key, "arg"))
		return add(p.run.argv, &p.run.n, value);
	if (!strcmp(key, "setup"))
		return add(p.setup.argv, &p.setup.n, value);
	if (!strcmp(key, "between"))
		return add(p.between.argv, &p.between.n, value);
	if (!strcmp(key, "env"))
		return add(p.env, &p.nenv, value);
	if (!strcmp(key, "root"))
		p.root = value;
	else if (!strcmp(key, "scratch"))
		p.scratch = value;
	else if (!strcmp(key, "writable"))
		p.writable = value;
	else if (!strcmp(key, "cwd"))
		p.cwd = value;
	else if (!strcmp(key, "stdin"))
		p.stdin_path = value;
	else if (!strcmp(key, "expect"))
		p.expected = atoi(value);
	else if (!strcmp(key, "cold"))
		p.cold = true;
	else if (!strcmp(key, "batch"))
		p.batch = true;
	else
		return false;
	return true;
}

static int read_spec(struct wl *wl)
{
	static char text[1 << 20];
	char name[64], path[512], *at, *value;
	int fd;
	ssize_t n;

	snprintf(name, sizeof(name), "program/%.40s", wl_param(wl, "pack"));
	fd = open(wl_data(name, path, sizeof(path)), O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return wl_unsupported(wl, "no program: it is run as kdelta compare A B -- PROGRAM");
	close(fd);
	for (at = text; at < text + n; at = value + strlen(value) + 1) {
		value = strchr(at, '=');
		if (!value)
			return wl_fail(wl, "the program's description is damaged");
		*value++ = 0;
		if (!take(at, value))
			return wl_fail(wl, "the program has too many words, or %.20s is unknown",
				       at);
	}
	return p.run.n ? 0 : wl_fail(wl, "the program's description names none");
}

static const char *below(const char *name, char *buf, size_t size)
{
	snprintf(buf, size, "%s%s", p.root, name);
	return buf;
}

static int mount_at(struct wl *wl, const char *type, const char *name)
{
	char path[512];

	if (mount(type, below(name, path, sizeof(path)), type, 0, NULL))
		return wl_fail(wl, "mount of %s at %s", type, path);
	return 0;
}

/* A new copy of what it may write to, where there is any. */
static int renew_writable(struct wl *wl)
{
	char path[512];

	return p.writable ? fresh_copy(wl, below(p.writable, path, sizeof(path))) : 0;
}

/* The root as the program sees it; it goes with the mount namespace of the case. */
static int make_root(struct wl *wl)
{
	char path[512];

	if (!p.root)
		return 0;
	if (!p.scratch)
		return wl_fail(wl, "the program's description has no scratch directory");
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return wl_fail(wl, "no mount namespace");
	if (mount(p.root, p.root, NULL, MS_BIND, NULL) ||
	    mount(NULL, p.root, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL))
		return wl_fail(wl, "the program's files cannot be made read-only");
	if (mount_at(wl, "proc", "/proc") || mount_at(wl, "sysfs", "/sys") ||
	    mount_at(wl, "devtmpfs", "/dev") || mount_at(wl, "tmpfs", p.scratch) ||
	    renew_writable(wl))
		return -1;
	if (furnish_devices(wl, below("/dev", path, sizeof(path))))
		return -1;
	/*
	 * Over the root, as switch_root(8) does: to the kernel the program is then in no chroot, where it refuses new
	 * user namespaces (current_chrooted() in fs/namespace.c). What is mounted over / has the name "/..".
	 */
	if (mount(p.root, "/", NULL, MS_MOVE, NULL))
		return wl_fail(wl, "mount of %s at /", p.root);
	p.root = "/..";
	return 0;
}

static int output(struct wl *wl, const char *name)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", wl_tmpdir(wl), name);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
	return fd < 0 ? wl_fail(wl, "%s", path) : fd;
}

static void leave(const char *what, const char *name)
{
	dprintf(2, "%s %s: %s\n", what, name, strerror(errno));
	_exit(UNTIMED_LIMIT);
}

/* In the child: becomes the command. Only what follows the mark counts, and nothing of --between. */
static void become(const struct command *c)
{
	const char *from = p.stdin_path ? p.stdin_path : "/dev/null";
	cpu_set_t all;
	int in;

	setpgid(0, 0); /* as a job of a shell; it may say kill(0, ...), which scripts do */
	dup2(p.out, 1);
	dup2(p.err, 2);
	memset(&all, 0xff, sizeof(all));
	sched_setaffinity(0, sizeof(all), &all); /* the harness pins its tasks */
	if (p.root && (chroot(p.root) || chdir("/")))
		leave("cannot change to the root", p.root);
	if (p.cwd && chdir(p.cwd))
		leave("cannot change to the directory", p.cwd);
	in = open(from, O_RDONLY);
	if (in < 0 || dup2(in, 0))
		leave("cannot open as standard input", from);
	if (in)
		close(in);
	if (p.batch && sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0}))
		leave("cannot set the policy of", c->argv[0]);
	personality(ADDR_NO_RANDOMIZE);
	if (c == &p.run)
		MARK(MARK_OP_RESUME, 0);
	execve(c->argv[0], c->argv, p.env);
	MARK(MARK_OP_PAUSE, MARK_ALONE);
	leave("cannot execute", c->argv[0]);
}

/* Run it until the last process that it started has ended; its own status. */
static int run(const struct command *c)
{
	int status = -1, one;
	pid_t pid = fork(), found;

	if (!pid) {
		MARK(MARK_OP_PAUSE, MARK_ALONE);
		become(c);
	}
	while ((found = waitpid(-1, &one, 0)) > 0 || errno == EINTR)
		if (found == pid)
			status = one;
	return pid < 0 ? -1 : status;
}

/* Whether what it printed has no room left: what came after it was refused, and it may have gone on all the same. */
static bool full(int fd)
{
	struct statvfs fs;

	return p.root && !fstatvfs(fd, &fs) && fs.f_blocks && !fs.f_bavail;
}

/*
 * What it did not find may only not have been packed; what is packed is read-only; and a guest has little memory.
 * make says that before its last lines.
 */
static const char *remedy(void)
{
	static char where[120];
	char words[512];
	bool missing;

	end_of(p.err, words, sizeof(words));
	missing = strstr(words, "o such file") || strstr(words, "not found");
	if (full(p.out) || (p.root && needs_memory(words, p.oom_kills)))
		return "; the guest is out of memory, files included: --memory SIZE gives it more";
	if (p.root && strstr(words, "ead-only file system")) {
		snprintf(where, sizeof(where), "; it may write in $TMPDIR, %s%s", p.scratch,
			 p.writable ? "" : ", and with --writable where it runs");
		return where;
	}
	return p.root && missing ? "; --follow or --file packs what it needs" : "";
}

/* NULL, or why the run was not as it must be. */
static const char *wrong(const struct command *c, int status, int expected)
{
	const char *slash = strrchr(c->argv[0], '/'), *name = slash ? slash + 1 : c->argv[0];
	char words[160] = "", how[64];
	const char *then, *which = c == &p.between ? "between: " : "";
	size_t room;

	/* as a shell has it: 128 and the signal that ended it */
	if ((WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)) == expected)
		return NULL;
	how_ended(status, expected, how, sizeof(how));
	then = remedy();
	room = strlen(which) + strlen(how) + strlen(then) + (strlen(name) < 60 ? strlen(name) : 60);
	room = room + WORDS_LEAST < ERROR_ROOM ? ERROR_ROOM - room : WORDS_LEAST;
	last_words(p.err, words, room < sizeof(words) ? room : sizeof(words));
	snprintf(p.what, sizeof(p.what), "%s%.60s %s%s%s%s", which, name, how, *words ? ": " : "",
		 words, then);
	errno = 0;
	return p.what;
}

static bool drop_caches(void)
{
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
	bool done;

	sync();
	done = fd >= 0 && write(fd, "3", 1) == 1;
	if (fd >= 0)
		close(fd);
	return done;
}

static int setup(struct wl *wl)
{
	const char *why;

	if (read_spec(wl) || make_root(wl))
		return -1;
	p.out = output(wl, "stdout");
	p.err = output(wl, "stderr");
	if (p.out < 0 || p.err < 0)
		return -1;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	p.oom_kills = oom_kills();
	if (p.cold && !drop_caches())
		return wl_unsupported(wl, "a cold cache needs root");
	if (p.setup.n && (why = wrong(&p.setup, run(&p.setup), 0)))
		return wl_fail(wl, "setup: %s", why);
	return 0;
}

static void op(struct wl_task *t)
{
	const char *why;
	int status;

	MARK(MARK_OP_PAUSE, MARK_ALONE);
	clocked_begin(&p.clock,
		      p.root && t->wl->exact); /* others may follow a timed one in its guest */
	status = run(&p.run);
	clocked_end(&p.clock);
	why = wrong(&p.run, status, p.expected);
	errno = 0;
	if (!why && full(p.out))
		why = "what it prints is more than the guest's files have room for: "
		      "--memory SIZE gives them more";
	MARK(MARK_OP_RESUME, 0);
	if (why)
		wl_op_failed(t, why);
}

/* For the boot's record. */
static void say_output(struct wl *wl)
{
	char *line, *rest = p.kept;

	while ((line = strsep(&rest, "\n")))
		if (*line)
			wl_say(wl, line);
	p.said = true;
}

/* Where each run begins as the one before it did. */
static void say_clock(struct wl *wl)
{
	double share = p.setup.n || p.between.n ? 0 : clocked_share(&p.clock);

	if (share > 0)
		wl_value(wl, "faster_clock_cpu", share);
}

/* As before the first run. */
static void after(struct wl_task *t)
{
	char path[512];
	const char *why;

	keep_output(p.out, p.err, p.kept, sizeof(p.kept));
	/* A restored guest is not torn down, and the first run is never counted. */
	if (t->wl->exact && !p.said)
		say_output(t->wl);
	say_clock(t->wl);
	if (ftruncate(p.out, 0) || ftruncate(p.err, 0))
		wl_op_failed(t, "the output cannot be cut off");
	if (p.root && !p.setup.n &&
	    (umount2(below(p.scratch, path, sizeof(path)), MNT_DETACH) ||
	     mount_at(t->wl, "tmpfs", p.scratch) || renew_writable(t->wl)))
		wl_op_failed(t, "cannot empty what the run has written");
	if (p.between.n && (why = wrong(&p.between, run(&p.between), 0)))
		wl_op_failed(t, why);
	if (p.cold && !drop_caches())
		wl_op_failed(t, "the caches cannot be dropped");
}

static void teardown(struct wl *wl)
{
	if (!p.said)
		say_output(wl);
}

static const struct workload program = {
	.name = "program",
	.setup = setup,
	.op = op,
	.after = after,
	.rested = true, /* one more run before each would double the cost, and is undone anyway */
	.teardown = teardown,
};
WORKLOAD(program);

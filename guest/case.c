/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cases (case.h) as workloads. A case has one task in a process of its own, or one on every CPU. */
#include <inttypes.h>
#include <setjmp.h>
#include <sys/prctl.h>

#include "case.h"

#define OPS_USUAL 64u

/* The linker makes these two from the name of the section that CASE() fills; none, where there is no case. */
extern const struct wl_case *const __start_kdelta_cases[] __attribute__((weak));
extern const struct wl_case *const __stop_kdelta_cases[] __attribute__((weak));

uint64_t case_number;

static const struct wl_case *current;
static bool setting_up;
static volatile sig_atomic_t broke;
/* Where a failure leaves SETUP or a batch of operations: what follows might wait for ever. */
static __thread jmp_buf way_out;
static __thread volatile sig_atomic_t way_out_set;
static __thread pid_t me; /* a task of the case; in a helper another */
static pid_t owner;
static pid_t helpers[256];
static size_t nhelpers;

/* What a kernel answers that lacks the thing, or lets only root have it. */
static bool means_missing(int error)
{
	switch (error) {
	case ENOSYS:
	case EOPNOTSUPP:
	case EAFNOSUPPORT:
	case EPROTONOSUPPORT:
	case ESOCKTNOSUPPORT:
	case ENODEV:
	case ENOENT:
	case EINVAL:
	case EPERM:
	case EACCES:
		return true;
	default:
		return false;
	}
}

static void leave(int sig)
{
	(void)sig;
	broke = true;
	if (way_out_set)
		longjmp(way_out, 1);
}

bool case_broke(struct wl_task *t, const char *what, const char *needs)
{
	int error = errno;

	if (!setting_up)
		wl_op_failed(t, what);
	else if (needs && means_missing(error))
		wl_unsupported(t->wl, "needs %s%s (%s: %s)", needs,
			       error == EPERM || error == EACCES ? ", or root" : "", what,
			       strerror(error));
	else
		wl_fail(t->wl, "setup: %s", what);
	if (gettid() != me) { /* in a helper or a thread: the owner may wait for it */
		syscall(SYS_tgkill, owner, owner, SIGRTMAX);
		syscall(SYS_exit, 1);
	}
	leave(0);
	return true;
}

bool case_helper(struct wl_task *t)
{
	pid_t pid;

	EXPECT(nhelpers < sizeof(helpers) / sizeof(*helpers));
	pid = OK(fork());
	if (pid) {
		helpers[nhelpers++] = pid;
		return false;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != owner)
		_exit(1);
	setting_up = false;
	way_out_set = false;
	return true;
}

/*
 * Whoever is woken runs once the other sleeps (sched(7): SCHED_BATCH). Else the
 * fair scheduler lets the woken preempt the waker or not as their pasts say: on
 * Linux 7.0 a byte there and back by AF_UNIX then cost 10 % more or less from
 * one boot to the next, and 0.06 % so.
 */
static void take_turns(void)
{
	sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){.sched_priority = 0});
}

static bool threads(void)
{
	return current->every_cpu && *current->every_cpu == CASE_TASKS_threads;
}

/* Each of several processes has a directory of its own, beside what SHARED made; one alone too. */
static void go_home(struct wl_task *t, bool own)
{
	char name[16];

	OK(chdir(wl_tmpdir(t->wl)));
	if (!own)
		return;
	snprintf(name, sizeof(name), "%u", t->nr);
	OK(mkdir(name, 0700));
	OK(chdir(name));
}

/* SETUP or SHARED, whoever has to. */
static int prepare(struct wl_task *t, void (*part)(struct wl_task *, uint64_t), bool own)
{
	owner = getpid();
	me = gettid();
	take_turns();
	signal(SIGRTMAX, leave);
	setting_up = true;
	if (!setjmp(way_out)) {
		way_out_set = true;
		go_home(t, own);
		if (part)
			part(t, case_number);
		if (getpid() != owner)
			_exit(0); /* a helper whose block has ended */
	}
	way_out_set = setting_up = false;
	errno = 0;
	return broke ? -1 : 0;
}

static int setup(struct wl_task *t)
{
	if (!threads())
		return prepare(t, current->setup, t->wl->tasks > 1 || current->shared);
	me = gettid();
	take_turns();
	return 0;
}

/* Once, before any task: how many there are, and what they share. */
static int start(struct wl *wl)
{
	struct wl_task all = {.wl = wl};
	unsigned int cpus = wl_cpus(wl);

	if (current->every_cpu || (wl->exact && cpus > 1))
		wl->tasks = cpus;
	wl->processes = wl->tasks > 1 && !threads();
	if (threads())
		return prepare(&all, current->setup, false);
	return current->shared ? prepare(&all, current->shared, false) : 0;
}

static void batch(struct wl_task *t, uint64_t n)
{
	if (!setjmp(way_out)) {
		way_out_set = true;
		if (!broke)
			current->batch(t, n);
	}
	way_out_set = false;
}

static void each(struct wl_task *t, uint64_t n, void (*between)(const struct wl_task *, uint64_t))
{
	for (; n && !broke; n--) {
		current->once(t);
		between(t, n);
	}
}

static void batch_apart(struct wl_task *t, uint64_t n,
			void (*between)(const struct wl_task *, uint64_t))
{
	if (!setjmp(way_out)) {
		way_out_set = true;
		each(t, n, between);
	}
	way_out_set = false;
}

static void once(struct wl_task *t)
{
	if (!broke)
		current->once(t);
}

static void after(struct wl_task *t)
{
	current->after(t, case_number);
}

static void end(struct wl_task *t)
{
	while (nhelpers) {
		pid_t pid = helpers[--nhelpers];

		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (current->teardown)
		current->teardown(t, case_number);
}

static void teardown(struct wl_task *t)
{
	if (!threads())
		end(t);
}

static void teardown_all(struct wl *wl)
{
	if (threads())
		end(&(struct wl_task){.wl = wl});
}

/* "poll-100" of "poll", whose numbers have 100 among them. */
static void variant_name(const struct wl_case *c, size_t i, char *buf, size_t size)
{
	if (c->nnumbers == 1 && !c->numbers[0])
		snprintf(buf, size, "%s", c->name);
	else
		snprintf(buf, size, "%s-%" PRIu64, c->name, c->numbers[i]);
}

/* The case of that name with its number set, NULL where there is none. */
static const struct wl_case *find(const char *name)
{
	const struct wl_case *const *c;
	char buf[128];
	size_t i;

	for (c = __start_kdelta_cases; c < __stop_kdelta_cases; c++) {
		for (i = 0; i < (*c)->nnumbers; i++) {
			variant_name(*c, i, buf, sizeof(buf));
			if (strcmp(buf, name))
				continue;
			case_number = (*c)->numbers[i];
			return *c;
		}
	}
	return NULL;
}

const struct workload *case_workload(const char *name)
{
	static const char *const none[] = {NULL};
	static struct workload w;

	current = find(name);
	if (!current)
		return NULL;
	w = (struct workload){
		.name = current->name,
		.setup = start,
		.task_setup = setup,
		.op = once,
		.batch = current->after ? NULL : batch,
		.batch_apart = current->after ? NULL : batch_apart,
		.after = current->after ? after : NULL,
		.task_teardown = teardown,
		.teardown = teardown_all,
		.params = none,
	};
	return &w;
}

static uint64_t operations(const struct wl_case *c, uint64_t n)
{
	uint64_t ops = c->ops ? c->ops(n) : OPS_USUAL;

	return ops < 1 ? 1 : n && ops > OPS_USUAL ? OPS_USUAL : ops;
}

void case_list(void)
{
	const struct wl_case *const *c;
	char buf[128];
	size_t i;

	for (c = __start_kdelta_cases; c < __stop_kdelta_cases; c++) {
		for (i = 0; i < (*c)->nnumbers; i++) {
			variant_name(*c, i, buf, sizeof(buf));
			printf("%s\t%" PRIu64 "\t%s\n", buf, operations(*c, (*c)->numbers[i]),
			       (*c)->title);
		}
	}
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tasks as threads or processes. The start gate is a futex word. At stop,
 * counted tasks leave their loop and call finish(); the others go on until
 * they are done (EOF) or all counted tasks have left, so that nobody blocks on
 * a peer that has gone.
 */
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

static struct harness *watched; /* by the SIGCHLD handler */

void futex_wait(_Atomic uint32_t *word, uint32_t value)
{
	syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

void futex_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void tasks_event(struct harness *h)
{
	atomic_fetch_add(&h->event, 1);
	futex_wake(&h->event);
}

void tasks_wait(struct harness *h, bool (*cond)(struct harness *h))
{
	for (;;) {
		uint32_t seen = atomic_load(&h->event);

		if (cond(h) || case_failed(h))
			return;
		futex_wait(&h->event, seen);
	}
}

bool tasks_inline(const struct harness *h)
{
	return h->wl.tasks == 1 && !h->wl.processes && !h->wl.def->free_run;
}

void tasks_pin(const struct harness *h, unsigned int nr)
{
	unsigned int cpu, k = nr % (unsigned int)CPU_COUNT(&h->cpus);
	cpu_set_t one;

	for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &h->cpus) && !k--)
			break;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

void *tasks_shared(struct harness *h, size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p != MAP_FAILED)
		return p;
	set_error(h, STATE_FAILED, "no %zu bytes of shared memory: %s", bytes, strerror(errno));
	return NULL;
}

void tasks_background(struct harness *h, struct slot *s)
{
	while (!s->t.done && (atomic_load_explicit(&h->phase, memory_order_relaxed) != PHASE_STOP ||
			      atomic_load(&h->counted_left) < h->counted))
		run_ops(h->wl.def, &s->t, 1);
}

static void task_life(struct harness *h, struct slot *s)
{
	const struct workload *def = h->wl.def;
	int error;

	tasks_pin(h, s->t.nr);
	if (!h->wl.exact)
		s->tid = gettid();
	error = def->task_setup ? def->task_setup(&s->t) : 0;
	if (error && !case_failed(h))
		set_error(h, STATE_FAILED, "task_setup of task %u returned %d", s->t.nr, error);
	atomic_fetch_add(&h->ready, 1);
	tasks_event(h);
	while (atomic_load(&h->phase) == PHASE_WAIT)
		futex_wait(&h->phase, PHASE_WAIT);
	if (!case_failed(h))
		h->loop(h, s);
	if (def->finish)
		def->finish(&s->t);
	if (s->t.counted)
		atomic_fetch_add(&h->counted_left, 1);
	if (def->task_teardown)
		def->task_teardown(&s->t);
	atomic_store(&s->left, true);
	tasks_event(h);
}

static void *thread_main(void *arg)
{
	struct slot *s = arg;

	task_life(harness_of(s->t.wl), s);
	return NULL;
}

/* A task's process that dies before it has left its loop ends the case. */
static void on_child(int sig)
{
	struct harness *h = watched;
	int saved = errno, status;
	unsigned int i;

	(void)sig;
	for (i = 0; i < h->wl.tasks; i++) {
		struct slot *s = &h->slots[i];

		if (s->pid <= 0 || waitpid(s->pid, &status, WNOHANG) != s->pid)
			continue;
		s->pid = 0;
		if (WIFSIGNALED(status))
			set_error(h, STATE_FAILED, "task %u was killed by SIG%s", i,
				  sigabbrev_np(WTERMSIG(status)));
		else if (!atomic_load(&s->left))
			set_error(h, STATE_FAILED, "task %u exited with status %d", i,
				  WEXITSTATUS(status));
		tasks_event(h);
	}
	errno = saved;
}

static void start_process(struct harness *h, struct slot *s, const sigset_t *mask)
{
	pid_t parent = getpid(), pid = fork();

	if (pid) {
		s->pid = pid; /* by the parent alone: the slot is shared */
		if (pid < 0)
			set_error(h, STATE_FAILED, "fork of task %u: %s", s->t.nr, strerror(errno));
	} else {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGCHLD, SIG_DFL);
		sigprocmask(SIG_SETMASK, mask, NULL);
		if (getppid() == parent)
			task_life(h, s);
		_exit(0);
	}
}

static void start_processes(struct harness *h)
{
	struct sigaction sa = {.sa_handler = on_child};
	sigset_t child, before;
	unsigned int i;

	watched = h;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, &before); /* until the pids are known */
	sigaction(SIGCHLD, &sa, NULL);
	for (i = 0; i < h->wl.tasks && !case_failed(h); i++)
		start_process(h, &h->slots[i], &before);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

static void start_threads(struct harness *h)
{
	unsigned int i;

	for (i = 0; i < h->wl.tasks && !case_failed(h); i++) {
		struct slot *s = &h->slots[i];
		int error = pthread_create(&s->thread, NULL, thread_main, s);

		if (error)
			set_error(h, STATE_FAILED, "thread %u: %s", i, strerror(error));
	}
}

static bool all_ready(struct harness *h)
{
	return atomic_load(&h->ready) == h->wl.tasks;
}

int tasks_start(struct harness *h, void (*loop)(struct harness *h, struct slot *s))
{
	unsigned int i;

	h->loop = loop;
	if (h->wl.processes)
		start_processes(h);
	else
		start_threads(h);
	tasks_wait(h, all_ready);
	for (i = 0; i < h->wl.tasks; i++)
		h->counted += h->slots[i].t.counted;
	if (!case_failed(h) && !h->counted)
		set_error(h, STATE_FAILED, "no task's operations are counted");
	if (!case_failed(h) && h->wl.def->started)
		h->wl.def->started(&h->wl);
	return case_failed(h) ? -1 : 0;
}

void tasks_phase(struct harness *h, enum phase phase)
{
	atomic_store(&h->phase, phase);
	futex_wake(&h->phase);
}

static bool all_left(struct harness *h)
{
	unsigned int i;

	for (i = 0; i < h->wl.tasks; i++)
		if (!atomic_load(&h->slots[i].left))
			return false;
	return true;
}

/* Loops that never return: their processes are killed, their threads end with the case. */
static void kill_free_runners(struct harness *h)
{
	unsigned int i;

	signal(SIGCHLD, SIG_DFL);
	for (i = 0; h->wl.processes && i < h->wl.tasks; i++) {
		pid_t pid = h->slots[i].pid;

		if (pid > 0 && !kill(pid, SIGKILL))
			waitpid(pid, NULL, 0);
	}
}

void tasks_stop(struct harness *h)
{
	unsigned int i;

	tasks_phase(h, PHASE_STOP);
	atomic_fetch_add(&h->rep, 1);
	futex_wake(&h->rep);
	if (h->wl.def->free_run) {
		kill_free_runners(h);
		return;
	}
	tasks_wait(h, all_left);
	if (case_failed(h))
		return;
	signal(SIGCHLD, SIG_DFL);
	for (i = 0; i < h->wl.tasks; i++) {
		if (!h->wl.processes)
			pthread_join(h->slots[i].thread, NULL);
		else if (h->slots[i].pid > 0)
			waitpid(h->slots[i].pid, NULL, 0);
	}
}

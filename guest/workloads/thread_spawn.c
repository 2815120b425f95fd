/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Each task creates a thread and joins it, again and again. What matters is
 * the kernel's shared locks at exit, so no stack may be mapped or unmapped per
 * thread: libc reuses a stack that is free again, which the figure
 * maps_changed and a test prove.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../workload.h"

#define MAX_TASKS 1024
#define WARM_UP 64 /* threads before /proc/self/maps is looked at */
/* A detached thread is still on its stack when the next one is made: so many may be. */
#define DETACHED_STACKS 4
/* What libc keeps of free stacks; beyond it unmaps them, which is not what is measured here. */
#define STACK_CACHE (40u << 20)
#define DEFAULT_STACK (8u << 20)
#define LEAST_STACK (16u << 10)

struct shared {
	_Atomic uint64_t maps_changed;
};

struct spawner {
	pthread_attr_t attr;
	sem_t ran, go;
	uint64_t maps; /* after warm-up */
};

/* Hash of the address ranges of this process (FNV-1a), the heap and [stack] apart: they may grow. */
static uint64_t hash_maps(void)
{
	uint64_t hash = 0xcbf29ce484222325u;
	char line[512];
	FILE *f = fopen("/proc/self/maps", "re");

	while (f && fgets(line, sizeof(line), f)) {
		const char *c;

		if (strstr(line, "[heap]") || strstr(line, "[stack]"))
			continue;
		for (c = line; *c && *c != ' '; c++)
			hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
	}
	if (f)
		fclose(f);
	return hash;
}

static void *ends_at_once(void *arg)
{
	return arg;
}

static void *says_it_ran(void *arg)
{
	struct spawner *s = arg;

	sem_post(&s->ran);
	return NULL;
}

static void *waits_for_go(void *arg)
{
	struct spawner *s = arg;

	while (sem_wait(&s->go) && errno == EINTR)
		;
	return says_it_ran(s);
}

static void op_join(struct wl_task *t)
{
	struct spawner *s = t->priv;
	pthread_t thread;

	if (pthread_create(&thread, &s->attr, ends_at_once, NULL))
		wl_op_failed(t, "pthread_create");
	else
		pthread_join(thread, NULL);
}

static void op_detached(struct wl_task *t)
{
	struct spawner *s = t->priv;
	pthread_t thread;

	if (pthread_create(&thread, &s->attr, says_it_ran, s)) {
		wl_op_failed(t, "pthread_create");
		return;
	}
	while (sem_wait(&s->ran) && errno == EINTR)
		;
}

/* Has libc map as many stacks as can be in use at a time. */
static void map_stacks(struct wl_task *t)
{
	struct spawner *s = t->priv;
	pthread_t thread;
	int i, made = 0;

	for (i = 0; i < DETACHED_STACKS; i++)
		made += !pthread_create(&thread, &s->attr, waits_for_go, s);
	for (i = 0; i < made; i++)
		sem_post(&s->go);
	for (i = 0; i < made; i++)
		while (sem_wait(&s->ran) && errno == EINTR)
			;
	if (made < DETACHED_STACKS)
		wl_op_failed(t, "pthread_create");
}

static void op_fork(struct wl_task *t)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	if (pid < 0)
		wl_op_failed(t, "fork");
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

WORKLOAD_BATCH(batch_join, op_join)
WORKLOAD_BATCH(batch_detached, op_detached)
WORKLOAD_BATCH(batch_fork, op_fork)

static const struct workload spawn_detached, spawn_fork;

/* Stacks that are in use at a time. */
static uint64_t stacks(const struct wl *wl)
{
	return (wl->processes ? 1 : wl->tasks) *
	       (wl_param_u64(wl, "detached") ? DETACHED_STACKS : 1);
}

/* Of one thread, in bytes: what was asked for, else libc's own or the largest power of two that libc keeps of all. */
static uint64_t stack_bytes(const struct wl *wl)
{
	uint64_t bytes = wl_param_u64(wl, "stack");

	if (bytes)
		return bytes;
	for (bytes = DEFAULT_STACK; stacks(wl) * bytes > STACK_CACHE && bytes > LEAST_STACK;)
		bytes /= 2;
	return bytes;
}

/* Only stacks that libc keeps are reused. */
static int check_stacks(struct wl *wl)
{
	errno = 0;
	if (stacks(wl) * stack_bytes(wl) > STACK_CACHE)
		return wl_fail(wl,
			       "%llu stacks of %lluK at a time do not fit into the 40 MiB that "
			       "libc keeps: set stack=16K, or fewer tasks",
			       (unsigned long long)stacks(wl),
			       (unsigned long long)stack_bytes(wl) >> 10);
	return 0;
}

static int setup(struct wl *wl)
{
	wl->tasks = (unsigned int)wl_param_u64(wl, "tasks");
	wl->processes = wl->tasks > 1 && wl_param_is(wl, "mode", "processes");
	if (wl->tasks > MAX_TASKS)
		return wl_fail(wl, "at most %d tasks", MAX_TASKS);
	if (wl_param_is(wl, "instead", "fork")) {
		wl->def = &spawn_fork;
		return 0;
	}
	if (wl_param_u64(wl, "detached"))
		wl->def = &spawn_detached;
	return check_stacks(wl);
}

static int task_setup(struct wl_task *t)
{
	uint64_t stack = stack_bytes(t->wl);
	bool detached = wl_param_u64(t->wl, "detached");
	struct spawner *s = calloc(1, sizeof(*s));
	int i;

	if (!s)
		return wl_fail(t->wl, "memory for a task");
	t->priv = s;
	sem_init(&s->ran, 0, 0);
	sem_init(&s->go, 0, 0);
	pthread_attr_init(&s->attr);
	if (stack != DEFAULT_STACK && (errno = pthread_attr_setstacksize(&s->attr, stack)))
		return wl_unsupported(
			t->wl, "a stack of %lluK: libc takes %ldK at least (PTHREAD_STACK_MIN)",
			(unsigned long long)stack >> 10, sysconf(_SC_THREAD_STACK_MIN) >> 10);
	pthread_attr_setdetachstate(&s->attr,
				    detached ? PTHREAD_CREATE_DETACHED : PTHREAD_CREATE_JOINABLE);
	if (t->wl->def == &spawn_detached)
		map_stacks(t);
	for (i = 0; i < WARM_UP; i++)
		t->wl->def->op(t);
	s->maps = hash_maps();
	return 0;
}

static void task_teardown(struct wl_task *t)
{
	struct shared *shared = t->wl->shared;
	struct spawner *s = t->priv;

	if (!s)
		return;
	/* Threads share their maps: only alone in a process does a change speak of the loop. */
	if ((t->wl->processes || t->wl->tasks == 1) && hash_maps() != s->maps)
		atomic_fetch_add(&shared->maps_changed, 1);
	pthread_attr_destroy(&s->attr);
	/* s stays: a detached thread may still be inside sem_post(). It is freed with the process. */
}

static int figures(struct wl *wl)
{
	struct shared *shared = wl->shared;

	wl_value(wl, "maps_changed", (double)atomic_load(&shared->maps_changed));
	if (wl->def != &spawn_fork)
		wl_value(wl, "stack_bytes", (double)stack_bytes(wl));
	return 0;
}

#define SPAWN_HOOKS                                                                   \
	.name = "thread_spawn", .shared_size = sizeof(struct shared), .setup = setup, \
	.task_setup = task_setup, .task_teardown = task_teardown, .figures = figures

static const struct workload spawn_join = {SPAWN_HOOKS, .op = op_join, .batch = batch_join};
static const struct workload spawn_detached = {SPAWN_HOOKS, .op = op_detached,
					       .batch = batch_detached};
static const struct workload spawn_fork = {SPAWN_HOOKS, .op = op_fork, .batch = batch_fork};

WORKLOAD(spawn_join);

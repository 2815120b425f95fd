/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writers and readers on one pipe. A writer's write(2) is the operation; the
 * readers drain. At the end each writer closes its write end and the readers
 * drain to EOF, so nobody can stay blocked.
 *
 * Each task has a file descriptor of its own for its end, and nobody else keeps
 * one, or EOF would never come: setup's two are closed once all tasks started.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../workload.h"

#define MAX_SIDE 256
#define READ_AT_LEAST 65536
#define SMALL_WRITE 64
/* Yields after the last reader came back to read(2): enough for it to fall asleep in there. */
#define SLEEP_YIELDS 8

/* What a task did, for those that wait for quiet; a cache line each. */
struct slot {
	_Alignas(64) _Atomic uint64_t bytes;
	_Atomic uint64_t begun;
	_Atomic uint64_t ended;
	_Atomic uint64_t sleeps; /* of a reader: each ends with a wake-up */
};

struct shared {
	struct slot writer[MAX_SIDE];
	struct slot reader[MAX_SIDE];
};

struct state {
	unsigned int writers, readers;
	size_t message, read_size;
	int ends[2]; /* read, write; until all tasks have theirs */
};

struct end {
	struct slot *slot;
	char *buf;
	size_t size;
	uint64_t random, sent, writes, ended;
	long slept; /* before the first operation */
	bool exact;
	int fd;
};

/*
 * Write sizes measured on a fleet host over 120 s (CASES.md, C3): cumulative
 * counts of the classes that were published, and each class's range.
 */
static const struct {
	uint32_t upto, from, span;
} mix[] = {
	{293636, 1, 127},	/* below 128 B: 98.0 % */
	{294835, 128, 3968},	/* 0.4 % */
	{296992, 4096, 4096},	/* 0.72 % */
	{296995, 8192, 8192},	/* 3 of 299629 writes */
	{297000, 32768, 32768}, /* 5 */
	{297002, 65536, 65537}, /* 2 */
};
#define MIX_TOTAL 297002u
#define MIX_LARGEST 131072u
#define EXACT_PERIOD 128u /* exact_ops in pipe.toml */

static inline uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static inline size_t size_in(uint64_t pick, uint64_t within)
{
	unsigned int i = 0;

	while (pick >= mix[i].upto)
		i++;
	return mix[i].from + (size_t)((within * mix[i].span) >> 32);
}

/* In exact mode the sizes repeat with the period of an interval and take each class in its share. */
static inline size_t mixed_size(struct end *e)
{
	uint64_t step, r;

	if (e->exact) {
		step = e->writes++ % EXACT_PERIOD;
		r = step;
		return size_in((2 * step + 1) * MIX_TOTAL / (2 * EXACT_PERIOD),
			       next_random(&r) >> 32);
	}
	r = next_random(&e->random);
	return size_in(((r & 0xffffffffu) * MIX_TOTAL) >> 32, r >> 32);
}

static int resize(struct wl *wl, int fd)
{
	uint64_t wanted = wl_param_u64(wl, "pipe_bytes");
	int got;

	if (fcntl(fd, F_SETPIPE_SZ, (int)wanted) < 0) {
		if (errno == EPERM)
			return wl_fail(wl,
				       "pipe_bytes=%llu is above /proc/sys/fs/pipe-max-size; lower "
				       "it, or run as root",
				       (unsigned long long)wanted);
		return wl_fail(wl, "F_SETPIPE_SZ to %llu", (unsigned long long)wanted);
	}
	got = fcntl(fd, F_GETPIPE_SZ);
	wl_value(wl, "pipe_bytes", got);
	return 0;
}

static const struct workload pipe_mix, pipe_herd, pipe_small_after_big;

static int setup(struct wl *wl)
{
	struct state *s = calloc(1, sizeof(*s));

	if (!s)
		return wl_fail(wl, "memory for the state");
	wl->priv = s;
	s->writers = (unsigned int)wl_param_u64(wl, "writers");
	s->readers = (unsigned int)wl_param_u64(wl, "readers");
	s->message = wl_param_u64(wl, "message");
	if (s->writers > MAX_SIDE || s->readers > MAX_SIDE)
		return wl_fail(wl, "at most %d writers and %d readers", MAX_SIDE, MAX_SIDE);
	wl->tasks = s->writers + s->readers;
	wl->processes = wl_param_is(wl, "mode", "processes");
	if (wl_param_is(wl, "pattern", "mix")) {
		wl->def = &pipe_mix;
		s->message = MIX_LARGEST;
	} else if (wl_param_is(wl, "pattern", "herd")) {
		wl->def = &pipe_herd;
	} else if (wl_param_is(wl, "pattern", "small_after_big")) {
		wl->def = &pipe_small_after_big;
	}
	s->read_size = s->message > READ_AT_LEAST ? s->message : READ_AT_LEAST;

	if (pipe2(s->ends, O_CLOEXEC) < 0)
		return wl_fail(wl, "pipe2");
	return resize(wl, s->ends[1]);
}

static void close_both(struct state *s)
{
	close(s->ends[0]);
	close(s->ends[1]);
}

static void started(struct wl *wl)
{
	close_both(wl->priv);
}

/* Times that the calling thread has gone to sleep, also inside a read(2) that was woken for nothing. */
static long sleeps(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) ? 0 : usage.ru_nvcsw;
}

static int task_setup(struct wl_task *t)
{
	struct state *s = t->wl->priv;
	struct shared *shared = t->wl->shared;
	bool writer = t->nr < s->writers;
	struct end *e = calloc(1, sizeof(*e));

	if (!e)
		return wl_fail(t->wl, "memory for a task");
	t->priv = e;
	t->counted = writer;
	e->slot = writer ? &shared->writer[t->nr] : &shared->reader[t->nr - s->writers];
	e->size = writer ? s->message : s->read_size;
	e->exact = t->wl->exact;
	e->random = t->wl->seed ^ ((uint64_t)t->nr << 32);
	e->buf = malloc(e->size);
	if (!e->buf)
		return wl_fail(t->wl, "memory for a buffer of %zu bytes", e->size);
	memset(e->buf, 'k', e->size); /* so that no page fault falls into an operation */
	e->fd = fcntl(s->ends[writer], F_DUPFD_CLOEXEC, 0);
	if (e->fd < 0)
		return wl_fail(t->wl, "task %u's end of the pipe", t->nr);
	if (t->wl->processes)
		close_both(s);
	e->slept = sleeps();
	return 0;
}

static inline void write_some(struct wl_task *t, struct end *e, size_t size)
{
	if (write(e->fd, e->buf, size) != (ssize_t)size) {
		wl_op_failed(t, "write to the pipe");
		return;
	}
	e->sent += size;
	atomic_store_explicit(&e->slot->bytes, e->sent, memory_order_relaxed);
	atomic_store_explicit(&e->slot->ended, ++e->ended, memory_order_relaxed);
}

static inline void write_op(struct wl_task *t, struct end *e, size_t size)
{
	write_some(t, e, size);
	t->bytes += size;
}

/* False at EOF, and on an error, which is reported. */
static inline bool read_some(struct wl_task *t, struct end *e)
{
	ssize_t got;

	atomic_fetch_add_explicit(&e->slot->begun, 1, memory_order_release);
	got = read(e->fd, e->buf, e->size);
	if (got <= 0) {
		if (got < 0)
			wl_op_failed(t, "read from the pipe");
		return false;
	}
	atomic_fetch_add_explicit(&e->slot->bytes, (uint64_t)got, memory_order_relaxed);
	atomic_fetch_add_explicit(&e->slot->ended, 1, memory_order_release);
	return true;
}

static inline void read_op(struct wl_task *t)
{
	if (!read_some(t, t->priv))
		t->done = true;
}

static inline void op(struct wl_task *t)
{
	struct end *e = t->priv;

	if (t->counted)
		write_op(t, e, e->size);
	else
		read_op(t);
}
WORKLOAD_BATCH(batch, op)

static inline void op_mix(struct wl_task *t)
{
	struct end *e = t->priv;

	if (t->counted)
		write_op(t, e, mixed_size(e));
	else
		read_op(t);
}
WORKLOAD_BATCH(batch_mix, op_mix)

static void op_herd(struct wl_task *t)
{
	if (t->counted)
		write_op(t, t->priv, 1);
	else
		read_op(t);
}

static void op_small(struct wl_task *t)
{
	if (t->counted)
		write_op(t, t->priv, SMALL_WRITE);
	else
		read_op(t);
}

/* The pipe is empty, and each reader has gone back to read(2) or met EOF. */
static bool is_quiet(const struct wl *wl)
{
	const struct state *s = wl->priv;
	struct shared *shared = wl->shared;
	uint64_t in = 0, out = 0;
	unsigned int i;

	for (i = 0; i < s->readers; i++) {
		struct slot *r = &shared->reader[i];
		uint64_t ended = atomic_load_explicit(&r->ended, memory_order_acquire);

		if (atomic_load_explicit(&r->begun, memory_order_acquire) != ended + 1)
			return false;
		out += atomic_load_explicit(&r->bytes, memory_order_relaxed);
	}
	for (i = 0; i < s->writers; i++)
		in += atomic_load_explicit(&shared->writer[i].bytes, memory_order_relaxed);
	return in == out;
}

static void quiesce(struct wl *wl)
{
	int i;

	while (!is_quiet(wl))
		sched_yield();
	for (i = 0; i < SLEEP_YIELDS; i++)
		sched_yield();
}

/* Outside the measured span: the next one-byte write finds every reader asleep. */
static void after_herd(struct wl_task *t)
{
	if (t->counted)
		quiesce(t->wl);
}

/*
 * Outside the measured span: a big write uses up the pages that the pipe keeps. In
 * exact mode it is drained there too, or its readers would be counted.
 */
static void after_small(struct wl_task *t)
{
	struct end *e = t->priv;

	if (!t->counted)
		return;
	if (t->wl->exact)
		quiesce(t->wl);
	write_some(t, e, e->size);
	if (t->wl->exact)
		quiesce(t->wl);
}

static void finish(struct wl_task *t)
{
	struct end *e = t->priv;

	if (t->counted) {
		close(e->fd);
		e->fd = -1;
		return;
	}
	while (!t->done)
		read_op(t);
}

static void task_teardown(struct wl_task *t)
{
	struct end *e = t->priv;

	if (!e)
		return;
	atomic_store(&e->slot->sleeps, (uint64_t)(sleeps() - e->slept));
	if (e->fd >= 0)
		close(e->fd);
	free(e->buf);
	free(e);
	t->priv = NULL;
}

/* How many readers a write wakes: 1 where each wakes one that then finds data; a herd shows as more. */
static int figures(struct wl *wl)
{
	const struct state *s = wl->priv;
	struct shared *shared = wl->shared;
	uint64_t writes = 0, woken = 0;
	unsigned int i;

	for (i = 0; i < s->writers; i++)
		writes += atomic_load(&shared->writer[i].ended);
	for (i = 0; i < s->readers; i++)
		woken += atomic_load(&shared->reader[i].sleeps);
	if (writes)
		wl_value(wl, "wakeups_per_write", (double)woken / (double)writes);
	return 0;
}

static void teardown(struct wl *wl)
{
	free(wl->priv);
	wl->priv = NULL;
}

/* The patterns differ in what is written, and in what happens between two writes. */
#define PIPE_HOOKS                                                              \
	.name = "pipe", .shared_size = sizeof(struct shared), .setup = setup,   \
	.task_setup = task_setup, .started = started, .finish = finish,         \
	.task_teardown = task_teardown, .quiesce = quiesce, .figures = figures, \
	.teardown = teardown

static const struct workload pipe_stream = {PIPE_HOOKS, .op = op, .batch = batch};
static const struct workload pipe_mix = {PIPE_HOOKS, .op = op_mix, .batch = batch_mix};
static const struct workload pipe_herd = {PIPE_HOOKS, .op = op_herd, .after = after_herd,
					  .after_alone = true};
static const struct workload pipe_small_after_big = {PIPE_HOOKS, .op = op_small,
						     .after = after_small};

WORKLOAD(pipe_stream);

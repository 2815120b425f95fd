/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a workload sees. A workload is one file in workloads/ that includes this
 * header and libc only, and one TOML file beside it that names its parameters
 * and metrics. It never reads a clock and never writes the record stream.
 *
 * Life of a case: setup (once, in the process that owns the case) -> the
 * harness starts wl->tasks tasks -> task_setup in each -> op or batch, many
 * times -> finish in each task once the harness says stop -> task_teardown ->
 * figures (single-shot figures, never in a timed span) -> teardown.
 */
#ifndef KDELTA_WORKLOAD_H
#define KDELTA_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wl;

struct wl_task {
	struct wl *wl;
	unsigned int nr; /* 0 .. wl->tasks - 1 */
	bool counted;	 /* its operations are the case's (writers, not readers); preset true */
	bool done;	 /* set by a task that has nothing left to do (EOF) */
	uint64_t bytes;	 /* payload moved so far by this task, for MB/s */
	void *priv;
};

struct wl {
	const struct workload *def;
	unsigned int tasks; /* set by setup; preset 1 */
	bool processes;	    /* tasks are processes, not threads; set by setup */
	bool exact;	    /* exact mode: be deterministic, no time-based choices */
	uint64_t seed;
	void *shared; /* def->shared_size zeroed bytes, shared by all tasks, also processes */
	void *priv;
	void *harness; /* not for workloads */
};

struct workload {
	const char *name;
	size_t shared_size;
	/* All hooks that return int: 0, or what wl_unsupported() or wl_fail() returned. */
	int (*setup)(struct wl *wl);
	int (*task_setup)(struct wl_task *t);
	/* One operation: all of it is measured. */
	void (*op)(struct wl_task *t);
	/* Optional: undoes op outside the measured span (close after open). */
	void (*after)(struct wl_task *t);
	/*
	 * Exact mode leaves out all that runs while `after` does, also in tasks that op or
	 * after have set going, as a child that after waits for. Set, it leaves out after alone.
	 */
	bool after_alone;
	/*
	 * Exact mode counts op right after the machine has come to rest, with none
	 * uncounted before it: what op leaves to be freed later (a child's memory, names
	 * that it missed) is more than what it finds cold.
	 */
	bool rested;
	/* n operations with nothing around them; WORKLOAD_BATCH makes it. NULL if after is set. */
	void (*batch)(struct wl_task *t, uint64_t n);
	/* Optional: so too, with something of the harness's behind each. */
	void (*batch_apart)(struct wl_task *t, uint64_t n,
			    void (*between)(const struct wl_task *, uint64_t));
	/* Optional: once the harness has said stop; must make blocked peers return. */
	void (*finish)(struct wl_task *t);
	void (*task_teardown)(struct wl_task *t);
	/* Optional, exact mode, several tasks: return when nothing is in flight. */
	void (*quiesce)(struct wl *wl);
	/* Optional: figures that are not timed (memory per object, leaks): wl_value(). */
	int (*figures)(struct wl *wl);
	void (*teardown)(struct wl *wl);
	/*
	 * Optional, instead of op: never returns, and adds 1 to *iterations for each
	 * operation (the will-it-scale ABI). The harness samples the counters and
	 * ends the task by ending its process. Exact mode counts between two
	 * increments (harness_free.c).
	 */
	void (*free_run)(struct wl_task *t, volatile uint64_t *iterations);
	/*
	 * Optional: in the case's own process, once all tasks are set up and before
	 * they run. With processes, close here what only tasks may hold (a pipe's
	 * write end). Not called where the one task runs in the case's own process,
	 * which it does when tasks is 1 and processes is false.
	 */
	void (*started)(struct wl *wl);
	/* Optional: names of all parameters, NULL at the end; any other is refused. */
	const char *const *params;
};

/* A tight loop around an op that the compiler can inline. */
#define WORKLOAD_BATCH(fn, one_op)                    \
	static void fn(struct wl_task *t, uint64_t n) \
	{                                             \
		for (; n; n--)                        \
			one_op(t);                    \
	}

/* Registers a workload; no list to edit. */
#define WORKLOAD(def)                                      \
	static const struct workload *const wl_entry_##def \
		__attribute__((used, section("kdelta_workloads"))) = &(def)

/* Parameters arrive complete: the host fills defaults in from the TOML file. */
const char *wl_param(const struct wl *wl, const char *name);
uint64_t wl_param_u64(const struct wl *wl, const char *name);
bool wl_param_is(const struct wl *wl, const char *name, const char *value);

/* CPUs that tasks run on, one after another from task 0 on. */
unsigned int wl_cpus(const struct wl *wl);

/* Name the syscall or CONFIG that is missing. Returns a negative number to return from the hook. */
int wl_unsupported(struct wl *wl, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Name what failed; errno is appended when non-zero. */
int wl_fail(struct wl *wl, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* From inside op: the measured span is void, the case fails with this text. Cheap to have, slow to take. */
void wl_op_failed(struct wl_task *t, const char *what);

/* A named figure of the case (declared in the TOML file as source = "value:NAME"). */
void wl_value(struct wl *wl, const char *name, double value);

/* A line of what the case printed, kept with the boot. */
void wl_say(struct wl *wl, const char *line);

/* System-wide object counts, for figures(); settled first (sync, drop caches, wait). */
struct wl_kstat {
	int64_t dentries, inodes, files, pids; /* -1: the kernel does not say */
	int64_t slab_bytes;		       /* pages of slabs, in use or not */
	int64_t slab_objects;		       /* in use */
	int64_t slab_object_bytes; /* objects in use times their size: exact once settled */
	int64_t page_table_bytes;
	int64_t vmalloc_bytes; /* without areas that are freed but not yet purged */
	int64_t free_bytes;
};
void wl_kstat_settled(struct wl_kstat *k);
/* Objects in use of one slab cache, -1 if there is none of that name. */
int64_t wl_slab_objects(const char *cache);

/* Path of a data file shipped with the workload ("path_lookup/paths.txt"). */
const char *wl_data(const char *name, char *buf, size_t size);
/* A scratch directory on tmpfs that the harness removes. */
const char *wl_tmpdir(struct wl *wl);

#endif

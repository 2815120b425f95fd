/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Path name resolution: one operation is a sweep of 205 lookups, of the paths
 * that gcc and the linker looked up while building real code, or of a made set
 * with one property. Each task runs chrooted into a tree in which the recorded
 * hits, misses and symlink crossings are exact; where chroot is refused (native
 * and not root) absolute names get the tree's path in front, and the figure
 * chroot is 0.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "path_lookup_tree.h"

#define MAX_TASKS 1024
#define MAX_DEPTH 16
#define CWD "/home/dev/project"

struct lookup {
	char *path;
	bool hit;
	unsigned int links;
};

struct state {
	struct lookup set[LOOKUPS];
	unsigned int misses, links;
	bool recorded;
	char top[PATH_MAX]; /* holds the roots */
	bool own, chroot;
};

struct task {
	char *path[LOOKUPS];
	unsigned int misses;
	int old_root, old_cwd;
};

static void root_of(const struct state *s, unsigned int task, char *buf, size_t size)
{
	snprintf(buf, size, "%s/%u", s->top, s->own ? task : 0);
}

/* ---- the set of names ---- */

static int add(struct wl *wl, unsigned int i, const char *path, bool hit, unsigned int links)
{
	struct state *s = wl->priv;

	s->set[i] = (struct lookup){.path = strdup(path), .hit = hit, .links = links};
	if (!s->set[i].path)
		return wl_fail(wl, "memory for the names");
	s->misses += !hit;
	s->links += links;
	return 0;
}

/* The recorded set, or only its hits or misses, repeated until there are LOOKUPS of them. */
static int load_recorded(struct wl *wl, bool hits, bool misses)
{
	char name[PATH_MAX], line[PATH_MAX + 32], path[PATH_MAX], kind[8];
	FILE *f = fopen(wl_data("path_lookup/paths.txt", name, sizeof(name)), "re");
	unsigned int n = 0, links, before;
	int error = 0;

	if (!f)
		return wl_fail(wl, "%s", name);
	do {
		before = n;
		rewind(f);
		while (!error && n < LOOKUPS && fgets(line, sizeof(line), f)) {
			if (sscanf(line, "%7s %u %4095s", kind, &links, path) != 3)
				error = wl_fail(wl, "damaged line in %s", name);
			else if (strcmp(kind, "hit") ? misses : hits)
				error = add(wl, n++, path, !strcmp(kind, "hit"), links);
		}
	} while (!error && n < LOOKUPS && n > before);
	fclose(f);
	errno = 0;
	return error || n == LOOKUPS ? error : wl_fail(wl, "%s holds no such names", name);
}

static int load_plain(struct wl *wl, unsigned int depth, unsigned int hops)
{
	char stem[PATH_MAX], path[PATH_MAX + 16];
	unsigned int i;
	int error = 0;

	plain_stem(stem, depth, hops);
	for (i = 0; !error && i < LOOKUPS; i++) {
		snprintf(path, sizeof(path), PLAIN_NAME, stem, i);
		error = add(wl, i, path, true, hops);
	}
	return error;
}

/* ---- operations ---- */

static inline int by_access(const char *path)
{
	return access(path, R_OK);
}

static inline int by_stat(const char *path)
{
	struct stat st;

	return stat(path, &st);
}

static inline int by_openat(const char *path)
{
	int fd = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? fd : close(fd);
}

#define SWEEP(name, how)                                                     \
	static inline void name(struct wl_task *t)                           \
	{                                                                    \
		const struct task *k = t->priv;                              \
		unsigned int i, failed = 0;                                  \
                                                                             \
		for (i = 0; i < LOOKUPS; i++)                                \
			failed += how(k->path[i]) != 0;                      \
		if (failed != k->misses)                                     \
			wl_op_failed(t, "a lookup did not end as recorded"); \
	}                                                                    \
	WORKLOAD_BATCH(name##_batch, name)

SWEEP(sweep_access, by_access)
SWEEP(sweep_stat, by_stat)
SWEEP(sweep_openat, by_openat)

static const struct workload lookup_stat, lookup_openat;

/* ---- life of a case ---- */

/* Each name must end as the data says, with as many symlinks crossed: counted here, on the tree itself. */
static int verify(struct wl *wl, const char *root)
{
	const struct state *s = wl->priv;
	unsigned int i, links;

	for (i = 0; i < LOOKUPS; i++) {
		const struct lookup *l = &s->set[i];
		int end = walk(root, CWD, l->path, &links);

		errno = 0;
		if (end != (int)l->hit || links != l->links)
			return wl_fail(wl,
				       "%s: result %d over %u symlinks, the data says %d over %u",
				       l->path, end, links, l->hit, l->links);
	}
	return 0;
}

static int make_roots(struct wl *wl, unsigned int depth, unsigned int hops)
{
	struct state *s = wl->priv;
	unsigned int task, roots = s->own ? wl->tasks : 1;
	char root[PATH_MAX + 16];
	int error = 0;

	for (task = 0; !error && task < roots; task++) {
		root_of(s, task, root, sizeof(root));
		if (mkdir(root, 0755))
			return wl_fail(wl, "mkdir %s", root);
		error = s->recorded ? make_recorded_tree(wl, root, !s->chroot)
				    : make_plain_tree(wl, root, depth, hops);
	}
	return error;
}

static int setup(struct wl *wl)
{
	struct state *s = calloc(1, sizeof(*s));
	bool depth = wl_param_is(wl, "paths", "depth"),
	     links = wl_param_is(wl, "paths", "symlinks");
	unsigned int levels = depth ? (unsigned int)wl_param_u64(wl, "depth") : 0;
	unsigned int hops = links ? (unsigned int)wl_param_u64(wl, "hops") : 0;
	const char *tmp = wl_tmpdir(wl);
	int error;

	if (!s)
		return wl_fail(wl, "memory for the state");
	wl->priv = s;
	wl->tasks = (unsigned int)wl_param_u64(wl, "tasks");
	wl->processes = wl->tasks > 1 && wl_param_is(wl, "mode", "processes");
	s->own = wl_param_is(wl, "directory", "own");
	s->recorded = !depth && !links;
	if (wl_param_is(wl, "syscall", "stat"))
		wl->def = &lookup_stat;
	else if (wl_param_is(wl, "syscall", "openat"))
		wl->def = &lookup_openat;
	errno = 0;
	if (wl->tasks > MAX_TASKS || levels > MAX_DEPTH || hops > MAX_LINKS)
		return wl_fail(wl, "at most %d tasks, depth %d, %d hops", MAX_TASKS, MAX_DEPTH,
			       MAX_LINKS);
	if (!tmp || strlen(tmp) >= sizeof(s->top))
		return wl_fail(wl, "no scratch directory");
	strcpy(s->top, tmp);
	s->chroot = !chroot("/"); /* changes nothing where it is allowed */
	if (!s->recorded)
		error = load_plain(wl, levels, hops);
	else
		error = load_recorded(wl, !wl_param_is(wl, "paths", "misses"),
				      !wl_param_is(wl, "paths", "hits"));
	if (!error)
		error = make_roots(wl, levels, hops);
	if (!error && s->chroot) {
		char root[PATH_MAX + 16];

		root_of(s, 0, root, sizeof(root));
		error = verify(wl, root);
	}
	if (error)
		return error;
	wl_value(wl, "lookups", LOOKUPS);
	wl_value(wl, "enoent", s->misses);
	wl_value(wl, "links_crossed", s->links);
	wl_value(wl, "chroot", s->chroot);
	return 0;
}

/* The names as this task must say them. */
static int take_names(struct wl_task *t, const char *root)
{
	const struct state *s = t->wl->priv;
	struct task *k = t->priv;
	unsigned int i;

	k->misses = s->misses;
	for (i = 0; i < LOOKUPS; i++) {
		const char *path = s->set[i].path;
		bool prefix = !s->chroot && path[0] == '/';

		if (asprintf(&k->path[i], "%s%s", prefix ? root : "", path) < 0)
			return wl_fail(t->wl, "memory for the names");
	}
	return 0;
}

static int task_setup(struct wl_task *t)
{
	const struct state *s = t->wl->priv;
	struct task *k = calloc(1, sizeof(*k));
	char root[PATH_MAX + 16], cwd[PATH_MAX + 64];

	if (!k)
		return wl_fail(t->wl, "memory for a task");
	t->priv = k;
	root_of(s, t->nr, root, sizeof(root));
	snprintf(cwd, sizeof(cwd), "%s%s", s->chroot ? "" : root, s->recorded ? CWD : "/");
	/* A thread gets a root and a working directory of its own. */
	if (unshare(CLONE_FS))
		return wl_fail(t->wl, "unshare(CLONE_FS)");
	k->old_root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	k->old_cwd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (k->old_root < 0 || k->old_cwd < 0)
		return wl_fail(t->wl, "open of the old root");
	if ((s->chroot && chroot(root)) || chdir(cwd))
		return wl_fail(t->wl, "entering %s%s", s->chroot ? root : "", cwd);
	return take_names(t, root);
}

/* Back to the root of the case, which goes on in this process when it has one task. */
static void task_teardown(struct wl_task *t)
{
	const struct state *s = t->wl->priv;
	struct task *k = t->priv;
	unsigned int i;

	if (!k)
		return;
	if (s->chroot && (fchdir(k->old_root) || chroot(".")))
		wl_op_failed(t, "leaving the scratch root");
	if (fchdir(k->old_cwd))
		wl_op_failed(t, "going back to the old working directory");
	close(k->old_root);
	close(k->old_cwd);
	for (i = 0; i < LOOKUPS; i++)
		free(k->path[i]);
	free(k);
	t->priv = NULL;
}

static void teardown(struct wl *wl)
{
	struct state *s = wl->priv;
	unsigned int i;

	for (i = 0; i < LOOKUPS; i++)
		free(s->set[i].path);
	free(s);
	wl->priv = NULL;
}

/*
 * A name that is not there is a dentry, freed after a grace period (always_delete_dentry, fs/libfs.c). Those
 * of a sweep before this one left it a slab to allocate, or just not (0.8 %), as the kernel's boot would have it.
 */
#define LOOKUP_HOOKS                                                     \
	.name = "path_lookup", .setup = setup, .task_setup = task_setup, \
	.task_teardown = task_teardown, .teardown = teardown, .rested = true

static const struct workload lookup_access = {LOOKUP_HOOKS, .op = sweep_access,
					      .batch = sweep_access_batch};
static const struct workload lookup_stat = {LOOKUP_HOOKS, .op = sweep_stat,
					    .batch = sweep_stat_batch};
static const struct workload lookup_openat = {LOOKUP_HOOKS, .op = sweep_openat,
					      .batch = sweep_openat_batch};

WORKLOAD(lookup_access);

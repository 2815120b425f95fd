/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The leak check: a case lives several times over, and after each life nothing
 * of it may be left. The first life fills what the kernel keeps for good; after
 * it and after each further one the settled counts go into records
 *
 *	val "leak<batch>:<what>"	dentries, inodes, files, pids, free_bytes,
 *					page_table_bytes, vmalloc_bytes, slab/<cache> in objects,
 *					time_wait: connections that TCP forgets after a minute
 *	val "leak_batches", "leak_ops"	how many lives were counted, operations of each
 *
 * Only slab caches whose count has ever changed are reported.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "kstat.h"
#include "readfile.h"

#define BATCHES_MAX 64

struct reading {
	struct wl_kstat k;
	struct slabs slabs;
	int64_t time_wait;
};

struct leaks {
	struct stream *stream;
	unsigned int job;
	struct reading at[BATCHES_MAX + 1];
	unsigned int n;
};

struct leaks *leaks_start(struct stream *s, unsigned int job)
{
	struct leaks *l = calloc(1, sizeof(*l));

	if (l) {
		l->stream = s;
		l->job = job;
	}
	return l;
}

/* "TCP: inuse 1 orphan 0 tw 500 alloc 3 mem 1"; -1 where the kernel does not say. */
static int64_t time_wait(void)
{
	struct text t = {0};
	const char *at = read_whole("/proc/net/sockstat", &t) ? NULL : strstr(t.s, " tw ");
	int64_t n = at ? strtoll(at + strlen(" tw "), NULL, 10) : -1;

	text_free(&t);
	return n;
}

void leaks_read(struct leaks *l)
{
	struct reading *r = &l->at[l->n++];

	kstat_settled(&r->k, &r->slabs);
	r->time_wait = time_wait();
}

static void put(const struct leaks *l, const char *name, double v)
{
	struct text t = {0};

	text_put(&t, "{\"t\":\"val\",\"j\":%u,\"name\":", l->job);
	text_json(&t, name);
	text_put(&t, ",\"v\":");
	text_number(&t, v);
	text_put(&t, "}");
	stream_record(l->stream, t.s, t.len);
	text_free(&t);
}

static void put_count(const struct leaks *l, unsigned int i, const char *what, int64_t v)
{
	char name[128];

	if (v < 0)
		return; /* the kernel does not say: no figure */
	snprintf(name, sizeof(name), "leak%u:%s", i, what);
	put(l, name, (double)v);
}

static int64_t objects(const struct reading *r, const char *cache)
{
	const struct slab *slab = slabs_find(&r->slabs, cache);

	return slab ? slab->objects : -1;
}

static bool changed(const struct leaks *l, const struct slab *first)
{
	unsigned int i;

	for (i = 1; i < l->n; i++)
		if (objects(&l->at[i], first->name) != first->objects)
			return true;
	return false;
}

static void put_slabs(const struct leaks *l)
{
	const struct slabs *first = &l->at[0].slabs;
	size_t c;
	unsigned int i;

	for (c = 0; c < first->n; c++) {
		char what[80];

		if (!changed(l, &first->all[c]))
			continue;
		snprintf(what, sizeof(what), "slab/%s", first->all[c].name);
		for (i = 0; i < l->n; i++)
			put_count(l, i, what, objects(&l->at[i], first->all[c].name));
	}
}

void leaks_report(const struct leaks *l, uint64_t ops)
{
	unsigned int i;

	for (i = 0; i < l->n; i++) {
		const struct wl_kstat *k = &l->at[i].k;

		put_count(l, i, "dentries", k->dentries);
		put_count(l, i, "inodes", k->inodes);
		put_count(l, i, "files", k->files);
		put_count(l, i, "pids", k->pids);
		put_count(l, i, "page_table_bytes", k->page_table_bytes);
		put_count(l, i, "vmalloc_bytes", k->vmalloc_bytes);
		put_count(l, i, "free_bytes", k->free_bytes);
		put_count(l, i, "time_wait", l->at[i].time_wait);
	}
	put_slabs(l);
	put(l, "leak_ops", (double)ops);
	put(l, "leak_batches", l->n - 1.0);
}

void leaks_end(struct leaks *l)
{
	unsigned int i;

	for (i = 0; l && i < l->n; i++)
		slabs_free(&l->at[i].slabs);
	free(l);
}

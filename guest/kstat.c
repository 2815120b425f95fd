/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System-wide object counts, settled: what workload.h promises to figures(). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "readfile.h"
#include "stream.h"
#include "workload.h"

#define SETTLE_US 20000 /* longer than an RCU grace period on an idle system */
#define SETTLE_TRIES 25

/* "Slab:   1234 kB" in /proc/meminfo, in bytes. */
static int64_t meminfo(const struct text *t, const char *name)
{
	const char *line = t->s;
	size_t n = strlen(name);

	while (line && *line) {
		if (!strncmp(line, name, n) && line[n] == ':')
			return strtoll(line + n + 1, NULL, 10) * 1024;
		line = strchr(line, '\n');
		line += line ? 1 : 0;
	}
	return -1;
}

static int64_t slabinfo(const char *cache)
{
	struct text t = {0};
	size_t n = strlen(cache);
	int64_t objects = -1;
	const char *line;

	if (!read_whole("/proc/slabinfo", &t)) {
		for (line = t.s; line && *line; line = strchr(line, '\n'), line += line ? 1 : 0) {
			if (!strncmp(line, cache, n) && line[n] == ' ') {
				objects = strtoll(line + n, NULL, 10);
				break;
			}
		}
	}
	text_free(&t);
	return objects;
}

int64_t wl_slab_objects(const char *cache)
{
	char path[128];
	int64_t objects;

	/* Without this, objects that wait in per-CPU lists count as used. */
	snprintf(path, sizeof(path), "/sys/kernel/slab/%s/shrink", cache);
	write_string(path, "1");
	objects = slabinfo(cache);
	if (objects >= 0)
		return objects;
	/* A cache that was merged with another goes by its own name only in sysfs. */
	snprintf(path, sizeof(path), "/sys/kernel/slab/%s/objects", cache);
	return read_field(path, 0);
}

static void read_now(struct wl_kstat *k)
{
	struct text t = {0};

	*k = (struct wl_kstat){
		.dentries = read_field("/proc/sys/fs/dentry-state", 0),
		.inodes = read_field("/proc/sys/fs/inode-nr", 0),
		.files = read_field("/proc/sys/fs/file-nr", 0),
		.pids = wl_slab_objects("pid"),
		.slab_bytes = -1,
		.page_table_bytes = -1,
		.free_bytes = -1,
	};
	if (!read_whole("/proc/meminfo", &t)) {
		k->slab_bytes = meminfo(&t, "Slab");
		k->page_table_bytes = meminfo(&t, "PageTables");
		k->free_bytes = meminfo(&t, "MemFree");
	}
	text_free(&t);
}

static bool same_objects(const struct wl_kstat *a, const struct wl_kstat *b)
{
	return a->dentries == b->dentries && a->inodes == b->inodes && a->files == b->files &&
	       a->pids == b->pids && a->slab_bytes == b->slab_bytes;
}

void wl_kstat_settled(struct wl_kstat *k)
{
	struct wl_kstat last;
	int i;

	read_now(k);
	for (i = 0; i < SETTLE_TRIES; i++) {
		last = *k;
		sync();
		/* Only root may drop caches; the counts still say what they can. */
		write_string("/proc/sys/vm/drop_caches", "3");
		write_string("/proc/sys/vm/drop_caches", "2");
		usleep(SETTLE_US);
		read_now(k);
		if (same_objects(&last, k))
			return;
	}
}

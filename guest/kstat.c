/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System-wide object counts, settled: what workload.h promises to figures(). */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kstat.h"
#include "readfile.h"
#include "stream.h"
#include "workload.h"

#define SETTLE_US 20000 /* longer than an RCU grace period on an idle system */
#define SETTLE_TRIES 25
#define SHARED_TRIES 6 /* where others use the kernel too, its counts never come to rest */
#define SETTLE_QUIET 2 /* readings in a row that are the same as the one before */

bool kstat_alone;

/* Adds a * b to *sum; false, and *sum is nothing, beyond 64 bits. */
static bool add_product(int64_t *sum, int64_t a, int64_t b)
{
	int64_t product;

	return !__builtin_mul_overflow(a, b, &product) &&
	       !__builtin_add_overflow(*sum, product, sum);
}

/* "Slab:   1234 kB" in /proc/meminfo, in bytes; -1 if it is not there, or beyond 64 bits. */
static int64_t meminfo(const struct text *t, const char *name)
{
	const char *line = t->s;
	size_t n = strlen(name);
	int64_t bytes = 0;

	while (line && *line) {
		if (!strncmp(line, name, n) && line[n] == ':')
			return add_product(&bytes, strtoll(line + n + 1, NULL, 10), 1024) ? bytes
											  : -1;
		line = strchr(line, '\n');
		line += line ? 1 : 0;
	}
	return -1;
}

static bool slab_line(const char *line, struct slab *slab)
{
	return sscanf(line, "%63[^ #\n] %" SCNd64 " %*d %" SCNd64, slab->name, &slab->objects,
		      &slab->size) == 3;
}

/* NULL after the last: NULL + 0 is undefined in C11 (6.5.6). */
static const char *after_line(const char *line)
{
	const char *end = strchr(line, '\n');

	return end ? end + 1 : NULL;
}

int slabs_read(struct slabs *slabs)
{
	struct text t = {0};
	const char *line;
	int error = read_whole("/proc/slabinfo", &t);

	slabs->n = 0;
	for (line = t.s; !error && line && *line; line = after_line(line)) {
		struct slab *grown;

		if (slabs->n == slabs->room) {
			grown = reallocarray(slabs->all, slabs->room + 64, sizeof(*grown));
			if (!grown) {
				error = ENOMEM;
				break;
			}
			slabs->all = grown;
			slabs->room += 64;
		}
		slabs->n += slab_line(line, &slabs->all[slabs->n]);
	}
	text_free(&t);
	return error;
}

void slabs_free(struct slabs *slabs)
{
	free(slabs->all);
	*slabs = (struct slabs){0};
}

const struct slab *slabs_find(const struct slabs *slabs, const char *name)
{
	size_t i;

	for (i = 0; i < slabs->n; i++)
		if (!strcmp(slabs->all[i].name, name))
			return &slabs->all[i];
	return NULL;
}

void slabs_shrink(void)
{
	DIR *dir = opendir("/sys/kernel/slab");
	struct dirent *e;

	/* A merged cache is there as a link to the one that it was merged with. */
	while (dir && (e = readdir(dir))) {
		char path[320];

		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/sys/kernel/slab/%s/shrink", e->d_name);
		write_string(path, "1");
	}
	if (dir)
		closedir(dir);
}

static int64_t slabinfo(const char *cache)
{
	struct slabs slabs = {0};
	const struct slab *found = slabs_read(&slabs) ? NULL : slabs_find(&slabs, cache);
	int64_t objects = found ? found->objects : -1;

	slabs_free(&slabs);
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

static int64_t object_bytes(const struct slabs *slabs)
{
	int64_t bytes = 0;
	size_t i;

	for (i = 0; i < slabs->n; i++)
		if (!add_product(&bytes, slabs->all[i].objects, slabs->all[i].size))
			return -1;
	return slabs->n ? bytes : -1;
}

static int64_t objects(const struct slabs *slabs)
{
	int64_t sum = 0;
	size_t i;

	for (i = 0; i < slabs->n; i++)
		if (!add_product(&sum, slabs->all[i].objects, 1))
			return -1;
	return slabs->n ? sum : -1;
}

static void read_now(struct wl_kstat *k, struct slabs *slabs)
{
	const struct slab *pid, *filp;
	struct text t = {0};

	if (kstat_alone)
		slabs_shrink();
	slabs_read(slabs);
	pid = slabs_find(slabs, "pid");
	/* file-nr is off by some dozens: each CPU adds to it in batches. */
	filp = slabs_find(slabs, "filp");
	*k = (struct wl_kstat){
		.dentries = read_field("/proc/sys/fs/dentry-state", 0),
		.inodes = read_field("/proc/sys/fs/inode-nr", 0),
		.files = filp ? filp->objects : read_field("/proc/sys/fs/file-nr", 0),
		.pids = pid ? pid->objects : read_field("/sys/kernel/slab/pid/objects", 0),
		.slab_bytes = -1,
		.slab_objects = objects(slabs),
		.slab_object_bytes = object_bytes(slabs),
		.page_table_bytes = -1,
		.vmalloc_bytes = -1,
		.free_bytes = -1,
	};
	if (!read_whole("/proc/meminfo", &t)) {
		k->slab_bytes = meminfo(&t, "Slab");
		k->page_table_bytes = meminfo(&t, "PageTables");
		k->vmalloc_bytes = meminfo(&t, "VmallocUsed");
		k->free_bytes = meminfo(&t, "MemFree");
	}
	text_free(&t);
}

static bool same_objects(const struct wl_kstat *a, const struct wl_kstat *b)
{
	return a->dentries == b->dentries && a->inodes == b->inodes && a->files == b->files &&
	       a->pids == b->pids && a->slab_object_bytes == b->slab_object_bytes &&
	       a->page_table_bytes == b->page_table_bytes;
}

void kstat_settled(struct wl_kstat *k, struct slabs *slabs)
{
	struct wl_kstat last;
	int i, quiet = 0;

	read_now(k, slabs);
	for (i = 0; i < (kstat_alone ? SETTLE_TRIES : SHARED_TRIES) && quiet < SETTLE_QUIET; i++) {
		last = *k;
		sync();
		/* Only root may drop caches; the counts still say what they can. */
		write_string("/proc/sys/vm/drop_caches", "3");
		write_string("/proc/sys/vm/drop_caches", "2");
		usleep(SETTLE_US);
		read_now(k, slabs);
		quiet = same_objects(&last, k) ? quiet + 1 : 0;
	}
}

void wl_kstat_settled(struct wl_kstat *k)
{
	struct slabs slabs = {0};

	kstat_settled(k, &slabs);
	slabs_free(&slabs);
}

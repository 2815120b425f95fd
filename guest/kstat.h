/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All that can be counted of the kernel's objects: for the leak check, and for workload.h's figures. */
#ifndef KDELTA_KSTAT_H
#define KDELTA_KSTAT_H

#include <stddef.h>
#include <stdint.h>

#include "workload.h"

/* Set before any count in a guest of our own: caches may be emptied, and waiting for quiet makes sense. */
extern bool kstat_alone;

/* One slab cache; objects are those in use. A merged cache counts under one of its names. */
struct slab {
	char name[64];
	int64_t objects, size;
};

struct slabs {
	struct slab *all;
	size_t n, room;
};

/* /proc/slabinfo; 0 or errno (it needs CONFIG_SLUB_DEBUG and root). Zero the struct before its first use. */
int slabs_read(struct slabs *slabs);
const struct slab *slabs_find(const struct slabs *slabs, const char *name);
void slabs_free(struct slabs *slabs);
/* Empties the lists that each CPU keeps: what waits there would count as used. */
void slabs_shrink(void);

/*
 * Counts that no longer change: sync, caches dropped, RCU and delayed work
 * waited for. `slabs` stays empty where the kernel does not say.
 */
void kstat_settled(struct wl_kstat *k, struct slabs *slabs);

#endif

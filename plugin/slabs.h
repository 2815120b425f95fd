/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which slab cache an address of the kernel belongs to: slabs.c. */
#ifndef KDELTA_SLABS_H
#define KDELTA_SLABS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CACHE_NAME_BYTES 48

/* Where a kernel keeps what is followed here; the host reads it from symbols and types. */
struct slab_layout {
	uint64_t caches; /* address of slab_caches */
	uint64_t vmemmap,
		direct; /* addresses of vmemmap_base and page_offset_base; 0: as documented */
	uint32_t page, head,
		owner; /* bytes of a struct page; its compound_head, struct slab's slab_cache */
	uint32_t name, size, list; /* of struct kmem_cache */
};

struct slab_cache {
	uint64_t address, size; /* size: from one object to the next */
	char name[CACHE_NAME_BYTES];
};

/* Where an address lies: `cache` 0: in none. `offset`: from the start of the slab. */
struct slab_place {
	uint64_t cache, offset;
};

void slabs_know(const struct slab_layout *layout);
/* Reads the list of caches; only where a CPU of the guest runs. The bases: 0 where they are not known. */
void slabs_read(uint64_t *vmemmap, uint64_t *direct);
struct slab_place slabs_place(uint64_t address);
size_t slabs_caches(const struct slab_cache **found);

#endif

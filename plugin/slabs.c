/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From an address to the slab cache that it was allocated from, read in the
 * guest's memory: page -> head of its slab -> cache. What a page says is believed
 * where it names one of the caches in the kernel's own list. Where the fields lie
 * differs between kernels: the host says it (struct slab_layout).
 */
#include <string.h>

#include "kdelta.h"
#include "qemu_api.h"
#include "slabs.h"

#define CACHES_MAX 1024
#define PAGE_SHIFT 12
#define VMEMMAP_USUAL 0xffffea0000000000 /* Documentation/arch/x86/x86_64/mm.rst, 4 levels */
#define DIRECT_USUAL 0xffff888000000000
#define DIRECT_BYTES (64ull << 40)
#define MASKS 0xffffffff00000000 /* above all struct pages of 4 levels, and of 5 */

static struct slab_layout at;
static bool known;
static uint64_t vmemmap, direct;
static struct slab_cache caches[CACHES_MAX];
static size_t n_caches;
static GByteArray *buffer;

void slabs_know(const struct slab_layout *layout)
{
	at = *layout;
	known = qemu_plugin_read_memory_vaddr; /* QEMU 9.2 or later */
	if (known)
		buffer = g_byte_array_new();
}

static bool read_bytes(uint64_t address, void *to, size_t size)
{
	if (!qemu_plugin_read_memory_vaddr(address, buffer, size) || buffer->len < size)
		return false;
	memcpy(to, buffer->data, size);
	return true;
}

static uint64_t read_word(uint64_t address)
{
	uint64_t word = 0;

	return read_bytes(address, &word, sizeof(word)) ? word : 0;
}

/* Up to the end of the page that it is in, so that no page is read that may not be there. */
static void read_name(uint64_t address, char *name)
{
	size_t left = (1u << PAGE_SHIFT) - (address & ((1u << PAGE_SHIFT) - 1));

	memset(name, 0, CACHE_NAME_BYTES);
	read_bytes(address, name, left < CACHE_NAME_BYTES ? left : CACHE_NAME_BYTES);
	name[CACHE_NAME_BYTES - 1] = 0;
}

void slabs_read(uint64_t *pages, uint64_t *memory)
{
	uint64_t node;

	n_caches = 0;
	*pages = *memory = 0;
	if (!known)
		return;
	vmemmap = at.vmemmap ? read_word(at.vmemmap) : VMEMMAP_USUAL;
	direct = at.direct ? read_word(at.direct) : DIRECT_USUAL;
	for (node = read_word(at.caches); node && node != at.caches && n_caches < CACHES_MAX;
	     node = read_word(node)) {
		struct slab_cache *c = &caches[n_caches++];
		uint32_t size = 0;

		c->address = node - at.list;
		read_bytes(c->address + at.size, &size, sizeof(size));
		c->size = size;
		read_name(read_word(c->address + at.name), c->name);
	}
	*pages = vmemmap;
	*memory = direct;
}

static bool is_cache(uint64_t address)
{
	for (size_t i = 0; i < n_caches; i++)
		if (caches[i].address == address)
			return true;
	return false;
}

/* Bit 0 marks what is not the first page: the address of that one, or from 7.1 on the mask that leads there. */
static uint64_t head_of(uint64_t page)
{
	uint64_t head = read_word(page + at.head);

	if (!(head & 1))
		return page;
	return head >= MASKS ? page & head : head - 1;
}

struct slab_place slabs_place(uint64_t address)
{
	struct slab_place p = {0};
	uint64_t head, cache;

	if (!n_caches || address - direct >= DIRECT_BYTES)
		return p;
	head = head_of(vmemmap + ((address - direct) >> PAGE_SHIFT) * at.page);
	cache = read_word(head + at.owner);
	if (!is_cache(cache))
		return p;
	p.cache = cache;
	p.offset = address - (direct + ((head - vmemmap) / at.page << PAGE_SHIFT));
	return p;
}

size_t slabs_caches(const struct slab_cache **found)
{
	*found = caches;
	return n_caches;
}

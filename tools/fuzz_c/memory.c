/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest's memory, in which the plugin looks for slab caches: the input is the
 * memory, its first bytes are the description of the kernel, as guest_facts.c reads it.
 */
#include "target.h"

#include "../../plugin/callers.c"
#include "../../plugin/guest_facts.c"
#include "../../plugin/slabs.c"

static const uint8_t *memory;
static size_t memory_size;

bool qemu_plugin_read_memory_vaddr(uint64_t address, GByteArray *to, size_t size)
{
	uint64_t at = address % 0x10000; /* whatever the guest says leads somewhere */

	if (at >= memory_size || memory_size - at < size)
		return false;
	free(to->data);
	to->data = malloc(size);
	HOLDS(to->data);
	memcpy(to->data, memory + at, size);
	to->len = (unsigned int)size;
	return true;
}

/* Of the rest of the plugin, which nothing here calls. */
uint64_t counting_task(void)
{
	return 0;
}

bool counting_is_open(void)
{
	return false;
}

bool counting_now(void)
{
	return false;
}

GByteArray *g_byte_array_new(void)
{
	static GByteArray one;

	return &one;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = memchr(data, 0, size);
	const struct slab_cache *found;
	uint64_t pages, bytes;
	size_t n;

	memory = end ? end : data;
	memory_size = size - (size_t)(memory - data);
	guest_facts_read(as_file(data, (size_t)(memory - data)));
	for (uint32_t i = 0; i < n_listed; i++)
		HOLDS(callers_listed(listed[i].low) == i + 1);
	slabs_read(&pages, &bytes);
	n = slabs_caches(&found);
	for (size_t i = 0; i < n; i++)
		HOLDS(strlen(found[i].name) < CACHE_NAME_BYTES);
	for (size_t i = 0; known && i + 8 <= memory_size && i < 4096; i += 8) {
		struct slab_place p = slabs_place(bytes + i * 512);

		HOLDS(!p.cache || n);
	}
	free(listed);
	listed = NULL;
	n_listed = 0;
	known = false;
	at = (struct slab_layout){0};
	n_caches = 0;
	return 0;
}

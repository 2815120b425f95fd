/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Open addressing, at most half full: see table.h. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kdelta.h"
#include "table.h"

#define ROOM_FIRST 4096

static bool is_free(const uint64_t *key)
{
	return !(key[0] | key[1]);
}

static uint64_t *place(const struct table *t, uint64_t a, uint64_t b)
{
	size_t at = (size_t)(((a ^ b << 21) * 0x9e3779b97f4a7c15) >> 20);

	for (;; at++) {
		uint64_t *key = (void *)(t->items + (at & (t->room - 1)) * t->item);

		if ((key[0] == a && key[1] == b) || is_free(key))
			return key;
	}
}

static void grow(struct table *t)
{
	struct table old = *t;

	t->room = t->room ? t->room * 2 : ROOM_FIRST;
	t->items = xalloc(t->room, t->item);
	for (size_t i = 0; i < old.room; i++) {
		uint64_t *key = (void *)(old.items + i * old.item);

		if (!is_free(key))
			memcpy(place(t, key[0], key[1]), key, t->item);
	}
	free(old.items);
}

void *table_item(struct table *t, uint64_t a, uint64_t b)
{
	uint64_t *key;

	if (2 * t->n >= t->room)
		grow(t);
	key = place(t, a, b);
	if (is_free(key)) {
		t->n++;
		key[0] = a;
		key[1] = b;
	}
	return key;
}

void *table_find(const struct table *t, uint64_t a, uint64_t b)
{
	uint64_t *key = t->n ? place(t, a, b) : NULL;

	return key && !is_free(key) ? key : NULL;
}

void table_empty(struct table *t)
{
	if (t->n)
		memset(t->items, 0, t->room * t->item);
	t->n = 0;
}

void *table_next(const struct table *t, const void *item)
{
	size_t i = item ? (size_t)((const char *)item - t->items) / t->item + 1 : 0;

	for (; i < t->room; i++) {
		void *found = t->items + i * t->item;

		if (!is_free(found))
			return found;
	}
	return NULL;
}

int table_order(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	for (int i = 0; i < 3; i++)
		if (x[i] != y[i])
			return (x[i] > y[i]) - (x[i] < y[i]);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A hash table of items that start with their key of two words; 0, 0 is a free place. */
#ifndef KDELTA_TABLE_H
#define KDELTA_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct table {
	char *items;
	size_t item, n, room; /* item: bytes of one */
};

/* The item of this key, zeroed but for it when it is new. Valid until the next new one. */
void *table_item(struct table *t, uint64_t a, uint64_t b);
/* The same, NULL where there is none. */
void *table_find(const struct table *t, uint64_t a, uint64_t b);
void table_empty(struct table *t);
/* The items after `item` in no order that means anything, from NULL on; NULL at the end. */
void *table_next(const struct table *t, const void *item);
/* In order of their first two words, then of the third. */
int table_order(const void *a, const void *b);

#endif

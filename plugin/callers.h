/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions that act for their callers, as locks do: callers.c. */
#ifndef KDELTA_CALLERS_H
#define KDELTA_CALLERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct block;

/* How often the function that starts at `entry` was called by the instruction `site`. */
struct entry_count {
	uint64_t entry, site;
	uint64_t
		caller; /* the call outside of all such functions that it is part of; 0: not known */
	uint64_t times;
};

/* A stretch of code that is one, in order of addresses; false where it is not. */
bool callers_add(uint64_t low, uint64_t high);
uint32_t callers_listed(uint64_t pc); /* which of them pc is in, from 1; 0: in none */
/* For whom the task runs block b; 0: b is in none, or it is not known. */
uint64_t callers_caller(const struct block *b);
void callers_enter(const struct block *left, const struct block *b); /* b starts after left */
void callers_begin(void);
size_t callers_counts(struct entry_count **found); /* sorted; the caller frees it */

/* A number from 1 for each pair of addresses that is asked for, and back. */
uint64_t pair_number(uint64_t a, uint64_t b);
const uint64_t *pair_of(uint64_t number);

#endif

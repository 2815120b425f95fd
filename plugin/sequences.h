/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Readers of sequence counters that found them written: sequences.c. */
#ifndef KDELTA_SEQUENCES_H
#define KDELTA_SEQUENCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "slabs.h"

struct block;

/* What an instruction has to do with words of 32 bits that may be sequence counters. */
struct sequence_site {
	uint64_t pc;
	bool loads;	/* a word whose value is compared or tested later */
	bool tests;	/* bit 0 of register a */
	bool pauses;	/* then there is a PAUSE on one side */
	bool compares;	/* two values: in registers a and b, or a and memory */
	bool in_memory; /* the second value is */
	uint8_t a, b;
	uint64_t from_a,
		from_b; /* the load of what the register holds; 0: of nothing that is followed */
};

enum { SEQUENCE_CHECK = 1, SEQUENCE_BEGIN = 2, SEQUENCE_PAUSE = 4 };

/* Of one instruction on one word. */
struct sequence_count {
	uint64_t address, pc;
	uint64_t kind;	/* bits SEQUENCE_ */
	uint64_t times; /* reads that ended there, or began */
	uint64_t failed;
	struct slab_place place; /* of the word's line */
};

/* False: this QEMU does not tell what is loaded, and nothing else here does anything. */
bool sequences_known(void);
/*
 * What the instructions of b are; `found` has as many places, with what they were when it was translated before, and
 * NULL for most.
 */
void sequences_find(const struct block *b, struct sequence_site **found);
/* An access of the site at this address was made; value: what it loaded. */
void sequences_access(const struct sequence_site *s, uint64_t address, uint32_t value);
void sequences_look(unsigned int vcpu,
		    void *site); /* callback: of a site that looks at registers alone */
/* `written` says whether somebody wrote a byte since. */
void sequences_begin(bool (*written)(uint64_t address));
/* Of words that some reader found written; sorted, and the caller frees it. */
size_t sequences_counts(struct sequence_count **found);

#endif

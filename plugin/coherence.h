/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What crosses between CPUs: counted in coherence.c, written by lines_output.c. */
#ifndef KDELTA_COHERENCE_H
#define KDELTA_COHERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "callers.h"
#include "sequences.h"
#include "slabs.h"

struct qemu_plugin_insn;
struct qemu_plugin_tb;

/* Of one instruction on one address, for one caller. */
struct transfer {
	uint64_t address, pc;
	uint64_t caller; /* callers_caller() of the instruction */
	uint64_t cpus;	 /* that it came to, a bit each */
	uint64_t reads, writes;
};

struct moved_line {
	uint64_t address;
	uint64_t users;	  /* CPUs, a bit each */
	uint64_t written; /* bytes, a bit each */
	uint64_t shared;  /* bytes that one CPU wrote and another used */
	struct slab_place place;
};

/* Of one interval. */
struct lines_found {
	uint64_t vmemmap, direct; /* as slabs_read() found them */
	struct transfer *transfers;
	struct moved_line *lines;
	struct entry_count *entries;
	struct sequence_count *sequences;
	size_t n_transfers, n_lines, n_entries, n_sequences;
};

/* Nothing else here is called unless it is true: lines_open() was called. */
bool lines_wanted(void);
bool lines_open(const char *path);
/* Before the instructions of b are. */
void lines_translate(struct qemu_plugin_tb *tb, struct block *b);
/* The k-th instruction of b, which may access memory. */
void lines_instrument(struct qemu_plugin_insn *insn, struct block *b, uint32_t k);
void lines_begin(void);
void lines_end(uint32_t id);
void lines_output(uint32_t id, const struct lines_found *found);
void lines_close(void);

#endif

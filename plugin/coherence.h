/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What crosses between CPUs: counted in coherence.c, written by lines_output.c. */
#ifndef KDELTA_COHERENCE_H
#define KDELTA_COHERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct block;
struct qemu_plugin_insn;

/* Of one instruction on one address. */
struct transfer {
	uint64_t address, pc;
	uint64_t cpus; /* that it came to, a bit each */
	uint64_t reads, writes;
};

struct moved_line {
	uint64_t address;
	uint64_t users;	  /* CPUs, a bit each */
	uint64_t written; /* bytes, a bit each */
	uint64_t shared;  /* bytes that one CPU wrote and another used */
};

/* Nothing else here is called unless it is true: lines_open() was called. */
bool lines_wanted(void);
bool lines_open(const char *path);
/* The k-th instruction of b, which may access memory. */
void lines_instrument(struct qemu_plugin_insn *insn, struct block *b, uint32_t k);
void lines_begin(void);
void lines_end(uint32_t id);
void lines_output(uint32_t id, const struct transfer *t, size_t n_transfers,
		  const struct moved_line *l, size_t n_lines);
void lines_close(void);

#endif

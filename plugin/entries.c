/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where a kernel is entered, as the host lists it:
 *
 *	kdelta-entries 1
 *	call ADDRESS ROW	in order of addresses; the function of a system call
 *	exit ADDRESS ROW	of one by which a task ends itself
 *	fault ADDRESS ROW	entry of an exception: what it came upon has not completed
 *	irq ADDRESS ROW		entry of an interrupt: it comes between two instructions
 *	end ADDRESS ROW		where a task ends, by itself or by another's will
 *	birth ADDRESS 0		where a new task starts
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "entries.h"
#include "kdelta.h"

#define LINE_MAX_BYTES 128
#define ROWS_MAX (1u << 16)

static const char *const kind_names[] = {"call", "exit", "fault", "irq", "end", "birth"};

static struct entry *entries;
static size_t n_entries, room;
static uint32_t n_rows;

static bool add_entry(const char *line)
{
	struct entry e = {0};
	char what[8];
	int k = ENTRY_BIRTH;

	if (sscanf(line, "%7s %" SCNx64 " %" SCNu32, what, &e.pc, &e.row) != 3)
		return false;
	while (k >= 0 && strcmp(what, kind_names[k]))
		k--;
	if (k < 0 || e.row >= ROWS_MAX || (n_entries && e.pc <= entries[n_entries - 1].pc))
		return false;
	e.kind = (enum entry_kind)k;
	if (n_entries == room) {
		struct entry *more = xalloc(room = room ? room * 2 : 1024, sizeof(*more));

		if (n_entries)
			memcpy(more, entries, n_entries * sizeof(*entries));
		free(entries);
		entries = more;
	}
	entries[n_entries++] = e;
	if (e.row >= n_rows)
		n_rows = e.row + 1;
	return true;
}

bool entries_read(const char *path)
{
	char line[LINE_MAX_BYTES];
	FILE *in = fopen(path, "r");
	bool ok = in && fgets(line, sizeof(line), in) && !strcmp(line, "kdelta-entries 1\n");

	while (ok && fgets(line, sizeof(line), in))
		ok = add_entry(line);
	if (in)
		fclose(in);
	if (ok && n_entries)
		return true;
	fprintf(stderr, "kdelta plugin: %s is no list of entries into the kernel\n", path);
	return false;
}

uint32_t entries_rows(void)
{
	return n_rows;
}

static int by_pc(const void *key, const void *entry)
{
	uint64_t pc = *(const uint64_t *)key, at = ((const struct entry *)entry)->pc;

	return (pc > at) - (pc < at);
}

uint32_t calls_entry(uint64_t pc)
{
	const struct entry *e =
		n_entries ? bsearch(&pc, entries, n_entries, sizeof(*entries), by_pc) : NULL;

	return e ? (uint32_t)(e - entries) + 1 : 0;
}

const struct entry *entry_of(uint32_t nr)
{
	return &entries[nr - 1];
}

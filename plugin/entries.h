/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where a kernel is entered. */
#ifndef KDELTA_ENTRIES_H
#define KDELTA_ENTRIES_H

#include <stdbool.h>
#include <stdint.h>

enum entry_kind { ENTRY_CALL, ENTRY_EXIT, ENTRY_FAULT, ENTRY_IRQ, ENTRY_END, ENTRY_BIRTH };

struct entry {
	uint64_t pc;
	enum entry_kind kind;
	uint32_t row; /* whose counts these are */
};

bool entries_read(const char *path); /* false: with a message, it is no such list */
uint32_t entries_rows(void);
const struct entry *entry_of(uint32_t nr); /* as calls_entry() numbers them, from 1 */

#endif

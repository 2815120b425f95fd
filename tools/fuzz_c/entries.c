/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's entries, as the plugin reads them. */
#include "target.h"

#include "../../plugin/entries.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	entries = xalloc(room = 1, sizeof(*entries)); /* to grow within a few lines */
	entries_read(as_file(data, size));
	for (size_t i = 0; i < n_entries; i++) {
		uint32_t nr = calls_entry(entries[i].pc);

		HOLDS(nr == i + 1 && entry_of(nr)->row < entries_rows());
	}
	free(entries);
	entries = NULL;
	n_entries = room = n_rows = 0;
	return 0;
}

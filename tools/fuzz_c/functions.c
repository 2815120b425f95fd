/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's functions, as the plugin reads them. */
#include "target.h"

#include "../../plugin/functions.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct block b = {0};

	functions = xalloc(room = 1, sizeof(*functions)); /* to grow within a few lines */
	HOLDS(!functions_read(as_file(data, size)) || functions_known());
	for (size_t i = 0; i < n_functions; i++) {
		b = (struct block){.pc = functions[i].pc};
		functions_place(&b);
		HOLDS(functions[i].role == ROLE_END ? !b.function : b.function == b.pc);
	}
	free(functions);
	functions = NULL;
	n_functions = room = 0;
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where the kernel's functions start, as the host lists it (functions=PATH):
 *
 *	kdelta-functions 1
 *	ADDRESS ROLE	in order of addresses, in hex; ROLE: function, part, entry, vector or end (stacks.h)
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "kdelta.h"
#include "stacks.h"

#define LINE_MAX_BYTES 64

static const char *const role_names[] = {"function", "part", "entry", "vector", "end"};

static struct function {
	uint64_t pc;
	enum function_role role;
} * functions;
static size_t n_functions, room;

static bool add_function(const char *line)
{
	uint64_t pc;
	char what[16];
	int role = ROLE_END;

	if (sscanf(line, "%" SCNx64 " %15s", &pc, what) != 2)
		return false;
	while (role >= 0 && strcmp(what, role_names[role]))
		role--;
	if (role < 0 || (n_functions && pc <= functions[n_functions - 1].pc))
		return false;
	if (n_functions == room) {
		struct function *more = xalloc(room = room ? room * 2 : 1u << 16, sizeof(*more));

		if (n_functions)
			memcpy(more, functions, n_functions * sizeof(*functions));
		free(functions);
		functions = more;
	}
	functions[n_functions++] = (struct function){pc, (enum function_role)role};
	return true;
}

bool functions_read(const char *path)
{
	char line[LINE_MAX_BYTES];
	FILE *in = fopen(path, "r");
	bool ok = in && fgets(line, sizeof(line), in) && !strcmp(line, "kdelta-functions 1\n");

	while (ok && fgets(line, sizeof(line), in))
		ok = add_function(line);
	if (in)
		fclose(in);
	if (ok && n_functions)
		return true;
	fprintf(stderr, "kdelta plugin: %s is no list of functions\n", path);
	return false;
}

bool functions_known(void)
{
	return n_functions;
}

void functions_place(struct block *b)
{
	size_t low = 0, high = n_functions;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (functions[middle].pc <= b->pc)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || functions[low - 1].role == ROLE_END)
		return;
	b->function = functions[low - 1].pc;
	b->role = (uint8_t)functions[low - 1].role;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kernel instructions by call stack: stacks.c, functions.c. */
#ifndef KDELTA_STACKS_H
#define KDELTA_STACKS_H

#include <stdbool.h>
#include <stdint.h>

struct block;
struct stack; /* of one task; free() ends it */

enum function_role {
	ROLE_FUNCTION,
	ROLE_PART,   /* a part of what jumps there: code that the compiler split off, thunks */
	ROLE_ENTRY,  /* where it starts an interrupt begins that is none of entries.c */
	ROLE_VECTOR, /* so does it anywhere in it */
	ROLE_END,    /* what follows is in none */
};

/* functions.c */
bool functions_read(const char *path); /* false: with a message, it is no such list */
bool functions_known(void);
void functions_place(struct block *b); /* its function and role */

/* The task that has `stack` (NULL: not yet) runs b after left; left NULL: it was not in the kernel. */
void stacks_enter(struct stack **stack, const struct block *left, const struct block *b);
void stacks_count(int64_t n); /* instructions of the function that was entered last */
void stacks_start_over(void); /* all stacks are gone */
void stacks_begin(void);
void stacks_end(uint32_t id);

#endif

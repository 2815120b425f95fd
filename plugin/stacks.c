/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Kernel instructions by call stack: a tree of functions under those that called
 * them. Each task has a stack of calls, followed from block to block:
 *
 *  - a call pushes the address that follows it. A return is one where it leads to
 *    such an address, and ends all calls above: so a return that is used as a jump
 *    (retpolines) is a jump, and calls that never return (the filling of the return
 *    stack buffer) go with those that they were part of;
 *  - a jump into another function is a tail call: that function takes the place of
 *    the one that jumped. What the host lists as a part is its child instead;
 *  - an interrupt or a fault pushes what it came upon, and what that was about to
 *    do is done where it returns to.
 *
 * Neither registers nor memory are read, as in calls.c, which counts. What a task
 * was in when the following began is not known: its functions lie at the root.
 */
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "entries.h"
#include "kdelta.h"
#include "stacks.h"
#include "table.h"

#define DEPTH_MAX 256
#define NODES_MAX (1u << 18)

struct node {
	uint32_t parent;
	uint64_t function;
	int64_t instructions;
	uint64_t calls;
};

struct place {
	uint64_t parent, function;
	uint64_t node;
};

struct call {
	uint64_t back;		    /* where it returns to */
	const struct block *before; /* of an interrupt: the block that it came after, else NULL */
	uint32_t base, own;	    /* nodes: who called, and what runs; own 0: not yet known */
};

struct stack {
	unsigned int depth;
	uint32_t at; /* node: what runs, a part of calls[depth].own maybe */
	struct call calls[DEPTH_MAX];
};

static struct table places = {.item = sizeof(struct place)};
static struct node *nodes; /* the first is the root */
static uint32_t n_nodes, room;
static uint64_t lost; /* calls that were too deep, and nodes that were too many */
static struct stack *stack;

static uint32_t add_node(uint32_t parent, uint64_t function)
{
	if (n_nodes == room) {
		struct node *more = xalloc(room = room ? room * 2 : 4096, sizeof(*more));

		if (n_nodes)
			memcpy(more, nodes, n_nodes * sizeof(*nodes));
		free(nodes);
		nodes = more;
	}
	nodes[n_nodes] = (struct node){.parent = parent, .function = function};
	return n_nodes++;
}

/* Where there is no room, the parent stands for it. */
static uint32_t child(uint32_t parent, uint64_t function)
{
	struct place *p = table_find(&places, parent + 1, function);

	if (p)
		return (uint32_t)p->node;
	if (n_nodes >= NODES_MAX) {
		lost += counting_now();
		return parent;
	}
	p = table_item(&places, parent + 1, function);
	p->node = add_node(parent, function);
	return (uint32_t)p->node;
}

static struct call *top(void)
{
	return &stack->calls[stack->depth];
}

static void empty(void)
{
	stack->depth = 0;
	stack->at = 0;
	*top() = (struct call){0};
}

static void push(struct call c)
{
	if (stack->depth + 1 == DEPTH_MAX) {
		lost += counting_now();
		return;
	}
	stack->depth++;
	*top() = c;
}

/* A call inside of one function is how code finds its place or feeds the predictors: not a function's. */
static void call(const struct block *left, const struct block *b)
{
	struct call c = {.back = left->fall, .base = stack->at};

	if (top()->own && nodes[top()->own].function == b->function && b->pc != b->function) {
		c.base = top()->base;
		c.own = top()->own;
	}
	push(c);
}

static void ret(const struct block *b)
{
	for (unsigned int i = stack->depth; i && !stack->calls[i].before; i--)
		if (stack->calls[i].back == b->pc) {
			stack->depth = i - 1;
			return;
		}
}

/* Ends the latest interrupt, and says what it came upon; NULL: there was none. */
static const struct block *resume(void)
{
	for (unsigned int i = stack->depth; i; i--)
		if (stack->calls[i].before) {
			stack->depth = i - 1;
			stack->at = stack->calls[i].base;
			return stack->calls[i].before;
		}
	return NULL;
}

static void go(const struct block *left, const struct block *b)
{
	while (left && left->kind == KIND_IRET) {
		if (b->pc == left->fall) /* to itself, by which the kernel synchronises its core */
			return;
		left = resume();
	}
	if (!left || !left->n || (b->pc > left->pc && b->pc < left->fall))
		return;
	if (block_last(left)->calls)
		call(left, b);
	else if (block_last(left)->returns)
		ret(b);
}

/* The function of b runs in the call on top. */
static void arrive(const struct block *b)
{
	struct call *c = top();
	uint64_t running = c->own ? nodes[c->own].function : 0, function = b->function;
	uint32_t before = stack->at;
	struct block probe = {.pc = running};

	if (!function) {
		functions_place(&probe);
		function = running && !probe.function ? running : b->pc;
	}
	if (running == function) {
		stack->at = c->own;
		return;
	}
	if (c->own && b->role == ROLE_PART)
		stack->at = child(c->own, function);
	else
		stack->at = c->own = child(c->base, function);
	if (b->pc == function && stack->at != before)
		nodes[stack->at].calls += counting_now();
}

static bool interrupts(const struct block *left, const struct block *b)
{
	enum entry_kind kind = b->entry ? entry_of(b->entry)->kind : ENTRY_CALL;

	if (left->role == ROLE_VECTOR)
		return false;
	return b->role == ROLE_VECTOR || (b->role == ROLE_ENTRY && b->pc == b->function) ||
	       kind == ENTRY_FAULT || kind == ENTRY_IRQ;
}

void stacks_enter(struct stack **of, const struct block *left, const struct block *b)
{
	/* A birth that is called is a second one of the same task: ret_from_fork in v6.4 and later. */
	bool born = left && !block_last(left)->calls && b->entry &&
		    entry_of(b->entry)->kind == ENTRY_BIRTH;

	if (!n_nodes)
		add_node(0, 0);
	if (!*of)
		*of = xalloc(1, sizeof(**of));
	stack = *of;
	if (!left || born)
		empty();
	else if (interrupts(left, b))
		push((struct call){.before = left, .base = stack->at});
	else
		go(left, b);
	arrive(b);
}

void stacks_count(int64_t n)
{
	if (stack)
		nodes[stack->at].instructions += n;
}

void stacks_start_over(void)
{
	stack = NULL;
}

void stacks_begin(void)
{
	for (uint32_t i = 0; i < n_nodes; i++) {
		nodes[i].instructions = 0;
		nodes[i].calls = 0;
	}
	lost = 0;
}

/* Nodes that ran, and those above them; a parent comes before its children. */
void stacks_end(uint32_t id)
{
	struct stack_record *out = xalloc(n_nodes + 1, sizeof(*out));
	uint32_t *number = xalloc(n_nodes + 1, sizeof(*number)), n = 1;

	for (uint32_t i = n_nodes; i-- > 1;) {
		struct node *c = &nodes[i];

		number[i] |= c->instructions || c->calls;
		number[c->parent] |= number[i];
	}
	number[0] = 0;
	for (uint32_t i = 1; i < n_nodes; i++) {
		const struct node *c = &nodes[i];

		if (!number[i])
			continue;
		out[n] = (struct stack_record){number[c->parent], c->function, c->instructions,
					       c->calls};
		number[i] = n++;
	}
	out[0].instructions = n_nodes ? nodes[0].instructions : 0;
	out[0].calls = lost;
	output_stacks(id, out, n);
	free(out);
	free(number);
}

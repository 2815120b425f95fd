/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Kernel instructions by system call, and by what interrupts came between. Each
 * task has a stack of what it is in the kernel for. A system call begins where
 * the kernel follows a program's syscall instruction, and gets its name where the
 * first of the functions that the host lists starts (__x64_sys_read): so neither
 * registers nor values of memory are needed, which QEMU before 9 and 10 do not
 * show. Faults and interrupts begin at their entries, which the host lists too.
 *
 * Instructions are added up block by block. Where QEMU or a fault left a block
 * early, what did not run is taken off.
 */
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "entries.h"
#include "kdelta.h"
#include "stacks.h"

#define DEPTH_MAX 8
#define BUCKETS 4096

/* Rows of no entry, above those of the host. */
enum { ROW_CALL = 0xfffffffd, ROW_TRAP = 0xfffffffe, ROW_TASK = 0xffffffff };
enum { EXTRA_ROWS = 3 };

/* What a task is in the kernel for; the first frame: for nothing that it asked for or was interrupted by. */
struct frame {
	uint32_t row;
	bool nested; /* it came upon the kernel, and returns there */
	bool ends;   /* the call by which it ends itself */
	int64_t instructions;
	uint64_t rep_bytes;
};

struct task {
	struct task *next; /* in its bucket */
	uint64_t id;
	unsigned int depth, too_deep;
	struct stack *stack;
	struct frame frames[DEPTH_MAX];
};

static struct call_record *rows; /* the host's, then ours */
static uint32_t n_rows;
static struct task *buckets[BUCKETS], *task;
static bool said;
static int64_t ran; /* since `task` or its frame changed */
static uint64_t rep_bytes;

bool calls_open(const char *path)
{
	if (!entries_read(path))
		return false;
	n_rows = entries_rows();
	rows = xalloc(n_rows + EXTRA_ROWS, sizeof(*rows));
	return true;
}

bool calls_wanted(void)
{
	return rows;
}

void calls_said(unsigned int vcpu, void *udata)
{
	(void)vcpu;
	(void)udata;
	said = true;
}

static struct call_record *row_of(uint32_t row)
{
	return &rows[row >= ROW_CALL ? n_rows + (row - ROW_CALL) : row];
}

static struct frame *top(void)
{
	return &task->frames[task->depth];
}

static void settle(void)
{
	top()->instructions += ran;
	top()->rep_bytes += rep_bytes;
	ran = 0;
	rep_bytes = 0;
}

static void hand_in(struct frame *f)
{
	struct call_record *r = row_of(f->row);

	r->instructions += f->instructions;
	r->rep_bytes += f->rep_bytes;
	f->instructions = 0;
	f->rep_bytes = 0;
}

static struct task **bucket_of(uint64_t id)
{
	return &buckets[(id * 0x9e3779b97f4a7c15 >> 32) % BUCKETS];
}

/* The task that runs, with its frames as they were when it last did. */
static void take_task(uint64_t id)
{
	struct task **bucket = bucket_of(id);

	for (task = *bucket; task; task = task->next)
		if (task->id == id)
			return;
	task = xalloc(1, sizeof(*task));
	*task = (struct task){.next = *bucket, .id = id, .frames = {{.row = ROW_TASK}}};
	*bucket = task;
}

void calls_rename(uint64_t id)
{
	struct task **at;

	if (!task)
		return;
	for (at = bucket_of(task->id); *at != task;)
		at = &(*at)->next;
	*at = task->next;
	at = bucket_of(id);
	task->id = id;
	task->next = *at;
	*at = task;
}

void calls_start_over(void)
{
	for (size_t i = 0; i < BUCKETS; i++)
		while (buckets[i]) {
			struct task *gone = buckets[i];

			buckets[i] = gone->next;
			free(gone->stack);
			free(gone);
		}
	stacks_start_over();
	task = NULL;
	said = false;
	ran = 0;
	rep_bytes = 0;
}

static bool push(struct frame f)
{
	settle();
	if (task->depth + 1 == DEPTH_MAX) {
		task->too_deep++;
		return false;
	}
	task->depth++;
	*top() = f;
	return true;
}

/* What never came to the function of a system call (seccomp, a number that the table lacks) is counted as it returns. */
static void pop(void)
{
	settle();
	if (top()->row == ROW_CALL)
		row_of(ROW_CALL)->calls += counting_now();
	hand_in(top());
	task->depth--;
}

static void pop_all(void)
{
	while (task->depth)
		pop();
	settle();
	task->too_deep = 0;
}

/* Whether starts of the instruction can be fewer than those of the one before. */
static bool has_starts(const struct block *b, uint32_t i)
{
	return i && !b->insns[i - 1].tame && !b->insns[i].doubtful;
}

/* How many starts the instructions of a block lack in all, against its first one. */
static uint64_t shortfall(const struct block *b)
{
	uint64_t n = 0;

	for (uint32_t i = 1; i < b->n; i++)
		if (has_starts(b, i))
			n += b->count[0][SLOT_STARTS] - starts_behind(b, b->count, i - 1, 0);
	return n;
}

/* A fault came upon the block: how much of it did not complete. A REP is counted when it starts. */
static int64_t not_completed(struct block *b)
{
	uint64_t missing = shortfall(b) - b->shortfall;
	uint32_t i = b->n;

	b->shortfall += missing;
	if (!missing && b->kind == KIND_REP)
		return 0;
	for (; missing && i > 1; missing -= has_starts(b, i))
		i--;
	return b->n - i + 1;
}

/* QEMU left the block before pc. */
static int64_t not_run(struct block *b, uint64_t pc)
{
	int64_t n = 0;

	b->shortfall = shortfall(b);
	for (uint32_t i = b->n; i && b->insns[i - 1].pc >= pc; i--)
		n++;
	return n;
}

/* A return from an interrupt of the kernel. */
static void back(void)
{
	if (task->too_deep) {
		task->too_deep--;
		return;
	}
	if (top()->nested) /* else the kernel synchronises its core by an iret to itself */
		pop();
}

static void name_top(uint32_t row)
{
	top()->row = row;
	row_of(row)->calls += counting_now();
}

/* A thread of which another ends the process ends in whatever call it was: that call has not done this work. */
static void end(uint32_t row)
{
	if (!task->depth || top()->nested || top()->ends)
		return;
	settle();
	hand_in(top());
	name_top(row);
}

static void account(int64_t n)
{
	if (!counting_now())
		return;
	ran += n;
	if (functions_known())
		stacks_count(n);
}

/* `left`: the block of the kernel that came before. */
static void entered(const struct entry *e, struct block *left)
{
	switch (e->kind) {
	case ENTRY_CALL:
	case ENTRY_EXIT:
		if (top()->row != ROW_CALL)
			break;
		name_top(e->row);
		top()->ends = e->kind == ENTRY_EXIT;
		break;
	case ENTRY_END:
		end(e->row);
		break;
	case ENTRY_FAULT:
		account(left ? -not_completed(left) : 0);
		/* fall through */
	case ENTRY_IRQ:
		if (top()->row == ROW_TRAP || push((struct frame){.row = ROW_TRAP, .nested = true}))
			name_top(e->row);
		break;
	case ENTRY_BIRTH: /* in the place of a task that has ended */
		pop_all();
		hand_in(top());
	}
}

void calls_leave(struct block *left)
{
	uint64_t bytes;

	if (!task)
		take_task(counting_task());
	if (left->kind == KIND_REP) {
		bytes = left->count[left->n - 1][SLOT_TWO];
		if (counting_now() && left->pc >> 63)
			rep_bytes += bytes - left->rep_taken;
		left->rep_taken = bytes;
	}
	if (counting_switched)
		settle();
}

/*
 * Whether the kernel ran before `b`. A return to a page of the program that is not
 * there faults before any block of the program starts.
 */
static bool from_kernel(const struct block *left, const struct block *b)
{
	bool fault = b->entry && entry_of(b->entry)->kind == ENTRY_FAULT;

	return left->pc >> 63 && !(fault && block_last(left)->leaves);
}

void calls_enter(struct block *left, const struct block *b, bool goes_on)
{
	bool was_kernel = from_kernel(left, b), is_kernel = b->pc >> 63;
	bool cut = b->pc > left->pc && b->pc < left->fall && b->pc != left->target;

	if (task->id != counting_task())
		take_task(counting_task());
	if (!is_kernel) {
		if (was_kernel)
			pop_all();
		said = false;
		return;
	}
	if (!was_kernel) {
		pop_all();
		push((struct frame){.row = said ? ROW_CALL : ROW_TRAP});
		said = false;
	} else if (left->kind == KIND_IRET) {
		back();
	} else if (cut && !goes_on) {
		account(-not_run(left, b->pc));
	}
	if (b->entry)
		entered(entry_of(b->entry), was_kernel ? left : NULL);
	if (functions_known())
		stacks_enter(&task->stack, was_kernel ? left : NULL, b);
	if (!goes_on)
		account(b->n);
}

static void each_frame(void (*fn)(struct frame *f))
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct task *t = buckets[i]; t; t = t->next)
			for (unsigned int k = 0; k <= t->depth; k++)
				fn(&t->frames[k]);
}

static void forget(struct frame *f)
{
	f->instructions = 0;
	f->rep_bytes = 0;
}

void calls_begin(void)
{
	if (!rows)
		return;
	memset(rows, 0, (n_rows + EXTRA_ROWS) * sizeof(*rows));
	each_frame(forget);
	ran = 0;
	rep_bytes = 0;
	stacks_begin();
}

void calls_end(uint32_t id)
{
	struct call_record *out;
	size_t n = 0;

	if (!rows)
		return;
	if (task)
		settle();
	each_frame(hand_in);
	out = xalloc(n_rows + EXTRA_ROWS, sizeof(*out));
	for (uint32_t i = 0; i < n_rows + EXTRA_ROWS; i++)
		if (rows[i].calls || rows[i].instructions) {
			out[n] = rows[i];
			out[n++].row = i < n_rows ? i : ROW_CALL + (i - n_rows);
		}
	output_calls(id, out, n);
	free(out);
	if (functions_known())
		stacks_end(id);
}

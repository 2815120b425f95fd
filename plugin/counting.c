/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whose instructions count. An interval is open from BEGIN to END; while it is,
 * what a task executes counts, unless the task has said PAUSE. So of several
 * tasks each leaves out its own waiting, wherever the kernel switches.
 *
 * A task is known by an address that only the kernel's task switch touches: the
 * place of the saved stack pointer (decode.c: `switches`). That needs neither
 * symbols nor registers, which QEMU before 9 cannot read. The switch is taken
 * to happen at the next block; the instructions before are the old task's.
 */
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "kdelta.h"

#define FIRST_TASK \
	1 /* plus the CPU: whoever runs there before the first switch, until that tells; no such address */

enum said {
	NOTHING, /* kernel threads, children: counts, unless a task left everybody out */
	INSIDE,
	OUTSIDE,
	OUTSIDE_WITH_ALL, /* and what says nothing is left out as well */
};

struct task {
	uint64_t id; /* 0: a free place */
	enum said said;
};

static struct task *tasks; /* open addressing, at most half full */
static size_t n_tasks, room;
static size_t n_with_all;
static uint64_t current = FIRST_TASK, previous, next, idle;
static bool open, counting, saw_switch;

/* The same of the CPUs that do not run. */
static struct {
	uint64_t current, previous, next, idle;
	bool switched;
} elsewhere[CPUS_MAX];

bool counting_switched;

static struct task *place_of(uint64_t id)
{
	size_t at = (size_t)(id * 0x9e3779b97f4a7c15 >> 32) & (room - 1);

	while (tasks[at].id && tasks[at].id != id)
		at = (at + 1) & (room - 1);
	return &tasks[at];
}

static void grow(void)
{
	struct task *old = tasks;
	size_t n = room;

	room = room ? room * 2 : 64;
	tasks = xalloc(room, sizeof(*tasks));
	for (size_t i = 0; i < n; i++)
		if (old[i].id)
			*place_of(old[i].id) = old[i];
	free(old);
}

static enum said said_by(uint64_t id)
{
	return n_tasks ? place_of(id)->said : NOTHING;
}

static void say(enum said what)
{
	struct task *t;

	if (2 * n_tasks >= room)
		grow();
	t = place_of(current);
	n_tasks += !t->id;
	n_with_all -= t->said == OUTSIDE_WITH_ALL;
	n_with_all += what == OUTSIDE_WITH_ALL;
	*t = (struct task){current, what};
}

static void decide(void)
{
	enum said said = said_by(current);

	counting = open && current != idle && (said == INSIDE || (said == NOTHING && !n_with_all));
}

bool counting_now(void)
{
	return counting;
}

uint64_t counting_task(void)
{
	return current;
}

void counting_cut(void)
{
	if (counting)
		blocks_absorb();
	else
		blocks_clear();
}

bool counting_open(bool for_others)
{
	open = true;
	say(for_others ? OUTSIDE : INSIDE);
	decide();
	return !for_others || saw_switch;
}

bool counting_close(void)
{
	bool was = open;

	open = false;
	decide();
	return was;
}

bool counting_is_open(void)
{
	return open;
}

void counting_pause(bool alone)
{
	say(alone ? OUTSIDE : OUTSIDE_WITH_ALL);
	decide();
}

void counting_resume(void)
{
	say(INSIDE);
	decide();
}

void counting_forget(void)
{
	free(tasks);
	tasks = NULL;
	n_tasks = room = n_with_all = 0;
	decide();
}

void counting_start_over(void)
{
	current = FIRST_TASK + cpu_now;
	previous = idle = 0;
	counting_switched = false;
	memset(elsewhere, 0, sizeof(elsewhere));
	counting_forget();
}

void counting_previous(unsigned int vcpu, uint32_t info, uint64_t vaddr, void *udata)
{
	(void)vcpu;
	(void)info;
	(void)udata;
	previous = vaddr;
}

void counting_next(unsigned int vcpu, uint32_t info, uint64_t vaddr, void *udata)
{
	(void)vcpu;
	(void)info;
	(void)udata;
	next = vaddr;
	counting_switched = true;
}

/* What ran until now goes where it belongs, if what follows does not go there as well. */
static void decide_anew(void)
{
	bool was = counting;

	decide();
	if (was && !counting)
		blocks_absorb();
	else if (!was && counting)
		blocks_clear();
}

/* Where it keeps its stack is where it will take it from. */
static void name_first(void)
{
	enum said what = said_by(current);

	say(NOTHING);
	idle = idle == current ? previous : idle;
	current = previous;
	say(what);
}

uint64_t counting_switch(void)
{
	uint64_t named = 0;

	counting_switched = false;
	saw_switch = true;
	if (current == FIRST_TASK + cpu_now && previous) {
		name_first();
		named = current;
	}
	current = next;
	decide_anew();
	return named;
}

void counting_idle(void)
{
	idle = current;
	decide_anew();
}

void counting_to_cpu(unsigned int from, unsigned int to)
{
	elsewhere[from].current = current;
	elsewhere[from].previous = previous;
	elsewhere[from].next = next;
	elsewhere[from].idle = idle;
	elsewhere[from].switched = counting_switched;
	current = elsewhere[to].current ? elsewhere[to].current : FIRST_TASK + to;
	previous = elsewhere[to].previous;
	next = elsewhere[to].next;
	idle = elsewhere[to].idle;
	counting_switched = elsewhere[to].switched;
	decide_anew();
}

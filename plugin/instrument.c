/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What QEMU is asked to do for each instruction: counters inline where that is possible, callbacks elsewhere. */
#include <stdio.h>
#include <stdlib.h>

#include "blocks.h"
#include "coherence.h"
#include "instrument.h"
#include "kdelta.h"
#include "qemu_api.h"

static struct qemu_plugin_scoreboard *score;

void instrument_open(void)
{
	if (qemu_plugin_scoreboard_new)
		score = qemu_plugin_scoreboard_new(sizeof(uint64_t));
}

/*
 * From interface 2 on, inline operations act on the address "start of the
 * scoreboard + offset". All counters lie in memory of our own, as for interface
 * 1; the offset leads there. (QEMU allots every scoreboard sixteen times over,
 * for vCPUs to come: counters inside would take half a gigabyte.)
 */
static qemu_plugin_u64 entry_of(uint64_t *counter)
{
	uintptr_t base = (uintptr_t)qemu_plugin_scoreboard_find(score, 0);

	return (qemu_plugin_u64){score, (uintptr_t)counter - base};
}

void instrument_check(void)
{
	static uint64_t probe = 0x6b64656c74610a01;
	static bool checked;

	if (!score || checked)
		return;
	checked = true;
	if (qemu_plugin_u64_get(entry_of(&probe), 0) == probe)
		return;
	fprintf(stderr, "kdelta plugin: this QEMU addresses scoreboards in an unknown way\n");
	abort();
}

static void start_cb(unsigned int vcpu, void *counter)
{
	(void)vcpu;
	++*(uint64_t *)counter;
}

static void add_on_start(struct qemu_plugin_insn *insn, uint64_t *counter)
{
	if (lines_wanted())
		qemu_plugin_register_vcpu_insn_exec_cb(insn, start_cb, CB_NO_REGS, counter);
	else if (score)
		qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(insn, INLINE_ADD_U64,
								    entry_of(counter), 1);
	else
		qemu_plugin_register_vcpu_insn_exec_inline(insn, INLINE_ADD_U64, counter, 1);
}

static void access_cb(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *count)
{
	uint64_t *slots = count;

	(void)vcpu;
	(void)vaddr;
	slots[qemu_plugin_mem_is_store(info) ? SLOT_TWO : SLOT_ONE]++;
}

/*
 * QEMU 7.2 takes the filter wrongly for accesses in generated code ("read"
 * means stores, "write" means both) and rightly for those in helpers. So there:
 * slot one all accesses, slot two stores by the filter "read"; helpers by callback.
 */
static void add_on_access(struct qemu_plugin_insn *insn, const struct insn *what, uint64_t *slots)
{
	if (score) {
		qemu_plugin_register_vcpu_mem_inline_per_vcpu(insn, MEM_R, INLINE_ADD_U64,
							      entry_of(&slots[SLOT_ONE]), 1);
		qemu_plugin_register_vcpu_mem_inline_per_vcpu(insn, MEM_W, INLINE_ADD_U64,
							      entry_of(&slots[SLOT_TWO]), 1);
	} else if (what->split) {
		qemu_plugin_register_vcpu_mem_cb(insn, access_cb, CB_NO_REGS, MEM_RW, slots);
	} else {
		qemu_plugin_register_vcpu_mem_inline(insn, MEM_RW, INLINE_ADD_U64, &slots[SLOT_ONE],
						     1);
		qemu_plugin_register_vcpu_mem_inline(insn, MEM_R, INLINE_ADD_U64, &slots[SLOT_TWO],
						     1);
	}
}

/*
 * Bytes of a REP instruction. One access of each iteration stands for all; where
 * that is one of two alike, or QEMU looks at a place before it stores there, they
 * are told apart in a callback.
 */
static void add_rep_bytes(struct qemu_plugin_insn *insn, const struct insn *what, struct block *b,
			  uint64_t *bytes)
{
	if (what->rep_accesses > 1 || lines_wanted())
		qemu_plugin_register_vcpu_mem_cb(insn, flow_rep_access, CB_NO_REGS, MEM_RW, b);
	else if (score)
		qemu_plugin_register_vcpu_mem_inline_per_vcpu(
			insn, what->rep_stores ? MEM_W : MEM_R, INLINE_ADD_U64, entry_of(bytes),
			what->rep_width);
	else /* see add_on_access(): "read" means stores; what makes none is asked for all it makes */
		qemu_plugin_register_vcpu_mem_inline(insn, what->rep_stores ? MEM_R : MEM_RW,
						     INLINE_ADD_U64, bytes, what->rep_width);
}

static void to_cpu(uint64_t pc)
{
	unsigned int before = cpu_now;

	if (!cpus_enter(pc, counting_is_open()))
		return;
	flow_to_cpu(cpu_now);
	counting_to_cpu(before, cpu_now);
}

static void enter_cb(unsigned int vcpu, void *block)
{
	to_cpu(((struct block *)block)->pc);
	flow_enter(vcpu, block);
}

static void instrument_accesses(struct qemu_plugin_insn *insn, struct block *b, uint32_t k)
{
	struct insn *what = &b->insns[k];

	if (what->kind == KIND_REP)
		add_rep_bytes(insn, what, b, &b->count[k][SLOT_TWO]);
	else if (what->kind == KIND_COND || what->tame || what->bare)
		return;
	else if (!lines_wanted() && !what->noted)
		add_on_access(insn, what, what->slots);
	if (lines_wanted())
		lines_instrument(insn, b, k);
	else
		touched_instrument(insn, what);
}

void instrument(struct qemu_plugin_tb *tb, struct block *b)
{
	if (lines_wanted())
		qemu_plugin_register_vcpu_tb_exec_cb(tb, enter_cb, CB_R_REGS, b);
	else
		qemu_plugin_register_vcpu_tb_exec_cb(tb, flow_enter, CB_NO_REGS, b);
	if (lines_wanted())
		lines_translate(tb, b);
	for (uint32_t i = 0; i < b->n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		struct insn *what = &b->insns[i];

		if (what->mark >> 12 == MARK_ASIDE)
			continue;
		if (what->kind == KIND_MARK) {
			qemu_plugin_register_vcpu_insn_exec_cb(insn, mark_counted, CB_NO_REGS,
							       what);
			continue;
		}
		if (what->kind == KIND_REP && b->n > 1)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, flow_rep_starts, CB_NO_REGS,
							       b);
		instrument_accesses(insn, b, i);
		if (i && (what->doubtful || !(what[-1].tame || what[-1].last)))
			add_on_start(insn, &b->count[i][SLOT_STARTS]);
		if (what->saves)
			qemu_plugin_register_vcpu_mem_cb(insn, counting_previous, CB_NO_REGS,
							 MEM_RW, NULL);
		if (what->switches)
			qemu_plugin_register_vcpu_mem_cb(insn, counting_next, CB_NO_REGS, MEM_RW,
							 NULL);
		if (what->enters)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, calls_said, CB_NO_REGS, NULL);
		if (what->halts)
			idle_instrument(insn);
		if (what->halts && lines_wanted())
			qemu_plugin_register_vcpu_insn_exec_cb(insn, mark_halts, CB_NO_REGS, NULL);
		if (hold_wanted()) {
			if (what->kind !=
			    KIND_REP) /* counted in flow.c, once and not by iteration */
				add_on_start(insn, &hold_executed);
			hold_instrument(insn, what->pc);
		}
	}
}

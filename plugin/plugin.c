/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts what a guest executes between two marks, per instruction address.
 *
 *   qemu-system-x86_64 -accel tcg -icount shift=0 -plugin FILE.so,out=PATH ...
 *
 * Marks and output: ARCHITECTURE.md. One vCPU; exact together with -icount.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "kdelta.h"
#include "qemu_api.h"

#define TB_MAX_INSNS 1024
#define INSN_MAX_BYTES 16
#define X86_INSN_MAX 15
#define PAGE_BYTES 4096

/* Read by QEMU before it installs the plugin. */
EXPORT int qemu_plugin_version;

__attribute__((constructor)) static void choose_version(void)
{
	if (!qemu_plugin_scoreboard_new)
		qemu_plugin_version = 1;
	else if (!qemu_plugin_register_vcpu_tb_exec_cond_cb)
		qemu_plugin_version = 2;
	else
		qemu_plugin_version = qemu_plugin_read_memory_vaddr ? 4 : 3;
}

static qemu_plugin_id_t self;
static struct decoded (*decode)(const uint8_t *bytes, size_t size, uint64_t pc);
static struct qemu_plugin_scoreboard *score;

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

static void check_entries(void)
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

static void add_on_start(struct qemu_plugin_insn *insn, uint64_t *counter)
{
	if (score)
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
	if (what->rep_accesses > 1)
		qemu_plugin_register_vcpu_mem_cb(insn, flow_rep_access, CB_NO_REGS, MEM_RW, b);
	else if (score)
		qemu_plugin_register_vcpu_mem_inline_per_vcpu(
			insn, what->rep_stores ? MEM_W : MEM_R, INLINE_ADD_U64, entry_of(bytes),
			what->rep_width);
	else /* see add_on_access(): "read" means stores; what makes none is asked for all it makes */
		qemu_plugin_register_vcpu_mem_inline(insn, what->rep_stores ? MEM_R : MEM_RW,
						     INLINE_ADD_U64, bytes, what->rep_width);
}

static size_t insn_bytes(const struct qemu_plugin_insn *insn, uint8_t *bytes)
{
	size_t size = qemu_plugin_insn_size(insn);

	if (size > INSN_MAX_BYTES)
		size = INSN_MAX_BYTES;
	if (qemu_plugin_version >= 3) {
		qemu_plugin_insn_data(insn, bytes, size);
	} else {
		const void *(*data)(const struct qemu_plugin_insn *) =
			(const void *(*)(const struct qemu_plugin_insn *))(
				void (*)(void))qemu_plugin_insn_data;

		memcpy(bytes, data(insn), size);
	}
	return size;
}

static uint64_t hash_bytes(uint64_t hash, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3;
	return hash;
}

/* FNV spreads into the high bits; the table uses the low ones. */
static uint64_t finish_hash(uint64_t hash)
{
	hash ^= hash >> 32;
	hash *= 0x9e3779b97f4a7c15;
	return hash ^ hash >> 29;
}

static void instrument(struct qemu_plugin_tb *tb, struct block *b)
{
	qemu_plugin_register_vcpu_tb_exec_cb(tb, flow_enter, CB_NO_REGS, b);
	for (uint32_t i = 0; i < b->n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		struct insn *what = &b->insns[i];

		switch (what->kind) {
		case KIND_MARK:
			qemu_plugin_register_vcpu_insn_exec_cb(insn, mark_counted, CB_NO_REGS,
							       what);
			continue;
		case KIND_REP:
			if (b->n > 1)
				qemu_plugin_register_vcpu_insn_exec_cb(insn, flow_rep_starts,
								       CB_NO_REGS, b);
			add_rep_bytes(insn, what, b, &b->count[i][SLOT_TWO]);
			break;
		case KIND_COND:
			break;
		default:
			if (!what->tame && !what->bare)
				add_on_access(insn, what, b->count[i]);
		}
		if (!i || !what[-1].tame || what->doubtful)
			add_on_start(insn, &b->count[i][SLOT_STARTS]);
		if (what->saves)
			qemu_plugin_register_vcpu_mem_cb(insn, counting_previous, CB_NO_REGS,
							 MEM_RW, NULL);
		if (what->switches)
			qemu_plugin_register_vcpu_mem_cb(insn, counting_next, CB_NO_REGS, MEM_RW,
							 NULL);
		if (what->enters)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, calls_said, CB_NO_REGS, NULL);
		if (hold_wanted()) {
			if (what->kind !=
			    KIND_REP) /* counted in flow.c, once and not by iteration */
				add_on_start(insn, &hold_executed);
			hold_instrument(insn, what->pc);
		}
	}
}

/*
 * An x86 instruction that crosses the end of a page is translated by itself. QEMU
 * 7.2 first tells of it as the last one of the block before, where it then is
 * not. If it is there after all, its counter of starts says so.
 */
static bool maybe_absent(uint64_t pc)
{
	return !score && decode == decode_x86 &&
	       (pc & (PAGE_BYTES - 1)) > PAGE_BYTES - X86_INSN_MAX;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	static struct insn insns[TB_MAX_INSNS];
	size_t n = qemu_plugin_tb_n_insns(tb);
	uint64_t pc = qemu_plugin_tb_vaddr(tb);
	uint64_t hash = pc * 0x9e3779b97f4a7c15, target = 0;
	struct block *b;

	(void)id;
	if (!n || n > TB_MAX_INSNS)
		return;
	check_entries();
	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint64_t at = qemu_plugin_insn_vaddr(insn);
		uint8_t bytes[INSN_MAX_BYTES];
		size_t size = insn_bytes(insn, bytes);
		struct decoded d = decode(bytes, size, at);

		hash = hash_bytes(hash, bytes, size);
		target = d.target;
		insns[i] = (struct insn){
			.pc = at,
			.size = (uint8_t)size,
			.kind = (uint8_t)d.kind,
			.mark = d.mark,
			.locked = d.locked,
			.no_loads = d.no_loads,
			.tame = d.tame,
			.bare = d.bare,
			.switches = d.switches && at >> 63,
			.saves = d.saves && at >> 63,
			.leaves = d.leaves,
			.enters = d.enters && !(at >> 63) && calls_wanted(),
			.pair = !score && d.pair,
			.doubtful = i && i + 1 == n && maybe_absent(at),
			.split = score || d.helper,
			.rep_stores = d.rep_stores,
			.rep_accesses = d.rep_accesses,
			.rep_width = d.rep_width,
		};
	}
	b = block_get(pc, insns, (uint32_t)n, finish_hash(hash), target);
	b->entry = calls_entry(pc);
	instrument(tb, b);
}

/* Before the guest says ARM: marks are followed, nothing is counted. */
static void translated_unarmed(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);

	(void)id;
	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint64_t at = qemu_plugin_insn_vaddr(insn);
		uint8_t bytes[INSN_MAX_BYTES];
		struct decoded d = decode(bytes, insn_bytes(insn, bytes), at);

		if (d.kind == KIND_MARK)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, mark_uncounted, CB_NO_REGS,
							       (void *)(uintptr_t)d.mark);
	}
}

static void finished(qemu_plugin_id_t id, void *udata)
{
	(void)id;
	(void)udata;
	output_close(marks_flags());
	hold_close();
}

/* All that was translated so far is dropped, and translated again with its counters. */
static void count_from_now(qemu_plugin_id_t id)
{
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, finished, NULL);
}

static void arm(void)
{
	qemu_plugin_reset(self, count_from_now);
}

/* Even a callback that does nothing makes QEMU's translation of a block half as long again. */
static void quiet(void)
{
	qemu_plugin_register_vcpu_tb_trans_cb(self, NULL);
}

static bool choose_guest(const qemu_info_t *info)
{
	if (!strcmp(info->target_name, "x86_64"))
		decode = decode_x86;
	else if (!strcmp(info->target_name, "aarch64"))
		decode = decode_arm64;
	if (!decode)
		fprintf(stderr, "kdelta plugin: no support for guests of type %s\n",
			info->target_name);
	else if (!info->system_emulation || info->system.smp_vcpus != 1)
		fprintf(stderr,
			"kdelta plugin: counts whole systems with one vCPU (-smp 1) only\n");
	else
		return true;
	return false;
}

struct options {
	const char *out, *sites, *holds, *entries;
	bool lazy;
};

static bool parse_options(struct options *o, int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "out=", 4)) {
			o->out = argv[i] + 4;
		} else if (!strncmp(argv[i], "sites=", 6)) {
			o->sites = argv[i] + 6;
		} else if (!strncmp(argv[i], "holds=", 6)) {
			o->holds = argv[i] + 6;
		} else if (!strncmp(argv[i], "entries=", 8)) {
			o->entries = argv[i] + 8;
		} else if (!strcmp(argv[i], "lazy=on")) {
			o->lazy = true;
		} else {
			fprintf(stderr,
				"kdelta plugin: unknown argument %s; there are out=PATH, "
				"lazy=on, entries=PATH, and sites=PATH with holds=PATH\n",
				argv[i]);
			return false;
		}
	}
	if (!o->out || !*o->out)
		fprintf(stderr, "kdelta plugin: the argument out=PATH is missing\n");
	else if (!o->sites != !o->holds)
		fprintf(stderr, "kdelta plugin: sites=PATH and holds=PATH go together\n");
	else
		return true;
	return false;
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
	struct options o = {0};

	if (!parse_options(&o, argc, argv) || !choose_guest(info) ||
	    !output_open(o.out, info->target_name, info->version.cur))
		return -1;
	if ((o.sites && !hold_open(o.sites, o.holds)) || (o.entries && !calls_open(o.entries)))
		return -1;
	if (qemu_plugin_scoreboard_new)
		score = qemu_plugin_scoreboard_new(sizeof(uint64_t));
	self = id;
	marks_translate_with(arm, quiet);
	if (o.lazy) {
		qemu_plugin_register_vcpu_tb_trans_cb(id, translated_unarmed);
		qemu_plugin_register_atexit_cb(id, finished, NULL);
	} else {
		count_from_now(id);
	}
	return 0;
}

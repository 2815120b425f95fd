/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts what a guest executes between two marks, per instruction address.
 *
 *   qemu-system-x86_64 -accel tcg -icount shift=0 -plugin FILE.so,out=PATH ...
 *
 * Marks and output: ARCHITECTURE.md. One vCPU; exact together with -icount.
 * Several with lines=PATH, then with all counters in callbacks: an inline one
 * would add where QEMU's number of the CPU says (see cpus.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "callers.h"
#include "coherence.h"
#include "instrument.h"
#include "kdelta.h"
#include "qemu_api.h"
#include "stacks.h"
#include "values.h"

#define TB_MAX_INSNS 1024
#define INSN_MAX_BYTES 16
#define X86_INSN_MAX 15
#define PAGE_BYTES 4096

static qemu_plugin_id_t self;
static struct decoded (*decode)(const uint8_t *bytes, size_t size, uint64_t pc);

static size_t insn_bytes(const struct qemu_plugin_insn *insn, uint8_t *bytes)
{
	size_t size = qemu_plugin_insn_size(insn);

	if (size > INSN_MAX_BYTES)
		size = INSN_MAX_BYTES;
	if (insn_data_copies()) {
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

/*
 * An x86 instruction that crosses the end of a page is translated by itself. QEMU
 * 7.2 first tells of it as the last one of the block before, where it then is
 * not. If it is there after all, its counter of starts says so.
 */
static bool maybe_absent(uint64_t pc)
{
	return !qemu_plugin_scoreboard_new && decode == decode_x86 &&
	       (pc & (PAGE_BYTES - 1)) > PAGE_BYTES - X86_INSN_MAX;
}

static void translated(struct qemu_plugin_tb *tb)
{
	static struct insn insns[TB_MAX_INSNS];
	size_t n = qemu_plugin_tb_n_insns(tb);
	uint64_t pc = qemu_plugin_tb_vaddr(tb);
	uint64_t hash = pc * 0x9e3779b97f4a7c15, target = 0;
	struct block *b;

	if (!n || n > TB_MAX_INSNS)
		return;
	instrument_check();
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
			.last = lines_wanted() ? LAST_UNKNOWN : (uint8_t)d.last,
			.locked = d.locked,
			.no_loads = d.no_loads,
			.tame = d.tame,
			.bare = d.bare,
			.switches = d.switches && at >> 63,
			.halts = d.halts && at >> 63,
			.leaves = d.leaves,
			.calls = d.calls,
			.returns = d.returns,
			.enters = d.enters && !(at >> 63) && calls_wanted(),
			.saves = d.saves && at >> 63,
			.pair = !qemu_plugin_scoreboard_new && d.pair,
			.doubtful = i && i + 1 == n && maybe_absent(at),
			.split = qemu_plugin_scoreboard_new || d.helper || lines_wanted(),
			.noted = !qemu_plugin_scoreboard_new && at >> 63 && i + 1 < n,
			.rep_stores = d.rep_stores,
			.rep_accesses = d.rep_accesses,
			.rep_width = d.rep_width,
			.values = lines_wanted() && at >> 63 ? x86_values(bytes, size)
							     : (struct values){0},
		};
	}
	b = block_get(pc, insns, (uint32_t)n, finish_hash(hash), target);
	b->entry = calls_entry(pc);
	b->listed = callers_listed(pc);
	functions_place(b);
	instrument(tb, b);
}

/*
 * Without lazy=on: a guest that becomes many has most of what they need translated
 * before they part, with its counters, and nothing of it is dropped.
 */
static bool all_along;

static bool wants_quiet;

/*
 * Even a callback that does nothing makes QEMU's translation of a block half as
 * long again. On several CPUs it stays: the end of a turn cuts blocks anywhere, so
 * ARM might be in one that is new. So it does on arm64, where the same code is
 * translated once for tasks that hold the FPU and once for others. And until the
 * kernel has once had nothing to do: idle.c.
 */
static void quiet(void)
{
	if (all_along || lines_wanted() || decode != decode_x86)
		return;
	wants_quiet = !idle_is_translated();
	if (!wants_quiet)
		on_translation(self, NULL);
}

/* Before the guest says ARM: marks are followed, nothing is counted. */
static void translated_unarmed(struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);

	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint64_t at = qemu_plugin_insn_vaddr(insn);
		uint8_t bytes[INSN_MAX_BYTES];
		struct decoded d = decode(bytes, insn_bytes(insn, bytes), at);

		if (d.kind == KIND_MARK && d.mark >> 12 != MARK_ASIDE)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, mark_uncounted, CB_NO_REGS,
							       (void *)(uintptr_t)d.mark);
		if (d.halts && at >> 63)
			idle_instrument(insn);
	}
	if (wants_quiet)
		quiet();
}

static void stop_cb(unsigned int vcpu, void *unused)
{
	(void)vcpu;
	(void)unused;
	stop_here();
}

/* Whether it is STOP, in user space. */
static void stop_instrument(struct qemu_plugin_insn *insn)
{
	uint8_t bytes[INSN_MAX_BYTES];
	struct decoded d = decode(bytes, insn_bytes(insn, bytes), qemu_plugin_insn_vaddr(insn));

	if (d.mark >> 12 == MARK_STOP)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, stop_cb, CB_NO_REGS, NULL);
}

/*
 * A boot for a snapshot: nothing is counted, only its clock is kept (idle.c), and it is stopped (stop.c). All that
 * halts ends its block.
 */
static void translated_uncounted(struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);
	uint8_t bytes[INSN_MAX_BYTES];
	struct qemu_plugin_insn *last;
	uint64_t at;

	if (!n)
		return;
	last = qemu_plugin_tb_get_insn(tb, n - 1);
	at = qemu_plugin_insn_vaddr(last);
	if (at >> 63 && decode(bytes, insn_bytes(last, bytes), at).halts)
		idle_instrument(last);
	for (size_t i = 0; !(at >> 63) && i < n; i++)
		stop_instrument(qemu_plugin_tb_get_insn(tb, i));
}

static void finished(void)
{
	output_close(marks_flags());
	hold_close();
	lines_close();
	serve_ended();
}

/* All that was translated so far is dropped, and translated again with its counters. */
static void count_from_now(void)
{
	on_translation(self, translated);
	on_exit_of_qemu(self, finished);
}

static void arm(void)
{
	wants_quiet = false;
	if (!all_along)
		on_reset(self, count_from_now);
}

static bool choose_guest(const qemu_info_t *info, bool uncounted, bool several)
{
	if (!strcmp(info->target_name, "x86_64"))
		decode = decode_x86;
	else if (!strcmp(info->target_name, "aarch64"))
		decode = decode_arm64;
	if (!decode)
		fprintf(stderr, "kdelta plugin: no support for guests of type %s\n",
			info->target_name);
	else if (uncounted)
		return true;
	else if (several && (decode != decode_x86 || info->system.smp_vcpus > CPUS_MAX))
		fprintf(stderr,
			"kdelta plugin: follows lines of x86_64 guests of at most %d CPUs\n",
			CPUS_MAX);
	else if (!info->system_emulation || (info->system.smp_vcpus != 1 && !several))
		fprintf(stderr,
			"kdelta plugin: counts whole systems with one vCPU (-smp 1) only\n");
	else
		return true;
	return false;
}

struct options {
	const char *out, *sites, *holds, *lines, *entries, *functions, *kernel, *serve, *order,
		*period;
	bool lazy, uncounted;
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
		} else if (!strncmp(argv[i], "lines=", 6)) {
			o->lines = argv[i] + 6;
		} else if (!strncmp(argv[i], "entries=", 8)) {
			o->entries = argv[i] + 8;
		} else if (!strncmp(argv[i], "functions=", 10)) {
			o->functions = argv[i] + 10;
		} else if (!strncmp(argv[i], "kernel=", 7)) {
			o->kernel = argv[i] + 7;
		} else if (!strncmp(argv[i], "period=", 7)) {
			o->period = argv[i] + 7;
		} else if (!strncmp(argv[i], "serve=", 6)) {
			o->serve = argv[i] + 6;
		} else if (!strncmp(argv[i], "order=", 6)) {
			o->order = argv[i] + 6;
		} else if (!strcmp(argv[i], "lazy=on")) {
			o->lazy = true;
		} else if (!strcmp(argv[i], "counted=off")) {
			o->uncounted = true;
		} else {
			fprintf(stderr,
				"kdelta plugin: unknown argument %s; there are out=PATH, "
				"lazy=on, entries=PATH with functions=PATH, lines=PATH with "
				"kernel=PATH and period=NS, order=PATH or serve=FD, "
				"sites=PATH with holds=PATH, and counted=off alone\n",
				argv[i]);
			return false;
		}
	}
	if (o->uncounted && argc > 1)
		fprintf(stderr, "kdelta plugin: counted=off goes with no other argument\n");
	else if (!o->uncounted && (!o->out || !*o->out))
		fprintf(stderr, "kdelta plugin: the argument out=PATH is missing\n");
	else if (!o->sites != !o->holds)
		fprintf(stderr, "kdelta plugin: sites=PATH and holds=PATH go together\n");
	else if ((o->kernel || o->period) && !o->lines)
		fprintf(stderr, "kdelta plugin: kernel=PATH and period=NS take lines=PATH\n");
	else if (o->functions && !o->entries)
		fprintf(stderr, "kdelta plugin: functions=PATH takes entries=PATH\n");
	else if (o->lines && (o->sites || o->entries))
		fprintf(stderr, "kdelta plugin: lines=PATH excludes sites=PATH and entries=PATH\n");
	else
		return true;
	return false;
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
	struct options o = {0};

	if (!parse_options(&o, argc, argv) || !choose_guest(info, o.uncounted, o.lines))
		return -1;
	if (o.uncounted) {
		idle_open();
		stop_open();
		on_translation(id, translated_uncounted);
		return 0;
	}
	if (!output_open(o.out, info->target_name, info->version.cur))
		return -1;
	if ((o.sites && !hold_open(o.sites, o.holds)) || (o.entries && !calls_open(o.entries)) ||
	    (o.functions && !functions_read(o.functions)))
		return -1;
	if (o.lines) {
		if (!cpus_open(id, (unsigned int)info->system.smp_vcpus) || !lines_open(o.lines) ||
		    (o.kernel && !guest_facts_read(o.kernel)))
			return -1;
		if (o.period)
			turns_open(o.period);
		blocks_touch_no_singles();
	}
	instrument_open();
	idle_open();
	self = id;
	marks_translate_with(arm, quiet);
	if ((o.order && !order_open(o.order)) || (o.serve && !serve_open(atoi(o.serve), o.out)))
		return -1;
	if (o.lazy) {
		on_translation(id, translated_unarmed);
		on_exit_of_qemu(id, finished);
	} else {
		all_along = true;
		count_from_now();
	}
	return 0;
}

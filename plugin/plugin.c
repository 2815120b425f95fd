/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts what a guest executes between two marks, per instruction address.
 *
 *   qemu-system-x86_64 -accel tcg -icount shift=0 -plugin FILE.so,out=PATH ...
 *
 * Marks and output: ARCHITECTURE.md. One vCPU; exact together with -icount.
 */
#include <pthread.h>
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

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct decoded (*decode)(const uint8_t *bytes, size_t size, uint64_t pc);
static struct qemu_plugin_scoreboard *score;

/* In the trailer of the output. */
enum { FLAG_OPEN = 1, FLAG_ABANDONED = 2, FLAG_BLIND = 4 };

static struct {
	bool abandoned;
	bool blind; /* one was opened for others, and no task switch had ever been seen */
	uint32_t id, next_id;
} interval;

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

static void begin(bool for_others)
{
	interval.abandoned |= counting_is_open();
	blocks_drop_sums();
	interval.id = interval.next_id;
	interval.next_id = 0;
	interval.blind |= !counting_open(for_others);
	hold_begin();
}

static void end(void)
{
	struct record *records;
	size_t n;

	if (!counting_close())
		return;
	hold_end(interval.id);
	n = interval_records(&records);
	output_interval(interval.id, records, n);
	blocks_drop_sums();
}

/*
 * The block that holds the mark has counted what precedes the mark, and will
 * count what follows: the counters start from zero in between, and the mark
 * itself is where the rows of that block are cut (see add_insn()).
 */
static void mark_cb(unsigned int vcpu, void *udata)
{
	const struct insn *insn = udata;
	struct block *b = flow_current();
	uint16_t mark = insn->mark;
	bool arg = mark & 1;

	(void)vcpu;
	pthread_mutex_lock(&lock);
	b->count[insn - b->insns]
		[SLOT_STARTS]++; /* here, so that it falls on the side of what precedes the mark */
	counting_cut();
	switch (mark >> 12) {
	case MARK_BEGIN:
		begin(arg);
		break;
	case MARK_END:
		end();
		break;
	case MARK_PAUSE:
		counting_pause(arg);
		break;
	case MARK_RESUME:
		counting_resume();
		break;
	case MARK_NIBBLE:
		interval.next_id = interval.next_id << 4 | (mark & 0xf);
		break;
	case MARK_FORGET:
		counting_forget();
		break;
	default:
		break;
	}
	block_touch(b);
	pthread_mutex_unlock(&lock);
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
			qemu_plugin_register_vcpu_insn_exec_cb(insn, mark_cb, CB_NO_REGS, what);
			continue;
		case KIND_REP:
			if (b->n > 1)
				qemu_plugin_register_vcpu_insn_exec_cb(insn, flow_rep_starts,
								       CB_NO_REGS, b);
			qemu_plugin_register_vcpu_mem_cb(insn, flow_rep_access, CB_NO_REGS, MEM_RW,
							 b);
			break;
		case KIND_COND:
			break;
		default:
			if (!what->tame && !what->bare)
				add_on_access(insn, what, b->count[i]);
		}
		if (!i || !what[-1].tame || what->doubtful)
			add_on_start(insn, &b->count[i][SLOT_STARTS]);
		if (what->switches)
			qemu_plugin_register_vcpu_mem_cb(insn, counting_next, CB_NO_REGS, MEM_RW,
							 NULL);
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

	(void)id;
	if (!n || n > TB_MAX_INSNS)
		return;
	pthread_mutex_lock(&lock);
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
			.pair = !score && d.pair,
			.doubtful = i && i + 1 == n && maybe_absent(at),
			.split = score || d.helper,
			.rep_stores = d.rep_stores,
			.rep_accesses = d.rep_accesses,
			.rep_width = d.rep_width,
		};
	}
	instrument(tb, block_get(pc, insns, (uint32_t)n, finish_hash(hash), target));
	pthread_mutex_unlock(&lock);
}

static void finished(qemu_plugin_id_t id, void *udata)
{
	(void)id;
	(void)udata;
	pthread_mutex_lock(&lock);
	output_close((counting_is_open() ? FLAG_OPEN : 0) |
		     (interval.abandoned ? FLAG_ABANDONED : 0) | (interval.blind ? FLAG_BLIND : 0));
	hold_close();
	pthread_mutex_unlock(&lock);
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

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
	const char *out = NULL, *sites = NULL, *holds = NULL;

	for (int i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "out=", 4)) {
			out = argv[i] + 4;
		} else if (!strncmp(argv[i], "sites=", 6)) {
			sites = argv[i] + 6;
		} else if (!strncmp(argv[i], "holds=", 6)) {
			holds = argv[i] + 6;
		} else {
			fprintf(stderr,
				"kdelta plugin: unknown argument %s; there are out=PATH, and "
				"sites=PATH with holds=PATH\n",
				argv[i]);
			return -1;
		}
	}
	if (!out || !*out) {
		fprintf(stderr, "kdelta plugin: the argument out=PATH is missing\n");
		return -1;
	}
	if (!sites != !holds) {
		fprintf(stderr, "kdelta plugin: sites=PATH and holds=PATH go together\n");
		return -1;
	}
	if (!choose_guest(info) || !output_open(out, info->target_name, info->version.cur))
		return -1;
	if (sites && !hold_open(sites, holds))
		return -1;
	if (qemu_plugin_scoreboard_new)
		score = qemu_plugin_scoreboard_new(sizeof(uint64_t));
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, finished, NULL);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parts of the counting plugin and how they fit:
 *
 *   decode.c    bytes of an instruction -> what kind it is
 *   blocks.c    blocks of translated code with their counters; which ran since the last mark (blocks.h)
 *   memory.c    memory or the end
 *   counting.c  whose instructions count: tasks, pauses
 *   flow.c      from block to block: taken branches, executions of REP instructions
 *   interval.c  counters of the blocks that ran -> one record per address
 *   cpus.c      which CPU runs
 *   coherence.c cache lines that move between CPUs (coherence.h); lines_output.c writes them
 *   sequences.c reads under sequence counters that were in vain (sequences.h); values.c follows their values
 *   callers.c   for whom a lock function runs, and how often each is entered (callers.h)
 *   slabs.c     which slab cache an address belongs to (slabs.h)
 *   guest_facts.c what the host knows of the guest's kernel
 *   touched.c   distinct cache lines of data, on one CPU
 *   table.c     a hash table
 *   stop.c      where a machine of several CPUs stops, to be kept
 *   idle.c      what a CPU executed is on QEMU's clock before it halts
 *   hold.c      instructions while locks are held
 *   entries.c   where the kernel is entered, as the host lists it
 *   calls.c     kernel instructions by system call
 *   stacks.c    and by call stack (stacks.h); functions.c where functions start, as the host lists it
 *   output.c    header, intervals, trailer
 *   marks.c     what the guest says; begin and end of an interval
 *   instrument.c what QEMU is asked to do for each instruction
 *   versions.c  what QEMU's versions do differently
 *   plugin.c    QEMU's side: install, translate
 */
#ifndef KDELTA_PLUGIN_H
#define KDELTA_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CPUS_MAX 64

enum mark_op {
	MARK_BEGIN = 1,
	MARK_END,
	MARK_PAUSE,
	MARK_RESUME,
	MARK_NIBBLE,
	MARK_EPOCH,
	MARK_FORGET,
	MARK_ARM,
	MARK_QUIET,
	MARK_ORDER,
	MARK_REHEARSE,
	MARK_STOP,
	MARK_ASIDE
};

enum insn_kind {
	KIND_PLAIN,
	KIND_COND, /* conditional branch with a static target */
	KIND_REP,  /* x86 string instruction with a REP prefix */
	KIND_IRET, /* return from an interrupt or exception */
	KIND_MARK,
};

/* Which of its accesses an instruction makes last: once that is made, the next instruction starts. */
enum last_access {
	LAST_UNKNOWN, /* none, several alike, or more can go wrong after it */
	LAST_LOAD,    /* its only access */
	LAST_STORE,
};

struct decoded {
	enum insn_kind kind;
	bool no_loads; /* what QEMU loads for it the guest does not (store-exclusive) */
	bool locked;   /* atomic read-modify-write */
	bool tame;     /* certain to reach the next instruction, without accesses */
	bool bare;     /* ends a block and makes no access */
	enum last_access last;
	bool pair;     /* 16 bytes that QEMU 7.2 accesses in two halves (cmpxchg16b) */
	bool switches; /* takes the stack pointer of the next task: the kernel's task switch */
	bool halts;    /* waits for an interrupt: only an idle CPU's task does */
	bool saves;    /* keeps that of the previous one */
	bool leaves;   /* returns from the kernel: iret, sysret */
	bool enters;   /* asks the kernel for a system call */
	bool calls;    /* the next instruction is where what it leads to returns */
	bool returns;
	bool helper;	      /* QEMU executes its accesses in a helper, not in generated code */
	bool rep_stores;      /* KIND_REP: its iterations show as stores, else as loads */
	uint8_t rep_accesses; /* KIND_REP: such accesses in one iteration */
	uint8_t rep_width;    /* KIND_REP: bytes that one iteration moves or compares */
	uint16_t mark;	      /* KIND_MARK: op << 12 | arg */
	uint64_t target;      /* KIND_COND, and jumps whose address the instruction holds */
};

struct decoded decode_x86(const uint8_t *bytes, size_t size, uint64_t pc);
struct decoded decode_arm64(const uint8_t *bytes, size_t size, uint64_t pc);

struct block;

/* memory.c: zeroed; running out of it ends QEMU with a message. */
void *xalloc(size_t n, size_t size);

/* counting.c */
/* Opens an interval for the calling task, or for others alone; false where tasks cannot be told apart. */
bool counting_open(bool for_others);
bool counting_close(void); /* false: none was open */
bool counting_is_open(void);
void counting_pause(bool alone); /* the calling task alone, or with all that never said a mark */
void counting_resume(void);
void counting_forget(
	void); /* what tasks have said: they may be gone, and their addresses used again */
/* No task is known any more, not even the one that runs: its switches were not followed. */
void counting_start_over(void);
void counting_cut(void); /* what has run goes where it belongs; counters to zero */
void counting_next(unsigned int vcpu, uint32_t info, uint64_t vaddr, void *udata); /* callbacks */
void counting_previous(unsigned int vcpu, uint32_t info, uint64_t vaddr, void *udata);
extern bool counting_switched; /* the next block is another task's */
uint64_t
counting_switch(void);	 /* 0, or the name that the task has now which was nameless until it left */
bool counting_now(void); /* what runs counts */
uint64_t counting_task(void); /* which task runs */
/* The running task is what its CPU runs when it has nothing to do: it never counts. */
void counting_idle(void);
void counting_to_cpu(unsigned int from, unsigned int to);

/* cpus.c: with one CPU, none but the number 0. */
extern unsigned int cpu_now; /* below CPUS_MAX, in the order of their first appearance */
bool cpus_open(uint64_t plugin, unsigned int n);
/* At a callback with registers at pc, inside an interval or not: true where another CPU runs than before. */
bool cpus_enter(uint64_t pc, bool counts);
unsigned int cpus_number(void);
uint64_t cpu_base(unsigned int n); /* of its per-CPU area; 0: it never ran */
uint32_t cpus_strangers(void);
/* The lower half of a general register of the CPU that runs, by its number in machine code; at callbacks with registers. */
uint32_t cpu_register(unsigned int number);

/* flow.c */
void flow_enter(unsigned int vcpu, void *block); /* callback: a block starts */
void flow_rep_starts(unsigned int vcpu,
		     void *block); /* callback: a REP that is not first in its block starts */
void flow_rep_access(unsigned int vcpu, uint32_t info, uint64_t vaddr, void *block);
struct block *flow_current(void);
void flow_to_cpu(unsigned int n);

/* interval.c, output.c */
enum { COUNTERS = 7 };
struct record {
	uint64_t pc;
	uint64_t c[COUNTERS];
};
/* What one system call, or one kind of interrupts, came to. */
struct call_record {
	uint64_t row, calls;
	int64_t instructions;
	uint64_t rep_bytes;
};
/* Cache lines of data that this instruction was the first to touch. */
struct touched_record {
	uint64_t pc, lines, zero;
};
/* A function under those that called it; the first record is the root, which nobody called. */
struct stack_record {
	uint64_t parent; /* its place among the records, before this one */
	uint64_t function;
	int64_t instructions; /* of the function itself */
	uint64_t calls;	      /* root: what did not fit, see stacks.c */
};
size_t interval_records(struct record **records); /* sorted by pc; valid until the next call */
/* A file written in sections; the first failure is told, and nothing is written after it. */
struct sink {
	FILE *file;
	bool failed;
};
bool sink_open(struct sink *s, const char *path);
bool sink_put(struct sink *s, const void *data, size_t size);
bool sink_flush(struct sink *s);
void sink_close(struct sink *s);
/* CRC-32 as in zlib (IEEE 802.3, reflected): of what gave `crc`, continued; 0 begins. */
uint32_t crc32(uint32_t crc, const void *data, size_t size);
bool output_open(const char *path, const char *target, int qemu_api);
void output_interval(uint32_t id, const struct record *records, size_t n);
void output_calls(uint32_t id, const struct call_record *records, size_t n);
void output_touched(uint32_t id, const struct touched_record *records, size_t n);
void output_stacks(uint32_t id, const struct stack_record *records, size_t n);
void output_close(uint32_t flags);

/* marks.c: callbacks; insn is a struct insn, mark its 16 bits. */
void mark_counted(unsigned int vcpu, void *insn);
void mark_uncounted(unsigned int vcpu, void *mark);
void mark_halts(unsigned int vcpu, void *unused);
/* What ARM does, said after QUIET, and what QUIET does. */
void marks_translate_with(void (*arm)(void), void (*quiet)(void));
uint32_t marks_flags(void);

/* calls.c, entries.c: do nothing unless calls_open() was called. */
bool calls_open(const char *path);
bool calls_wanted(void);
uint32_t calls_entry(uint64_t pc); /* of a block that starts there: for calls_enter(), or 0 */
void calls_said(unsigned int vcpu, void *udata); /* callback: a system call instruction starts */
void calls_leave(struct block *left);		 /* before the switch of tasks that may follow it */
void calls_enter(struct block *left, const struct block *b, bool goes_on);
/* The task that runs is known by its own name from now on. */
void calls_rename(uint64_t id);
void calls_start_over(void); /* as counting_start_over() */
void calls_begin(void);
void calls_end(uint32_t id);

/* touched.c: on one CPU. */
struct insn;
struct qemu_plugin_insn;
/* Of an instruction that is `noted` its loads and stores are counted too. */
void touched_instrument(struct qemu_plugin_insn *insn, struct insn *what);
void touched_begin(void);
void touched_end(uint32_t id);

/* guest_facts.c: false: with a message, it is no such file. */
bool guest_facts_read(const char *path);

/* hold.c: does nothing unless hold_open() was called. */
extern uint64_t hold_executed; /* instructions started, a REP once */
bool hold_open(const char *in_path, const char *out_path);
bool hold_wanted(void);
void hold_instrument(struct qemu_plugin_insn *insn, uint64_t pc);
void hold_begin(void);
void hold_end(uint32_t id);
void hold_close(void);

/* stop.c */
void stop_open(void);
void stop_here(void); /* the machine stops */

/* turns.c: does nothing unless turns_open() was called. */
void turns_open(const char *period_ns);
void turns_check(void);
bool turns_were_long(void); /* once at least */

/* idle.c */
void idle_open(void);
void idle_instrument(struct qemu_plugin_insn *insn); /* one that halts */
bool idle_is_translated(void);			     /* such a one was */

/* serve.c */
bool order_open(const char *path);
bool serve_open(int fd, const char *out);
void order_mark(bool seed);
/* In a child: all is written, and the process ends. */
void serve_ended(void);

/* seccomp.c: what the process may do from then on */
bool forks_only(void);
bool threads_only(void);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The part of QEMU's plugin interface that is used here, declared by hand so
 * that one shared object loads in QEMU 7.2 (interface 1) and from 9.0 on
 * (interface 2 and later, where inline operations act on scoreboards), but for
 * 11.0: versions.c.
 * What only some versions have is weak: absent functions have address NULL.
 * Documented in QEMU's docs/devel/tcg-plugins.rst and include/qemu/qemu-plugin.h.
 */
#ifndef KDELTA_QEMU_API_H
#define KDELTA_QEMU_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
#define WEAK __attribute__((weak))

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_scoreboard;
struct qemu_plugin_register;
struct qemu_plugin_hwaddr;

typedef struct {
	struct qemu_plugin_scoreboard *score;
	size_t offset;
} qemu_plugin_u64;

typedef struct qemu_info_t {
	const char *target_name;
	struct {
		int min;
		int cur;
	} version;
	bool system_emulation;
	struct {
		int smp_vcpus;
		int max_vcpus;
	} system;
} qemu_info_t;

enum { CB_NO_REGS = 0, CB_R_REGS = 1 };
enum { MEM_R = 1, MEM_W = 2, MEM_RW = 3 };
enum { INLINE_ADD_U64 = 0 };

typedef void (*vcpu_udata_cb)(unsigned int vcpu, void *udata);
typedef void (*vcpu_mem_cb)(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr,
			    void *udata);

/* Their callbacks have other arguments from interface 7 on, and data for them then: versions.c. */
typedef void (*any_cb)(void);
void qemu_plugin_reset(qemu_plugin_id_t id, any_cb cb, void *udata);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, any_cb cb, void *udata);
void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t id, any_cb cb, void *udata);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, any_cb cb, void *udata);

void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, vcpu_udata_cb cb, int flags,
					  void *udata);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, vcpu_udata_cb cb,
					    int flags, void *udata);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, vcpu_mem_cb cb, int flags,
				      int rw, void *udata);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);
unsigned int qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info);

struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info, uint64_t vaddr);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *hwaddr);

/* Up to interface 2 it takes one argument and returns a pointer; from 3 on it copies. See insn_bytes(). */
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *dest, size_t size);

/* Interface 0 and 1. */
WEAK void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn, int op,
						     void *ptr, uint64_t imm);
WEAK void qemu_plugin_register_vcpu_mem_inline(struct qemu_plugin_insn *insn, int rw, int op,
					       void *ptr, uint64_t imm);

/* Interface 2. */
WEAK struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t element_size);
WEAK void *qemu_plugin_scoreboard_find(struct qemu_plugin_scoreboard *score, unsigned int vcpu);
WEAK uint64_t qemu_plugin_u64_get(qemu_plugin_u64 entry, unsigned int vcpu);
WEAK void qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(struct qemu_plugin_insn *insn, int op,
							      qemu_plugin_u64 entry, uint64_t imm);
WEAK void qemu_plugin_register_vcpu_mem_inline_per_vcpu(struct qemu_plugin_insn *insn, int rw,
							int op, qemu_plugin_u64 entry,
							uint64_t imm);

/* Also from QEMU 9.0 on; the arrays are GLib's, which QEMU is linked with. */
typedef struct {
	uint8_t *data;
	unsigned int len;
} GByteArray;
typedef struct {
	char *data;
	unsigned int len;
} GArray;
typedef struct {
	struct qemu_plugin_register *handle;
	const char *name, *feature;
} qemu_plugin_reg_descriptor;
WEAK GArray *qemu_plugin_get_registers(void);
WEAK int qemu_plugin_read_register(struct qemu_plugin_register *handle, GByteArray *value);
GByteArray *g_byte_array_new(void);
GByteArray *g_byte_array_set_size(GByteArray *array, unsigned int size);
unsigned int g_array_get_element_size(GArray *array);
char *g_array_free(GArray *array, int with_data);

/* Only looked for: first in interface 3. */
WEAK void qemu_plugin_register_vcpu_tb_exec_cond_cb(void);

/* First in interface 4: of the CPU that runs, by its page tables. */
WEAK bool qemu_plugin_read_memory_vaddr(uint64_t addr, GByteArray *data, size_t len);

/* Only looked for: first in interface 6. */
WEAK void qemu_plugin_set_pc(void);

/* Likewise from 4 on: what an access loaded or stored, of as many bytes as it has. */
typedef struct {
	int type;
	union {
		uint32_t u32;
		struct {
			uint64_t low, high;
		} u128;
	} data;
} qemu_plugin_mem_value;
WEAK qemu_plugin_mem_value qemu_plugin_mem_get_value(qemu_plugin_meminfo_t info);

/* versions.c: the same callbacks whatever QEMU's version. */
/* One that QEMU exports, by the name it has or by one that it had (NULL: none); NULL where it is not there. */
void *qemu_function(const char *now, const char *before);
bool insn_data_copies(void);
void on_translation(qemu_plugin_id_t id, void (*cb)(struct qemu_plugin_tb *tb));
void on_exit_of_qemu(qemu_plugin_id_t id, void (*cb)(void));
void on_cpu(qemu_plugin_id_t id, void (*cb)(void));
void on_reset(qemu_plugin_id_t id, void (*cb)(void));

#endif

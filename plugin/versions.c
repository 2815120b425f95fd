/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What QEMU's versions do differently: the interface that the plugin asks for,
 * and callbacks. Up to interface 6 most get the plugin's number first; from 7
 * on (QEMU 11.1) none does, and each gets the user data that it was registered
 * with last. The functions that register take the data from 7 on; the older
 * ones never look at an argument more.
 */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "qemu_api.h"

#define INTERFACE_USERDATA 7

/* Read by QEMU before it installs the plugin. */
EXPORT int qemu_plugin_version;

/* QEMU 11.0 has interface 6 and nothing to be told by from 7 (11.1): it is asked for the wrong one, and refuses. */
__attribute__((constructor)) static void choose_version(void)
{
	if (!qemu_plugin_scoreboard_new)
		qemu_plugin_version = 1;
	else if (!qemu_plugin_register_vcpu_tb_exec_cond_cb)
		qemu_plugin_version = 2;
	else if (!qemu_plugin_read_memory_vaddr)
		qemu_plugin_version = 3;
	else
		qemu_plugin_version = qemu_plugin_set_pc ? INTERFACE_USERDATA : 4;
}

void *qemu_function(const char *now, const char *before)
{
	void *found = dlsym(RTLD_DEFAULT, now);

	return found || !before ? found : dlsym(RTLD_DEFAULT, before);
}

bool insn_data_copies(void)
{
	return qemu_plugin_version >= 3;
}

static void (*translates)(struct qemu_plugin_tb *tb);
static void (*exits)(void);
static void (*starts)(void);
static void (*resets)(void);

static void translated(struct qemu_plugin_tb *tb, void *udata)
{
	(void)udata;
	translates(tb);
}

static void translated_by_id(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	(void)id;
	translates(tb);
}

static void exited(void *udata)
{
	(void)udata;
	exits();
}

static void exited_by_id(qemu_plugin_id_t id, void *udata)
{
	(void)id;
	(void)udata;
	exits();
}

static void started(unsigned int vcpu, void *udata)
{
	(void)vcpu;
	(void)udata;
	starts();
}

static void started_by_id(qemu_plugin_id_t id, unsigned int vcpu)
{
	(void)id;
	(void)vcpu;
	starts();
}

static void was_reset(void *udata)
{
	(void)udata;
	resets();
}

static void was_reset_by_id(qemu_plugin_id_t id)
{
	(void)id;
	resets();
}

#define FOR_QEMU(now, by_id) \
	(qemu_plugin_version >= INTERFACE_USERDATA ? (any_cb)(now) : (any_cb)(by_id))

void on_translation(qemu_plugin_id_t id, void (*cb)(struct qemu_plugin_tb *tb))
{
	translates = cb;
	qemu_plugin_register_vcpu_tb_trans_cb(
		id, cb ? FOR_QEMU(translated, translated_by_id) : NULL, NULL);
}

void on_exit_of_qemu(qemu_plugin_id_t id, void (*cb)(void))
{
	exits = cb;
	qemu_plugin_register_atexit_cb(id, FOR_QEMU(exited, exited_by_id), NULL);
}

void on_cpu(qemu_plugin_id_t id, void (*cb)(void))
{
	starts = cb;
	qemu_plugin_register_vcpu_init_cb(id, FOR_QEMU(started, started_by_id), NULL);
}

void on_reset(qemu_plugin_id_t id, void (*cb)(void))
{
	resets = cb;
	qemu_plugin_reset(id, FOR_QEMU(was_reset, was_reset_by_id), NULL);
}

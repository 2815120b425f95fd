# SPDX-License-Identifier: GPL-2.0-or-later
"""plugin/versions.c against both forms of QEMU's plugin interface, declared as QEMU declares them.

The installed QEMU has one of them; that of another release is played by a program, so that its arguments are tried.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kdelta.machine import plugin
from kdelta.paths import shipped

_HOST = r"""
#include <stdint.h>
#include <stdio.h>

extern int qemu_plugin_version;
struct qemu_plugin_tb { int number; };
static int word;
static void *const DATA = &word;

void qemu_plugin_scoreboard_new(void) {}
void qemu_plugin_register_vcpu_tb_exec_cond_cb(void) {}
void qemu_plugin_read_memory_vaddr(void) {}
#if INTERFACE >= 7
void qemu_plugin_set_pc(void) {}
typedef void (*simple)(void *), (*cpu)(unsigned, void *), (*trans)(struct qemu_plugin_tb *, void *);
static void *exit_data, *cpu_data, *trans_data;
void qemu_plugin_reset(uint64_t id, simple cb, void *data) { cb(data); }
#else
typedef void (*simple)(uint64_t, void *), (*cpu)(uint64_t, unsigned), (*trans)(uint64_t, struct qemu_plugin_tb *);
void qemu_plugin_reset(uint64_t id, void (*cb)(uint64_t)) { cb(id); }
#endif
static simple at_exit;
static cpu at_cpu;
static trans at_trans;

#if INTERFACE >= 7
void qemu_plugin_register_atexit_cb(uint64_t id, simple cb, void *data) { at_exit = cb; exit_data = data; }
void qemu_plugin_register_vcpu_init_cb(uint64_t id, cpu cb, void *data) { at_cpu = cb; cpu_data = data; }
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, trans cb, void *data) { at_trans = cb; trans_data = data; }
static void run(struct qemu_plugin_tb *tb) { at_trans(tb, trans_data); at_cpu(3, cpu_data); at_exit(exit_data); }
#else
void qemu_plugin_register_atexit_cb(uint64_t id, simple cb, void *data) { at_exit = cb; }
void qemu_plugin_register_vcpu_init_cb(uint64_t id, cpu cb) { at_cpu = cb; }
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, trans cb) { at_trans = cb; }
static void run(struct qemu_plugin_tb *tb) { at_trans(7, tb); at_cpu(7, 3); at_exit(7, DATA); }
#endif

void on_translation(uint64_t id, void (*cb)(struct qemu_plugin_tb *));
void on_exit_of_qemu(uint64_t id, void (*cb)(void));
void on_cpu(uint64_t id, void (*cb)(void));
void on_reset(uint64_t id, void (*cb)(void));

static void translated(struct qemu_plugin_tb *tb) { printf("block %d\n", tb->number); }
static void ended(void) { puts("exit"); }
static void started(void) { puts("cpu"); }
static void again(void) { puts("reset"); }

int main(void)
{
	struct qemu_plugin_tb tb = {42};

	printf("interface %d\n", qemu_plugin_version);
	on_translation(7, translated);
	on_exit_of_qemu(7, ended);
	on_cpu(7, started);
	run(&tb);
	on_reset(7, again);
	on_translation(7, NULL);
	puts(at_trans ? "still translating" : "quiet");
	return 0;
}
"""


@pytest.mark.parametrize("interface", [4, 7])
def test_callbacks_come_in_either_form(interface: int, tmp_path: Path) -> None:
    host, program = tmp_path / "host.c", tmp_path / "host"
    host.write_text(_HOST)
    source = shipped("plugin") / "versions.c"
    gcc, _ = plugin._compiler()
    subprocess.run([gcc, f"-DINTERFACE={interface}", "-w", "-o", program, host, source], check=True, timeout=60)
    said = subprocess.run([program], capture_output=True, text=True, check=True, timeout=10).stdout.splitlines()
    assert said == [f"interface {interface}", "block 42", "cpu", "exit", "reset", "quiet"]

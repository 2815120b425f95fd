/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KDELTA_INSTRUMENT_H
#define KDELTA_INSTRUMENT_H

struct block;
struct qemu_plugin_tb;

void instrument_open(void);
void instrument_check(void); /* ends QEMU where inline counters do not work as they are used here */
void instrument(struct qemu_plugin_tb *tb, struct block *b);

#endif

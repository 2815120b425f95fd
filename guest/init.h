/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KDELTA_INIT_H
#define KDELTA_INIT_H

#include <stddef.h>
#include <stdint.h>

struct jobs;
struct supervisor;
struct text;

/* PID 1: never returns, always ends the machine. */
void init_main(char **argv) __attribute__((noreturn));

/* The kernel's objects come to lie, on each CPU, as a seed says. Before the snapshot. */
void scatter(uint64_t seed);
/*
 * Pauses the machine while it is idle, and once it runs again reads the jobs from
 * fw_cfg. Returns 0, or -1 with a sentence in why.
 */
int snapshot_pause(struct text *jobs, char *why, size_t size);
/* Where an order comes to (init_order.c); -1 where that place is taken. Before the snapshot. */
int order_prepare(void);
/* Rehearses, and takes the job list and the seed that are told, where any are; 0, or -1 with a sentence in why. */
int order_part(const struct supervisor *sv, struct jobs *js, char *why, size_t size);
/* Records of a machine that runs again (struct stream, `put`): a port that takes a byte at once, without a driver. */
int snapshot_put(const void *data, size_t n);
/* Ends the machine at once, where it has a device for that; else returns. */
void snapshot_end(void);

#endif

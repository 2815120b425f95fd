/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory pressure beside a case: the host's stress-ng, packed into the guest. */
#ifndef KDELTA_PRESSURE_H
#define KDELTA_PRESSURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "stream.h"

#define PRESSURE_COUNTERS 8

struct pressure {
	unsigned int workers;
	uint64_t bytes; /* of all workers */
	pid_t stress, filler;
	uint64_t before[PRESSURE_COUNTERS], after[PRESSURE_COUNTERS];
	int64_t available_before, available_during;
};

/* "2x60%": two workers that together keep 60 % of memory. 0, or -1 with a sentence; nothing runs then. */
int pressure_start(struct pressure *p, const char *spec, char *why, size_t size);
/* Call while the case still has its processes. 0, or -1 with what went wrong: stress-ng has ended, memory ran out. */
int pressure_check(struct pressure *p, char *why, size_t size);
void pressure_stop(struct pressure *p);
/* val records: reclaim counters over the run, memory that was available. */
void pressure_report(const struct pressure *p, struct stream *s, unsigned int job);

#endif

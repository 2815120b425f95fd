/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What reading the clock costs, and its step: the floor under every timed figure. */
#include <stdlib.h>

#include "harness.h"

#define ROUNDS 101
#define READS 20

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void clock_measure(struct clock_cost *c)
{
	double cost[ROUNDS];
	uint64_t step = 0;
	int i, k;

	for (i = 0; i < ROUNDS; i++) {
		uint64_t start = now_ns(), last = start, now = start;

		for (k = 0; k < READS; k++, last = now) {
			now = now_ns();
			if (now > last && (!step || now - last < step))
				step = now - last;
		}
		cost[i] = (double)(now - start) / READS;
	}
	qsort(cost, ROUNDS, sizeof(*cost), by_value);
	*c = (struct clock_cost){cost[ROUNDS / 2], cost[0], (double)step};
}

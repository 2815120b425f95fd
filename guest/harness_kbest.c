/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * K-best as LEBench defines it (calc_k_closest() in TEST_DIR/OS_Eval.c of
 * github.com/LinuxPerfStudy/LEBench; K = 5, INPRECISION = 0.05): sort the
 * operations' times; walk up; the run of neighbours starts with the smallest,
 * and a time more than 5 % above the one before it empties the run (that time
 * itself stays out of the next run). The first member of the first run that
 * reaches K is the figure.
 *
 * Two departures, where LEBench's code has no meaning: times above 1 s are
 * compared like all others, and with no run of K there is no figure (LEBench
 * takes the incomplete run at the slow end).
 */
#include <stdlib.h>

#include "harness.h"

#define K 5
#define TOLERANCE 0.05

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

int kbest(uint64_t *samples, size_t n, double *ns)
{
	size_t i, first = 0, members = 1;

	qsort(samples, n, sizeof(*samples), by_value);
	for (i = 1; i < n && members < K; i++) {
		if ((double)(samples[i] - samples[i - 1]) > TOLERANCE * (double)samples[i - 1])
			members = 0;
		else if (!members++)
			first = i;
	}
	if (members < K)
		return -1;
	*ns = (double)samples[first];
	return 0;
}

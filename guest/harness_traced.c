/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The operations of a job that traces. What one costs then is not known before:
 * a first small batch says, and further ones follow, each larger, until all that
 * were asked for are made or half of the time limit is over. Figures are per
 * operation, so fewer of them mean the same.
 */
#include "harness.h"
#include "trace.h"

#define FIRST_PART 256 /* of the operations asked for */
#define FIRST_MOST 16  /* however many are asked for: one may cost 100 ms */
#define GROWTH 4
#define WORTHWHILE 16 /* a batch that adds less than this part is not begun */
#define WARM_ROUNDS 2

/* The next batch: what is left of the time would do for twice as many. 0: no more. */
static uint64_t next_batch(const struct harness *h, uint64_t made, uint64_t since_ns)
{
	uint64_t now = now_ns(), left = h->job->ops - made, most = made * GROWTH;
	double fits;

	if (now >= h->give_up_ns)
		return 0;
	fits = (double)(h->give_up_ns - now) / 2 * (double)made / (double)(now - since_ns + 1);
	if (most > left)
		most = left;
	if (fits * WORTHWHILE < (double)made)
		return 0;
	return fits < (double)most ? (uint64_t)fits : most;
}

void traced_ops(struct harness *h, void (*round)(struct harness *h, uint64_t ops))
{
	uint64_t asked = h->job->ops, n = asked / FIRST_PART + !!(asked % FIRST_PART), made = 0,
		 start;
	uint64_t tasks = h->counted ?: 1; /* one inline is not counted there */
	int r;

	if (n > FIRST_MOST)
		n = FIRST_MOST;
	for (r = 0; r < WARM_ROUNDS && !case_failed(h); r++)
		round(h, n);
	exact_rest(h);
	trace_arm(h);
	start = now_ns();
	for (; n && !case_failed(h); n = next_batch(h, made, start)) {
		round(h, n);
		made += n;
	}
	trace_disarm(h);
	put_rep(h, 0, made * tasks);
	if (made < asked)
		wl_value(&h->wl, "ops_left_out", (double)((asked - made) * tasks));
}

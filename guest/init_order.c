/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where a guest becomes many: one for each job, and each of these one for each seed. What
 * they have in common is behind them then, and in QEMU's translated code. At the mark ORDER
 * the host may write into a place that both know (plugin/serve.c), first a job list and
 * then a seed, each once for every guest to be. The place is touched before the snapshot is taken:
 * nothing of the kernel runs to write there. Where nobody does, what came through
 * fw_cfg holds.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "harness.h"
#include "init.h"
#include "mark.h"
#include "stream.h"

#define ORDER_ADDRESS 0x4b44000000u
#define ORDER_BYTES (64u << 10)
#define SEED_ADDRESS (ORDER_ADDRESS + ORDER_BYTES)
#define SEED_DIGITS 16u
#define PLACE_BYTES (ORDER_BYTES + 4096u)
/* What the kernel does every now and then (statistics of pages, cgroups, pressure: 1 to 4 s). */
#define NOW_AND_THEN_S 5

int order_prepare(void)
{
	void *at = mmap((void *)(uintptr_t)ORDER_ADDRESS, PLACE_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (at == MAP_FAILED)
		return -1;
	/* A page that was only read would still be the kernel's one of zeros. */
	memset(at, 0xff, PLACE_BYTES);
	memset(at, 0, PLACE_BYTES);
	return 0;
}

static size_t jobs_told(const char **jobs)
{
	nanosleep(&(struct timespec){.tv_sec = NOW_AND_THEN_S}, NULL);
	MARK(MARK_OP_ORDER, 0);
	*jobs = (const char *)(uintptr_t)ORDER_ADDRESS;
	return strnlen(*jobs, ORDER_BYTES);
}

static void seed_told(uint64_t *seed)
{
	const char *told = (const char *)(uintptr_t)SEED_ADDRESS;

	perturb_rest();
	MARK(MARK_OP_ORDER, MARK_SEED);
	if (strnlen(told, SEED_DIGITS + 1) == SEED_DIGITS)
		*seed = strtoull(told, NULL, 16);
}

int order_part(const struct supervisor *sv, struct jobs *js, char *why, size_t size)
{
	struct prepared *p = sv->prepared;
	uint64_t tick = exact_tick();
	const char *order;
	size_t n;

	rehearse_any(sv, tick);
	n = jobs_told(&order);
	if (n) {
		p->source = order;
		p->source_bytes = n;
		jobs_free(js);
		if (jobs_parse(js, order, n, why, size))
			return -1;
	}
	js->rehearsed = rehearse_own(sv, tick);
	js->tick_ns = tick;
	seed_told(&js->seed);
	return 0;
}

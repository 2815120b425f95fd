/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where many guests part that were one until now: the same kernel, perturbed by
 * the same seed. At the mark ORDER the host may write the job list into a place
 * that both know (plugin/serve.c), once for each of them. It is touched before the
 * snapshot is taken: nothing of the kernel runs to write there. Where nobody does,
 * the jobs that came through fw_cfg are those to run.
 */
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "init.h"
#include "mark.h"
#include "stream.h"

#define ORDER_ADDRESS 0x4b44000000u
#define ORDER_BYTES (64u << 10)
/* What the perturbation has set going comes to rest, and is translated once for all. */
#define REST_NS 250000000u

int order_prepare(void)
{
	void *at = mmap((void *)(uintptr_t)ORDER_ADDRESS, ORDER_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (at == MAP_FAILED)
		return -1;
	/* A page that was only read would still be the kernel's one of zeros. */
	memset(at, 0xff, ORDER_BYTES);
	memset(at, 0, ORDER_BYTES);
	return 0;
}

size_t order_wait(const char **jobs)
{
	nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
	MARK(MARK_OP_ORDER, 0);
	*jobs = (const char *)(uintptr_t)ORDER_ADDRESS;
	return strnlen(*jobs, ORDER_BYTES);
}

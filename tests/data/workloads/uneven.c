/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A workload for tests only: as many system calls per operation as chance says
 * in each guest, and more of them where the kernel's command line has
 * "uneven_extra": a true effect within noise of a known size.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "workload.h"

#define CALLS 64
#define CHANCE 8
#define EXTRA 5

static unsigned int calls;

static bool has_extra(void)
{
	char line[4096] = "";
	int fd = open("/proc/cmdline", O_RDONLY);

	if (fd >= 0) {
		(void)!read(fd, line, sizeof(line) - 1);
		close(fd);
	}
	return strstr(line, "uneven_extra");
}

static int uneven_setup(struct wl *wl)
{
	unsigned char chance;

	if (getrandom(&chance, 1, 0) != 1)
		return wl_fail(wl, "getrandom");
	calls = CALLS + chance % CHANCE + (has_extra() ? EXTRA : 0);
	return 0;
}

static void uneven_op(struct wl_task *t)
{
	(void)t;
	for (unsigned int i = 0; i < calls; i++)
		syscall(SYS_getppid);
}

WORKLOAD_BATCH(uneven_batch, uneven_op)

static const struct workload uneven = {
	.name = "uneven",
	.setup = uneven_setup,
	.op = uneven_op,
	.batch = uneven_batch,
};

WORKLOAD(uneven);

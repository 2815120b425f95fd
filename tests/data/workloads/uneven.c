/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A workload for tests only: an operation polls as many descriptors as chance
 * says in each guest, and more of them where the kernel's command line has
 * "uneven_extra": a true effect within noise. It is one system call always:
 * of counts with other system calls the report says that they decide nothing.
 */
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "workload.h"

#define FILES 64
#define CHANCE 8
#define EXTRA 3

static struct pollfd polled[FILES + CHANCE + EXTRA];
static nfds_t files;

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
	int ends[2];

	if (pipe(ends) < 0)
		return wl_fail(wl, "pipe");
	for (size_t i = 0; i < sizeof(polled) / sizeof(polled[0]); i++)
		polled[i] = (struct pollfd){ .fd = ends[0], .events = POLLIN };
	if (getrandom(&chance, 1, 0) != 1)
		return wl_fail(wl, "getrandom");
	files = FILES + chance % CHANCE + (has_extra() ? EXTRA : 0);
	return 0;
}

static void uneven_op(struct wl_task *t)
{
	(void)t;
	poll(polled, files, 0);
}

WORKLOAD_BATCH(uneven_batch, uneven_op)

static const struct workload uneven = {
	.name = "uneven",
	.setup = uneven_setup,
	.op = uneven_op,
	.batch = uneven_batch,
};

WORKLOAD(uneven);

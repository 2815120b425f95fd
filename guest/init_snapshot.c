/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A snapshot is taken while the machine is idle: a watchdog (QEMU's ib700, port
 * 0x443, set to pause the machine) ends its time while this process sleeps. A CPU
 * that pauses the machine by itself (pvpanic) does so at an instant of the host:
 * QEMU's main loop may still let the virtual clock jump to the next timer. Jobs
 * come through fw_cfg (docs/specs/fw_cfg: selector 0x510, data 0x511), which is
 * read synchronously: input that arrives on a port of its own would come when
 * the host likes. A machine of several CPUs is stopped by the plugin, for which
 * the instant of a watchdog is chance (plugin/stop.c).
 */
#include <stdio.h>

#include "init.h"
#include "mark.h"
#include "stream.h"

#if defined(__x86_64__)
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/io.h>
#include <time.h>
#include <unistd.h>

#define WATCHDOG_PORT 0x443
#define WATCHDOG_2S 14 /* hw/watchdog/wdt_ib700.c: time_map */
#define SLEEP_NS 2050000000u
#define RECORDS_PORT 0xe9 /* QEMU's isa-debugcon */
#define EXIT_PORT 0x501	  /* QEMU's isa-debug-exit: 2 * value + 1 is its status */
#define FW_CFG_SELECTOR 0x510
#define FW_CFG_DATA 0x511
#define FW_CFG_FILE_DIR 0x19
#define FW_CFG_NAME_BYTES 56
#define JOBS_NAME "opt/kdelta/jobs"
#define JOBS_MAX (1u << 20)

static void fw_cfg_read(void *buf, size_t n)
{
	uint8_t *p = buf;

	while (n--)
		*p++ = inb(FW_CFG_DATA);
}

static uint32_t fw_cfg_be(unsigned int bytes)
{
	uint8_t b[4];
	uint32_t v = 0;
	unsigned int i;

	fw_cfg_read(b, bytes);
	for (i = 0; i < bytes; i++)
		v = v << 8 | b[i];
	return v;
}

static int fw_cfg_jobs(struct text *jobs, char *why, size_t size)
{
	uint32_t files, bytes;

	outw(FW_CFG_FILE_DIR, FW_CFG_SELECTOR);
	for (files = fw_cfg_be(4); files && files < 4096; files--) {
		char name[FW_CFG_NAME_BYTES] = "";
		uint16_t selector;

		bytes = fw_cfg_be(4);
		selector = (uint16_t)fw_cfg_be(2);
		fw_cfg_be(2); /* reserved */
		fw_cfg_read(name, sizeof(name));
		if (strncmp(name, JOBS_NAME, sizeof(name)))
			continue;
		if (bytes > JOBS_MAX)
			break;
		outw(selector, FW_CFG_SELECTOR);
		while (bytes) {
			char buf[512];
			size_t n = bytes < sizeof(buf) ? bytes : sizeof(buf);

			fw_cfg_read(buf, n);
			text_bytes(jobs, buf, n);
			bytes -= (uint32_t)n;
		}
		return 0;
	}
	snprintf(why, size, "snapshot: fw_cfg has no file " JOBS_NAME " of at most 1 MiB");
	return -1;
}

static void rest(void)
{
	struct timespec t = {SLEEP_NS / 1000000000u, SLEEP_NS % 1000000000u};

	while (nanosleep(&t, &t))
		;
}

/* True in the machine that runs again; false where nobody stopped it. */
static bool stopped(struct text *jobs, char *why, size_t size)
{
	rest();
	MARK(MARK_OP_STOP, 0);
	return !fw_cfg_jobs(jobs, why, size);
}

int snapshot_pause(struct text *jobs, char *why, size_t size)
{
	bool several = sysconf(_SC_NPROCESSORS_ONLN) > 1;
	int result = 0;

	if (ioperm(WATCHDOG_PORT, 1, 1) || ioperm(FW_CFG_SELECTOR, 2, 1)) {
		snprintf(why, size, "snapshot: no access to I/O ports (CONFIG_X86_IOPL_IOPERM): %s",
			 strerror(errno));
		return -1;
	}
	if (!several || !stopped(jobs, why, size)) {
		outb(WATCHDOG_2S, WATCHDOG_PORT);
		rest();
		result = fw_cfg_jobs(jobs, why, size);
	}
	/* Children would inherit the bitmap, at 51 instructions a system call. */
	ioperm(WATCHDOG_PORT, 1, 0);
	ioperm(FW_CFG_SELECTOR, 2, 0);
	return result;
}

int snapshot_put(const void *data, size_t n)
{
	if (ioperm(RECORDS_PORT, 1, 1))
		return errno;
	outsb(RECORDS_PORT, data, n);
	return ioperm(RECORDS_PORT, 1, 0) ? errno : 0;
}

void snapshot_end(void)
{
	if (!ioperm(EXIT_PORT, 1, 1))
		outb(0, EXIT_PORT);
}
#else
#include <errno.h>

int snapshot_pause(struct text *jobs, char *why, size_t size)
{
	(void)jobs;
	snprintf(why, size, "snapshot: only guests of x86-64 can be paused");
	return -1;
}

int snapshot_put(const void *data, size_t n)
{
	(void)data;
	(void)n;
	return ENODEV;
}

void snapshot_end(void)
{
}
#endif

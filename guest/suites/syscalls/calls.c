/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls that do little: entering and leaving the kernel, looking things up, setting them. */
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include "parts.h"

static char *buf;

CASE(getpid, "getpid(2): the null call")
{
	syscall(SYS_getpid);
}

CASE(clock_gettime, "clock_gettime(2) of CLOCK_MONOTONIC, by the call and not the vDSO")
{
	struct timespec now;

	OK(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now));
}

CASE_N(getrandom, "getrandom(2) of N bytes", 16, 4096)
{
	EXPECT(getrandom(buf, N, 0) == (ssize_t)N);
}

OPS(getrandom, 16384 / N)

SETUP(getrandom)
{
	buf = memory(t, N);
}

CASE(sched_yield, "sched_yield(2), nobody else runs")
{
	OK(sched_yield());
}

/* Emulated, a nanosecond is an instruction: a sleep of a few ends before it begins. */
CASE(nanosleep, "nanosleep(2) of 50 us: arm a timer, sleep, be woken")
{
	OK(nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL));
}

OPS(nanosleep, 32) /* less than a tick at 250 Hz */

SETUP(nanosleep)
{
	OK(prctl(PR_SET_TIMERSLACK, 1));
}

CASE(prctl, "prctl(2) PR_SET_NAME")
{
	OK(prctl(PR_SET_NAME, "kdelta-case"));
}

CASE(setresuid, "setresuid(2): give root up, take it back")
{
	OK(syscall(SYS_setresuid, -1, 1000, -1));
	OK(syscall(SYS_setresuid, -1, 0, -1));
}

SETUP(setresuid)
{
	NEED("CONFIG_MULTIUSER", syscall(SYS_setresuid, 0, 0, 0));
}

CASE(sigaltstack, "sigaltstack(2): set one, set none")
{
	OK(sigaltstack(&(stack_t){.ss_sp = buf, .ss_size = 65536}, NULL));
	OK(sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL));
}

SETUP(sigaltstack)
{
	buf = memory(t, 65536);
}

CASE(uname, "uname(2)")
{
	struct utsname name;

	OK(uname(&name));
}

CASE(getrusage, "getrusage(2) of the process")
{
	struct rusage usage;

	OK(getrusage(RUSAGE_SELF, &usage));
}

/* A process that ticks have found in user space and in the kernel: where either is 0, its times are not scaled. */
SETUP(getrusage)
{
	struct rusage used;

	do {
		for (volatile int spins = 0; spins < 100000; spins++)
			;
		OK(getrusage(RUSAGE_SELF, &used));
	} while (!used.ru_utime.tv_usec);
	do {
		OK(munmap(memory(t, 64 * PAGE), 64 * PAGE));
		OK(getrusage(RUSAGE_SELF, &used));
	} while (!used.ru_stime.tv_usec);
}

CASE(prlimit, "prlimit(2): read and set RLIMIT_CORE")
{
	struct rlimit core;

	OK(prlimit(0, RLIMIT_CORE, NULL, &core));
	OK(prlimit(0, RLIMIT_CORE, &core, NULL));
}

static cpu_set_t cpus;

CASE(sched_setaffinity, "sched_setaffinity(2) to the CPU that it runs on")
{
	OK(sched_setaffinity(0, sizeof(cpus), &cpus));
}

SETUP(sched_setaffinity)
{
	OK(sched_getaffinity(0, sizeof(cpus), &cpus));
}

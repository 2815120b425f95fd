/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes and what they send each other. */
#include <sys/eventfd.h>

#include "../../case.h"

static int ends[2], fd;
static char byte;

CASE(fork_exit, "fork(2), exit and wait by processes")
{
	pid_t pid = OK(fork());

	if (!pid)
		_exit(0);
	OK(waitpid(pid, NULL, 0));
}

OPS(fork_exit, 6)
EVERY_CPU(fork_exit, processes);

CASE(pidfd_open, "pidfd_open(2) of itself and close(2) by processes")
{
	OK(close((int)OK(syscall(SYS_pidfd_open, getpid(), 0))));
}

OPS(pidfd_open, 24)
EVERY_CPU(pidfd_open, processes);

SETUP(pidfd_open)
{
	close((int)NEED("pidfd_open(2)", syscall(SYS_pidfd_open, getpid(), 0)));
}

CASE(pipe_own, "a byte through a pipe of its own in each process")
{
	EXPECT(write(ends[1], &byte, 1) == 1);
	EXPECT(read(ends[0], &byte, 1) == 1);
}

EVERY_CPU(pipe_own, processes);

SETUP(pipe_own)
{
	OK(pipe(ends));
}

CASE(pipe_one, "a byte into one pipe and one out of it by threads")
{
	EXPECT(write(ends[1], &byte, 1) == 1);
	EXPECT(read(ends[0], &byte, 1) == 1);
}

EVERY_CPU(pipe_one, threads);

SETUP(pipe_one)
{
	OK(pipe(ends));
}

CASE(socketpair_own, "a byte through a pair of AF_UNIX sockets of its own in each process")
{
	EXPECT(write(ends[1], &byte, 1) == 1);
	EXPECT(read(ends[0], &byte, 1) == 1);
}

EVERY_CPU(socketpair_own, processes);

SETUP(socketpair_own)
{
	NEED("CONFIG_UNIX", socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
}

CASE(socketpair_new, "socketpair(2) and close(2) of both ends by processes")
{
	int pair[2];

	OK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	OK(close(pair[0]));
	OK(close(pair[1]));
}

OPS(socketpair_new, 24)
EVERY_CPU(socketpair_new, processes);

SETUP(socketpair_new)
{
	NEED("CONFIG_UNIX", socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
}

CASE(eventfd_one, "one eventfd(2) is counted up by threads")
{
	uint64_t up = 1;

	EXPECT(write(fd, &up, sizeof(up)) == sizeof(up));
}

EVERY_CPU(eventfd_one, threads);

SETUP(eventfd_one)
{
	fd = NEED("CONFIG_EVENTFD", eventfd(0, 0));
}

CASE(signal_threads, "tgkill(2) of an ignored signal to itself by threads")
{
	OK(syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1));
}

EVERY_CPU(signal_threads, threads);

SETUP(signal_threads)
{
	signal(SIGUSR1, SIG_IGN);
}

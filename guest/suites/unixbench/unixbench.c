// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What UnixBench 6.0.0 (byte-unixbench) does in its loops, once an operation:
 * src/syscall.c, pipe.c, context1.c, spawn.c, fstime.c. Its execl replaces
 * itself without end, and so is no operation: syscalls/fork_execve is the nearest.
 */
#include "../../case.h"

#define FILE_BYTES (64 * 4096)

static char buf[4096];
static int from, to, there[2], back[2];

CASE(syscall, "dup(2), close(2), getpid(2), getuid(2), umask(2), as src/syscall.c")
{
	OK(close(OK(dup(from))));
	syscall(SYS_getpid);
	getuid();
	umask(022);
}

SETUP(syscall)
{
	from = OK(open("file", O_RDWR | O_CREAT, 0600));
}

CASE(pipe, "512 bytes written to a pipe and read back, as src/pipe.c")
{
	EXPECT(write(there[1], buf, 512) == 512);
	EXPECT(read(there[0], buf, 512) == 512);
}

SETUP(pipe)
{
	OK(pipe(there));
}

CASE(context1, "a number to another process and back by pipes, as src/context1.c")
{
	unsigned long number = 1;

	EXPECT(write(there[1], &number, sizeof(number)) == sizeof(number));
	EXPECT(read(back[0], &number, sizeof(number)) == sizeof(number));
}

OPS(context1, 32)

SETUP(context1)
{
	unsigned long number;

	OK(pipe(there));
	OK(pipe(back));
	if (!HELPER())
		return;
	while (read(there[0], &number, sizeof(number)) == sizeof(number))
		EXPECT(write(back[1], &number, sizeof(number)) == sizeof(number));
}

CASE(spawn, "fork(2), _exit(2), wait(2), as src/spawn.c")
{
	pid_t pid = OK(fork());
	int status;

	if (!pid)
		_exit(0);
	EXPECT(wait(&status) == pid && !status);
}

OPS(spawn, 12)

CASE_N(file_copy, "read(2) and write(2) of N bytes from file to file, as src/fstime.c", 256, 1024,
       4096)
{
	if (!OK(read(from, buf, N))) {
		OK(lseek(from, 0, SEEK_SET));
		OK(lseek(to, 0, SEEK_SET));
		EXPECT(read(from, buf, N) == (ssize_t)N);
	}
	EXPECT(write(to, buf, N) == (ssize_t)N);
}

SETUP(file_copy)
{
	from = OK(open("from", O_RDWR | O_CREAT, 0600));
	to = OK(open("to", O_RDWR | O_CREAT, 0600));
	for (int at = 0; at < FILE_BYTES; at += (int)sizeof(buf)) {
		EXPECT(write(from, buf, sizeof(buf)) == sizeof(buf));
		EXPECT(write(to, buf, sizeof(buf)) == sizeof(buf));
	}
	OK(lseek(from, 0, SEEK_SET));
	OK(lseek(to, 0, SEEK_SET));
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Descriptors, files and names: by threads of one process, by processes, on one file and on separate ones. */
#include "../../case.h"

static int fd;
static char byte;

CASE(getppid, "getppid(2) by processes: nothing is shared, a control")
{
	EXPECT(getppid() >= 0);
}

EVERY_CPU(getppid, processes);

CASE(dup_threads, "dup(2) and close(2) of one file by threads")
{
	OK(close(OK(dup(fd))));
}

EVERY_CPU(dup_threads, threads);

SETUP(dup_threads)
{
	fd = OK(open("file", O_RDWR | O_CREAT, 0600));
}

CASE(dup_processes, "dup(2) and close(2), of its own file in each process")
{
	OK(close(OK(dup(fd))));
}

EVERY_CPU(dup_processes, processes);

SETUP(dup_processes)
{
	fd = OK(open("file", O_RDWR | O_CREAT, 0600));
}

CASE(open_one, "open(2) and close(2) of one file by processes")
{
	OK(close(OK(open("../file", O_RDONLY))));
}

EVERY_CPU(open_one, processes);

SHARED(open_one)
{
	OK(close(OK(open("file", O_RDWR | O_CREAT, 0600))));
}

CASE(open_separate, "open(2) and close(2), of a file of its own in each process")
{
	OK(close(OK(open("file", O_RDONLY))));
}

EVERY_CPU(open_separate, processes);

SETUP(open_separate)
{
	OK(close(OK(open("file", O_RDWR | O_CREAT, 0600))));
}

CASE(access_one, "access(2) on one file by processes")
{
	OK(access("../file", R_OK));
}

EVERY_CPU(access_one, processes);

SHARED(access_one)
{
	OK(close(OK(open("file", O_RDWR | O_CREAT, 0600))));
}

CASE(access_separate, "access(2), on a file in a directory of its own in each process")
{
	OK(access("file", R_OK));
}

EVERY_CPU(access_separate, processes);

SETUP(access_separate)
{
	OK(close(OK(open("file", O_RDWR | O_CREAT, 0600))));
}

CASE(create_one, "a file is made and removed in one directory by processes, each its own name")
{
	char name[32];

	snprintf(name, sizeof(name), "../of-%u", t->nr);
	OK(close(OK(open(name, O_RDWR | O_CREAT | O_EXCL, 0600))));
	OK(unlink(name));
}

OPS(create_one, 24)
EVERY_CPU(create_one, processes);

CASE(create_separate, "a file is made and removed in a directory of its own in each process")
{
	OK(close(OK(open("file", O_RDWR | O_CREAT | O_EXCL, 0600))));
	OK(unlink("file"));
}

OPS(create_separate, 24)
EVERY_CPU(create_separate, processes);

CASE(pread_one, "pread(2) of one byte of one file by processes")
{
	EXPECT(pread(fd, &byte, 1, 0) == 1);
}

EVERY_CPU(pread_one, processes);

SHARED(pread_one)
{
	int out = OK(open("file", O_RDWR | O_CREAT, 0600));

	EXPECT(write(out, &byte, 1) == 1);
	OK(close(out));
}

SETUP(pread_one)
{
	fd = OK(open("../file", O_RDONLY));
}

CASE(append_one, "write(2) of one byte to the end of one file by processes")
{
	EXPECT(write(fd, &byte, 1) == 1);
}

EVERY_CPU(append_one, processes);

SETUP(append_one)
{
	fd = OK(open("../file", O_WRONLY | O_CREAT | O_APPEND, 0600));
}

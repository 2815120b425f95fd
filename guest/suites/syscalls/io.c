/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Moving bytes: read and write, splice and its relatives, asynchronous input and output. */
#include <linux/aio_abi.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

#include "parts.h"

static int fd, out, pipe_a[2], pipe_b[2];
static char *buf;

CASE_N(read, "pread(2) of N bytes of a file in tmpfs", 1, 4096, 40960, 4096000)
{
	EXPECT(pread(fd, buf, N, 0) == (ssize_t)N);
}

OPS(read, 1048576 / N)

SETUP(read)
{
	fd = file(t, "file", N);
	buf = memory(t, N);
}

CASE_N(write, "pwrite(2) of N bytes over a file in tmpfs", 1, 4096, 40960, 4096000)
{
	EXPECT(pwrite(fd, buf, N, 0) == (ssize_t)N);
}

OPS(write, 524288 / N)

SETUP(write)
{
	fd = file(t, "file", N);
	buf = memory(t, N);
}

CASE(read_zero, "read(2) of 1 byte of /dev/zero")
{
	char byte;

	EXPECT(read(fd, &byte, 1) == 1);
}

SETUP(read_zero)
{
	fd = OK(open("/dev/zero", O_RDONLY | O_CLOEXEC));
}

CASE(write_null, "write(2) of 1 byte to /dev/null")
{
	EXPECT(write(fd, "x", 1) == 1);
}

SETUP(write_null)
{
	fd = OK(open("/dev/null", O_WRONLY | O_CLOEXEC));
}

CASE(readv, "preadv(2) into 8 buffers of 512 bytes, from tmpfs")
{
	struct iovec parts[8];

	for (size_t i = 0; i < 8; i++)
		parts[i] = (struct iovec){.iov_base = buf + i * 1024, .iov_len = 512};
	EXPECT(preadv(fd, parts, 8, 0) == 4096);
}

SETUP(readv)
{
	fd = file(t, "file", 4096);
	buf = memory(t, 8192);
}

CASE(lseek, "lseek(2) to the end of a file, and back")
{
	EXPECT(lseek(fd, 0, SEEK_END) == 4096);
	EXPECT(lseek(fd, 0, SEEK_SET) == 0);
}

SETUP(lseek)
{
	fd = file(t, "file", 4096);
}

CASE(dup_close, "dup(2), close(2)")
{
	OK(close(OK(dup(fd))));
}

SETUP(dup_close)
{
	fd = file(t, "file", 0);
}

CASE(fsync, "write(2) of a byte to a file in tmpfs, fsync(2)")
{
	EXPECT(pwrite(fd, "x", 1, 0) == 1);
	OK(fsync(fd));
}

SETUP(fsync)
{
	fd = file(t, "file", 4096);
}

CASE_N(sendfile, "sendfile(2) of N bytes from tmpfs to /dev/null", 4096, 65536)
{
	off_t at = 0;

	EXPECT(sendfile(out, fd, &at, N) == (ssize_t)N);
}

OPS(sendfile, 1048576 / N)

SETUP(sendfile)
{
	fd = file(t, "file", N);
	out = OK(open("/dev/null", O_WRONLY | O_CLOEXEC));
}

CASE_N(copy_file_range, "copy_file_range(2) of N bytes within tmpfs", 4096, 65536)
{
	off_t from = 0, to = 0;

	EXPECT(copy_file_range(fd, &from, out, &to, N, 0) == (ssize_t)N);
}

OPS(copy_file_range, 1048576 / N)

SETUP(copy_file_range)
{
	fd = file(t, "from", N);
	out = file(t, "to", N);
}

CASE(splice, "splice(2) of a page from tmpfs into a pipe, and on to /dev/null")
{
	off_t at = 0;

	EXPECT(splice(fd, &at, pipe_a[1], NULL, PAGE, 0) == (ssize_t)PAGE);
	EXPECT(splice(pipe_a[0], NULL, out, NULL, PAGE, 0) == (ssize_t)PAGE);
}

SETUP(splice)
{
	fd = file(t, "file", PAGE);
	out = OK(open("/dev/null", O_WRONLY | O_CLOEXEC));
	OK(pipe(pipe_a));
}

CASE(vmsplice, "vmsplice(2) of a page into a pipe, splice(2) to /dev/null")
{
	struct iovec page = {.iov_base = buf, .iov_len = PAGE};

	EXPECT(vmsplice(pipe_a[1], &page, 1, 0) == (ssize_t)PAGE);
	EXPECT(splice(pipe_a[0], NULL, out, NULL, PAGE, 0) == (ssize_t)PAGE);
}

SETUP(vmsplice)
{
	buf = memory(t, PAGE);
	out = OK(open("/dev/null", O_WRONLY | O_CLOEXEC));
	OK(pipe(pipe_a));
}

CASE(tee, "tee(2) of a page from a pipe to another, splice(2) to /dev/null")
{
	EXPECT(tee(pipe_a[0], pipe_b[1], PAGE, 0) == (ssize_t)PAGE);
	EXPECT(splice(pipe_b[0], NULL, out, NULL, PAGE, 0) == (ssize_t)PAGE);
}

SETUP(tee)
{
	buf = memory(t, PAGE);
	out = OK(open("/dev/null", O_WRONLY | O_CLOEXEC));
	OK(pipe(pipe_a));
	OK(pipe(pipe_b));
	EXPECT(write(pipe_a[1], buf, PAGE) == (ssize_t)PAGE);
}

static aio_context_t aio;

CASE(aio_read, "io_submit(2) of a page from tmpfs, io_getevents(2)")
{
	struct iocb read = {.aio_fildes = (uint32_t)fd,
			    .aio_lio_opcode = IOCB_CMD_PREAD,
			    .aio_buf = (uintptr_t)buf,
			    .aio_nbytes = PAGE},
		    *all[] = {&read};
	struct io_event end;

	EXPECT(syscall(SYS_io_submit, aio, 1, all) == 1);
	EXPECT(syscall(SYS_io_getevents, aio, 1, 1, &end, NULL) == 1 && end.res == (int64_t)PAGE);
}

SETUP(aio_read)
{
	NEED("CONFIG_AIO", syscall(SYS_io_setup, 8, &aio));
	fd = file(t, "file", PAGE);
	buf = memory(t, PAGE);
}

TEARDOWN(aio_read)
{
	syscall(SYS_io_destroy, aio);
}

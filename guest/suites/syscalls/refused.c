/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls that end in an error, as loops over events make them all the time: nothing there, taken, not found. */
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/un.h>

#include "parts.h"

#define REFUSED(error, ...) EXPECT((__VA_ARGS__) == -1 && errno == (error))
#define NOBODY 0x3fffffff /* no process has that number: above PID_MAX_LIMIT */

static int fd, other, ends[2];

CASE(pipe_empty, "read(2) of an empty pipe: EAGAIN")
{
	char byte;

	REFUSED(EAGAIN, read(ends[0], &byte, 1));
}

SETUP(pipe_empty)
{
	OK(pipe2(ends, O_NONBLOCK));
}

CASE(pipe_full, "write(2) to a full pipe: EAGAIN")
{
	REFUSED(EAGAIN, write(ends[1], "", 1));
}

SETUP(pipe_full)
{
	static char page[PAGE];

	OK(pipe2(ends, O_NONBLOCK));
	while (write(ends[1], page, sizeof(page)) > 0)
		;
	EXPECT(errno == EAGAIN);
}

CASE(eventfd_empty, "read(2) of an eventfd of 0: EAGAIN")
{
	uint64_t value;

	REFUSED(EAGAIN, read(fd, &value, sizeof(value)));
}

SETUP(eventfd_empty)
{
	fd = NEED("CONFIG_EVENTFD", eventfd(0, EFD_NONBLOCK));
}

CASE(recv_empty, "recv(2) from an AF_UNIX stream without data: EAGAIN")
{
	char byte;

	REFUSED(EAGAIN, recv(ends[0], &byte, 1, MSG_DONTWAIT));
}

SETUP(recv_empty)
{
	NEED("CONFIG_UNIX", socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
}

CASE(accept_none, "accept4(2), nobody connects: EAGAIN")
{
	REFUSED(EAGAIN, accept4(fd, NULL, NULL, SOCK_CLOEXEC));
}

SETUP(accept_none)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "listener"};

	fd = NEED("CONFIG_UNIX", socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
	OK(bind(fd, (struct sockaddr *)&name, sizeof(name)));
	OK(listen(fd, 1));
}

CASE(connect_refused, "connect(2) to an AF_UNIX socket that does not listen: ECONNREFUSED")
{
	struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "bound"};

	REFUSED(ECONNREFUSED, connect(other, (struct sockaddr *)&name, sizeof(name)));
}

SETUP(connect_refused)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "bound"};

	fd = NEED("CONFIG_UNIX", socket(AF_UNIX, SOCK_STREAM, 0));
	other = OK(socket(AF_UNIX, SOCK_STREAM, 0));
	OK(bind(fd, (struct sockaddr *)&name, sizeof(name)));
}

CASE(epoll_none, "epoll_wait(2) of an eventfd, not ready")
{
	struct epoll_event event;

	EXPECT(epoll_wait(fd, &event, 1, 0) == 0);
}

SETUP(epoll_none)
{
	struct epoll_event in = {.events = EPOLLIN};

	fd = NEED("CONFIG_EPOLL", epoll_create1(EPOLL_CLOEXEC));
	OK(epoll_ctl(fd, EPOLL_CTL_ADD, NEED("CONFIG_EVENTFD", eventfd(0, 0)), &in));
}

CASE(flock_taken, "flock(2) of a file that another one holds: EAGAIN")
{
	REFUSED(EAGAIN, flock(fd, LOCK_EX | LOCK_NB));
}

SETUP(flock_taken)
{
	fd = file(t, "file", 0);
	other = OK(open("file", O_RDWR | O_CLOEXEC));
	OK(flock(other, LOCK_EX));
}

CASE(lock_taken, "fcntl(2) F_OFD_SETLK of a range that another one holds: EAGAIN")
{
	struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};

	REFUSED(EAGAIN, fcntl(fd, F_OFD_SETLK, &range));
}

SETUP(lock_taken)
{
	struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};

	fd = file(t, "file", 0);
	other = OK(open("file", O_RDWR | O_CLOEXEC));
	OK(fcntl(other, F_OFD_SETLK, &range));
}

CASE(close_bad, "close(2) of a descriptor that is not open: EBADF")
{
	REFUSED(EBADF, close(fd));
}

SETUP(close_bad)
{
	fd = file(t, "file", 0);
	OK(close(fd));
}

CASE(create_exists, "open(2) O_CREAT | O_EXCL of a file that is there: EEXIST")
{
	REFUSED(EEXIST, open("file", O_CREAT | O_EXCL | O_WRONLY, 0600));
}

SETUP(create_exists)
{
	OK(close(file(t, "file", 0)));
}

CASE(kill_nobody, "kill(2) of a process that is not there: ESRCH")
{
	REFUSED(ESRCH, kill(NOBODY, 0));
}

CASE(waitid_nobody, "waitid(2) without children: ECHILD")
{
	siginfo_t info;

	REFUSED(ECHILD, waitid(P_ALL, 0, &info, WEXITED | WNOHANG));
}

CASE(read_fault, "read(2) of /dev/zero to where no memory is: EFAULT")
{
	REFUSED(EFAULT, read(fd, (void *)PAGE, 64));
}

SETUP(read_fault)
{
	fd = OK(open("/dev/zero", O_RDONLY | O_CLOEXEC));
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Descriptors: made and closed, copied, asked; what hangs on them. */
#include <linux/perf_event.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#include "parts.h"

#define FIRST 32 /* of the numbers that dup2(2) gives */

static int fd, other, ends[2];
static sigset_t signals;

CASE(eventfd_create, "eventfd(2), close(2)")
{
	OK(close(OK(eventfd(0, EFD_CLOEXEC))));
}

OPS(eventfd_create, 48)

SETUP(eventfd_create)
{
	OK(close(NEED("CONFIG_EVENTFD", eventfd(0, EFD_CLOEXEC))));
}

CASE(timerfd_create, "timerfd_create(2), close(2)")
{
	OK(close(OK(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC))));
}

OPS(timerfd_create, 48)

SETUP(timerfd_create)
{
	OK(close(NEED("CONFIG_TIMERFD", timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC))));
}

CASE(signalfd_create, "signalfd(2) of a new descriptor, close(2)")
{
	OK(close(OK(signalfd(-1, &signals, SFD_CLOEXEC))));
}

OPS(signalfd_create, 48)

SETUP(signalfd_create)
{
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	OK(close(NEED("CONFIG_SIGNALFD", signalfd(-1, &signals, SFD_CLOEXEC))));
}

CASE(epoll_create, "epoll_create1(2), close(2)")
{
	OK(close(OK(epoll_create1(EPOLL_CLOEXEC))));
}

OPS(epoll_create, 48)

SETUP(epoll_create)
{
	OK(close(NEED("CONFIG_EPOLL", epoll_create1(EPOLL_CLOEXEC))));
}

CASE(inotify_create, "inotify_init1(2), close(2)")
{
	OK(close(OK(inotify_init1(IN_CLOEXEC))));
}

OPS(inotify_create, 24)

SETUP(inotify_create)
{
	OK(close(NEED("CONFIG_INOTIFY_USER", inotify_init1(IN_CLOEXEC))));
}

CASE(pipe_create, "pipe2(2), close(2) of both ends")
{
	int made[2];

	OK(pipe2(made, O_CLOEXEC));
	OK(close(made[0]));
	OK(close(made[1]));
}

OPS(pipe_create, 24)

CASE(dup2, "dup2(2) onto a descriptor that is open")
{
	EXPECT(dup2(fd, other) == other);
}

SETUP(dup2)
{
	fd = file(t, "file", 0);
	other = OK(dup(fd));
}

CASE(fcntl_dupfd, "fcntl(2) F_DUPFD_CLOEXEC from 32 on, close(2)")
{
	OK(close(OK(fcntl(fd, F_DUPFD_CLOEXEC, FIRST))));
}

SETUP(fcntl_dupfd)
{
	fd = file(t, "file", 0);
}

CASE(fcntl_setfl, "fcntl(2) F_SETFL: O_NONBLOCK, and back")
{
	EXPECT(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
	EXPECT(fcntl(ends[0], F_SETFL, 0) == 0);
}

SETUP(fcntl_setfl)
{
	OK(pipe(ends));
}

static void opened(struct wl_task *t, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		OK(dup2(fd, FIRST + (int)i));
}

CASE_N(close_range, "close_range(2) of N descriptors", 10, 100)
{
	OK(syscall(SYS_close_range, FIRST, FIRST + N - 1, 0));
}

OPS(close_range, 320 / N)

AFTER(close_range)
{
	opened(t, N);
}

SETUP(close_range)
{
	fd = file(t, "file", 0);
	opened(t, N);
	NEED("Linux 5.9", syscall(SYS_close_range, FIRST, FIRST, 0));
	opened(t, N);
}

CASE(pidfd_getfd, "pidfd_getfd(2) of a descriptor of its own, close(2)")
{
	OK(close((int)OK(syscall(SYS_pidfd_getfd, other, fd, 0))));
}

SETUP(pidfd_getfd)
{
	fd = file(t, "file", 0);
	other = (int)NEED("Linux 5.3", syscall(SYS_pidfd_open, getpid(), 0));
	OK(close((int)NEED("Linux 5.6", syscall(SYS_pidfd_getfd, other, fd, 0))));
}

CASE(ioctl_fionread, "ioctl(2) FIONREAD of a pipe with a byte")
{
	int bytes;

	OK(ioctl(ends[0], FIONREAD, &bytes));
	EXPECT(bytes == 1);
}

SETUP(ioctl_fionread)
{
	OK(pipe(ends));
	EXPECT(write(ends[1], "", 1) == 1);
}

CASE(fanotify_event,
     "write(2) to a file marked by fanotify_mark(2), read(2) of the event, close(2)")
{
	struct fanotify_event_metadata event;

	EXPECT(pwrite(fd, "", 1, 0) == 1);
	EXPECT(read(other, &event, sizeof(event)) == sizeof(event) && event.mask == FAN_MODIFY);
	OK(close(event.fd));
}

OPS(fanotify_event, 32)

SETUP(fanotify_event)
{
	fd = file(t, "file", 1);
	other = NEED("CONFIG_FANOTIFY", fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC, O_RDONLY));
	OK(fanotify_mark(other, FAN_MARK_ADD, FAN_MODIFY, AT_FDCWD, "file"));
}

static int software_event(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_PAGE_FAULTS};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

CASE(perf_open, "perf_event_open(2) of this task's page faults, close(2)")
{
	OK(close(OK(software_event())));
}

OPS(perf_open, 24)

SETUP(perf_open)
{
	OK(close(NEED("CONFIG_PERF_EVENTS", software_event())));
}

CASE(perf_read, "read(2) of an event that counts this task's page faults")
{
	uint64_t count;

	EXPECT(read(fd, &count, sizeof(count)) == sizeof(count));
}

SETUP(perf_read)
{
	fd = NEED("CONFIG_PERF_EVENTS", software_event());
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Waiting for things: poll and its relatives, eventfd, timers, futexes. */
#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/timerfd.h>

#include "parts.h"

static int fd;
static int *fds;
static struct pollfd *polls;
static struct epoll_event *events;
static fd_set watched;

/* N eventfds, whose numbers are as small as can be. */
static void eventfds(struct wl_task *t, uint64_t N, unsigned int value)
{
	fds = calloc(N, sizeof(*fds));
	EXPECT(fds != NULL);
	for (uint64_t i = 0; i < N; i++)
		fds[i] = NEED("CONFIG_EVENTFD", eventfd(value, EFD_CLOEXEC));
}

CASE_N(poll, "poll(2) of N eventfds, none ready", 10, 100, 1000)
{
	EXPECT(poll(polls, N, 0) == 0);
}

OPS(poll, 1000 / N)

SETUP(poll)
{
	eventfds(t, N, 0);
	polls = calloc(N, sizeof(*polls));
	EXPECT(polls != NULL);
	for (uint64_t i = 0; i < N; i++)
		polls[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
}

CASE_N(select, "select(2) of N eventfds, none ready", 10, 100, 1000)
{
	fd_set set = watched;

	EXPECT(select(fd + 1, &set, NULL, NULL, &(struct timeval){.tv_sec = 0}) == 0);
}

OPS(select, 1000 / N)

SETUP(select)
{
	eventfds(t, N, 0);
	for (uint64_t i = 0; i < N; i++) {
		EXPECT(fds[i] < FD_SETSIZE);
		FD_SET(fds[i], &watched);
		fd = fds[i] > fd ? fds[i] : fd;
	}
}

CASE_N(epoll, "epoll_wait(2) of N eventfds, all ready", 10, 100, 1000)
{
	EXPECT(epoll_wait(fd, events, (int)N, 0) == (int)N);
}

OPS(epoll, 1000 / N)

SETUP(epoll)
{
	eventfds(t, N, 1);
	events = calloc(N, sizeof(*events));
	EXPECT(events != NULL);
	fd = NEED("CONFIG_EPOLL", epoll_create1(EPOLL_CLOEXEC));
	for (uint64_t i = 0; i < N; i++)
		OK(epoll_ctl(fd, EPOLL_CTL_ADD, fds[i], &(struct epoll_event){.events = EPOLLIN}));
}

CASE(epoll_ctl, "epoll_ctl(2): add an eventfd, delete it")
{
	struct epoll_event in = {.events = EPOLLIN};

	OK(epoll_ctl(fd, EPOLL_CTL_ADD, fds[0], &in));
	OK(epoll_ctl(fd, EPOLL_CTL_DEL, fds[0], NULL));
}

SETUP(epoll_ctl)
{
	eventfds(t, 1, 0);
	fd = NEED("CONFIG_EPOLL", epoll_create1(EPOLL_CLOEXEC));
}

CASE(eventfd, "eventfd(2): add to the counter, read it back")
{
	uint64_t value = 1;

	EXPECT(write(fd, &value, sizeof(value)) == sizeof(value));
	EXPECT(read(fd, &value, sizeof(value)) == sizeof(value) && value == 1);
}

SETUP(eventfd)
{
	fd = NEED("CONFIG_EVENTFD", eventfd(0, EFD_CLOEXEC));
}

/* As nanosleep in calls.c: not so short that it has expired before read(2). */
CASE(timerfd, "timerfd_settime(2) of 50 us, read(2) waits for the expiry")
{
	struct itimerspec soon = {.it_value.tv_nsec = 50000};
	uint64_t times;

	OK(timerfd_settime(fd, 0, &soon, NULL));
	EXPECT(read(fd, &times, sizeof(times)) == sizeof(times) && times == 1);
}

OPS(timerfd, 32)

SETUP(timerfd)
{
	fd = NEED("CONFIG_TIMERFD", timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
}

CASE(timer_settime, "timer_settime(2): arm a timer far off, disarm it")
{
	struct itimerspec later = {.it_value.tv_sec = 100000}, never = {.it_value.tv_sec = 0};

	OK(syscall(SYS_timer_settime, fd, 0, &later, NULL));
	OK(syscall(SYS_timer_settime, fd, 0, &never, NULL));
}

SETUP(timer_settime)
{
	struct sigevent none = {.sigev_notify = SIGEV_NONE};

	NEED("CONFIG_POSIX_TIMERS", syscall(SYS_timer_create, CLOCK_MONOTONIC, &none, &fd));
}

CASE(timer_create, "timer_create(2), timer_delete(2)")
{
	struct sigevent none = {.sigev_notify = SIGEV_NONE};
	int timer;

	OK(syscall(SYS_timer_create, CLOCK_MONOTONIC, &none, &timer));
	OK(syscall(SYS_timer_delete, timer));
}

SETUP(timer_create)
{
	struct sigevent none = {.sigev_notify = SIGEV_NONE};

	NEED("CONFIG_POSIX_TIMERS", syscall(SYS_timer_create, CLOCK_MONOTONIC, &none, &fd));
}

static uint32_t word;

CASE(futex_wake, "futex(2) FUTEX_WAKE, nobody waits")
{
	EXPECT(syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 0);
}

CASE(futex_wait, "futex(2) FUTEX_WAIT, the value has changed")
{
	EXPECT(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0) == -1 &&
	       errno == EAGAIN);
}

/* Many pairs: which of two buckets is locked first hangs on their hashes, so on the address of the mm. */
static uint32_t pairs[2][512];
static unsigned int turn;

CASE(futex_requeue, "futex(2) FUTEX_CMP_REQUEUE, nobody waits")
{
	uint32_t *from = &pairs[0][turn % 512], *to = &pairs[1][turn % 512];

	turn++;
	EXPECT(syscall(SYS_futex, from, FUTEX_CMP_REQUEUE_PRIVATE, 1, 1, to, 0) == 0);
}

CASE(futex_pi, "futex(2) FUTEX_LOCK_PI, FUTEX_UNLOCK_PI: the lock is free")
{
	OK(syscall(SYS_futex, &word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	OK(syscall(SYS_futex, &word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
}

SETUP(futex_pi)
{
	NEED("CONFIG_FUTEX_PI", syscall(SYS_futex, &word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	OK(syscall(SYS_futex, &word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
}

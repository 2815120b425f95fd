/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Operations beside much of their kind. What walks a list or a bitmap is a few instructions
 * with one item in it, as the other cases have, and the call's whole cost with a thousand.
 */
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/msg.h>

#include "parts.h"

#define DESCRIPTORS 900 /* below RLIMIT_NOFILE of 1024 */
#define LOCKS 256
#define MAPPINGS 2000
#define TIMERS 500
#define CHILDREN 64
#define SIGNALS 256
#define MESSAGES 64
#define WATCHED 500
#define NAMES 500

static int fd;

CASE(dup_many, "dup(2), close(2) beside 900 descriptors")
{
	OK(close(OK(dup(fd))));
}

SETUP(dup_many)
{
	fd = file(t, "file", 0);
	for (int i = 0; i < DESCRIPTORS; i++)
		OK(dup(fd));
}

CASE(lock_many, "fcntl(2) F_SETLK: lock and unlock a range beside 256 others")
{
	struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};

	range.l_start = 2 * LOCKS;
	OK(fcntl(fd, F_SETLK, &range));
	range.l_type = F_UNLCK;
	OK(fcntl(fd, F_SETLK, &range));
}

OPS(lock_many, 24)

SETUP(lock_many)
{
	struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};

	fd = file(t, "file", 0);
	for (int i = 0; i < LOCKS; i++) {
		range.l_start = 2 * i;
		OK(fcntl(fd, F_SETLK, &range));
	}
}

CASE(mmap_many, "mmap(2) of a page, munmap(2), beside 2000 mappings")
{
	OK(munmap(OK(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)), PAGE));
}

OPS(mmap_many, 24)

SETUP(mmap_many)
{
	char *at = OK(mmap(NULL, MAPPINGS * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));

	for (size_t i = 0; i < MAPPINGS; i += 2) /* each other one: neighbours are not merged */
		OK(mprotect(at + i * PAGE, PAGE, PROT_READ | PROT_WRITE));
}

static int timer;

CASE(timer_many, "timer_settime(2): arm a timer far off, disarm it, beside 500 armed ones")
{
	struct itimerspec later = {.it_value.tv_sec = 100000}, never = {.it_value.tv_sec = 0};

	OK(syscall(SYS_timer_settime, timer, 0, &later, NULL));
	OK(syscall(SYS_timer_settime, timer, 0, &never, NULL));
}

SETUP(timer_many)
{
	struct sigevent none = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGCHLD};
	struct itimerspec later = {.it_value.tv_sec = 100000};

	NEED("CONFIG_POSIX_TIMERS", syscall(SYS_timer_create, CLOCK_MONOTONIC, &none, &timer));
	for (int i = 0, other; i < TIMERS; i++) {
		later.it_value.tv_sec += 100;
		OK(syscall(SYS_timer_create, CLOCK_MONOTONIC, &none, &other));
		OK(syscall(SYS_timer_settime, other, 0, &later, NULL));
	}
}

CASE(waitid_many, "waitid(2) WNOHANG: all of 64 children still run")
{
	siginfo_t info;

	OK(waitid(P_ALL, 0, &info, WEXITED | WNOHANG));
}

OPS(waitid_many, 24)

SETUP(waitid_many)
{
	for (int i = 0; i < CHILDREN; i++)
		if (HELPER())
			pause();
}

static sigset_t pending;

CASE(sigqueue_many, "kill(2) of itself with a blocked signal, rt_sigtimedwait(2), beside 256")
{
	OK(kill(getpid(), SIGUSR2));
	EXPECT(sigtimedwait(&pending, NULL, &(struct timespec){.tv_sec = 0}) == SIGUSR2);
}

OPS(sigqueue_many, 24)

SETUP(sigqueue_many)
{
	sigset_t both;

	sigemptyset(&pending);
	sigaddset(&pending, SIGUSR2);
	both = pending;
	sigaddset(&both, SIGRTMIN);
	OK(sigprocmask(SIG_BLOCK, &both, NULL));
	for (int i = 0; i < SIGNALS; i++)
		OK(sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = i}));
}

struct message {
	long type;
	char text[64];
};

CASE(msgrcv_many, "msgsnd(2) of 64 bytes, msgrcv(2) by type, beside 64 messages of another")
{
	struct message message = {.type = 2};

	OK(msgsnd(fd, &message, sizeof(message.text), 0));
	EXPECT(msgrcv(fd, &message, sizeof(message.text), 2, 0) == sizeof(message.text));
}

SETUP(msgrcv_many)
{
	struct message message = {.type = 1};

	fd = NEED("CONFIG_SYSVIPC", msgget(IPC_PRIVATE, 0600));
	for (int i = 0; i < MESSAGES; i++)
		OK(msgsnd(fd, &message, sizeof(message.text), 0));
}

TEARDOWN(msgrcv_many)
{
	msgctl(fd, IPC_RMID, NULL);
}

CASE(epoll_many, "epoll_wait(2) of 500 eventfds, one ready")
{
	struct epoll_event event;

	EXPECT(epoll_wait(fd, &event, 1, 0) == 1);
}

SETUP(epoll_many)
{
	struct epoll_event in = {.events = EPOLLIN};

	fd = NEED("CONFIG_EPOLL", epoll_create1(EPOLL_CLOEXEC));
	for (unsigned int i = 0; i < WATCHED; i++)
		OK(epoll_ctl(fd, EPOLL_CTL_ADD, NEED("CONFIG_EVENTFD", eventfd(!i, EFD_CLOEXEC)),
			     &in));
}

CASE(create_many, "creat(2), unlink(2) in a directory of 500 files")
{
	OK(close(OK(open("one", O_CREAT | O_EXCL | O_WRONLY, 0600))));
	OK(unlink("one"));
}

OPS(create_many, 24)

SETUP(create_many)
{
	char name[16];

	for (int i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "file%d", i);
		OK(close(OK(open(name, O_CREAT | O_EXCL | O_WRONLY, 0600))));
	}
}

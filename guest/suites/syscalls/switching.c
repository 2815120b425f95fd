/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From one process to another and back. The other is a helper process inside
 * the case, on the same CPU; the work of all of them counts. Nobody preempts
 * (case.h): an operation is as many switches as it has turns.
 */
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/sem.h>

#include "net.h"

static int there[2], back[2], fd, other;
static char byte;

/* A byte comes in at one descriptor, a byte goes out at the other, until there are no more. */
static void echo(struct wl_task *t, int in, int out)
{
	while (read(in, &byte, 1) == 1)
		EXPECT(write(out, &byte, 1) == 1);
}

static inline void there_and_back(struct wl_task *t, int out, int in)
{
	EXPECT(write(out, &byte, 1) == 1);
	EXPECT(read(in, &byte, 1) == 1);
}

CASE_N(context_switch, "a byte goes round N processes by pipes, as in lat_ctx", 2, 8, 32)
{
	there_and_back(t, there[1], fd);
}

OPS(context_switch, 256 / N)

SETUP(context_switch)
{
	OK(pipe(there));
	fd = there[0];
	for (uint64_t i = 1; i < N; i++) {
		OK(pipe(back));
		if (HELPER())
			echo(t, fd, back[1]);
		fd = back[0];
	}
}

CASE(fifo_pingpong, "a byte to another process and back by named pipes")
{
	there_and_back(t, fd, other);
}

OPS(fifo_pingpong, 32)

SETUP(fifo_pingpong)
{
	OK(mkfifo("there", 0600));
	OK(mkfifo("back", 0600));
	fd = OK(open("there", O_RDWR));
	other = OK(open("back", O_RDWR));
	if (HELPER())
		echo(t, fd, other);
}

CASE(unix_pingpong, "a byte to another process and back by AF_UNIX streams")
{
	there_and_back(t, there[0], there[0]);
}

OPS(unix_pingpong, 32)

SETUP(unix_pingpong)
{
	NEED("CONFIG_UNIX", socketpair(AF_UNIX, SOCK_STREAM, 0, there));
	if (HELPER())
		echo(t, there[1], there[1]);
}

CASE(tcp_pingpong, "a byte to another process and back by TCP on lo")
{
	there_and_back(t, there[0], there[0]);
}

OPS(tcp_pingpong, 16)

SETUP(tcp_pingpong)
{
	tcp_pair(t, there);
	if (HELPER())
		echo(t, there[1], there[1]);
}

CASE(udp_pingpong, "a byte to another process and back by UDP on lo")
{
	there_and_back(t, there[0], there[0]);
}

OPS(udp_pingpong, 16)

SETUP(udp_pingpong)
{
	udp_pair(t, there);
	if (HELPER())
		echo(t, there[1], there[1]);
}

CASE(epoll_pingpong, "a byte to another process, epoll_wait(2) for the answer, read(2)")
{
	struct epoll_event e;

	EXPECT(write(there[1], &byte, 1) == 1);
	EXPECT(epoll_wait(fd, &e, 1, -1) == 1);
	EXPECT(read(back[0], &byte, 1) == 1);
}

OPS(epoll_pingpong, 32)

SETUP(epoll_pingpong)
{
	OK(pipe(there));
	OK(pipe(back));
	fd = NEED("CONFIG_EPOLL", epoll_create1(0));
	OK(epoll_ctl(fd, EPOLL_CTL_ADD, back[0], &(struct epoll_event){.events = EPOLLIN}));
	if (HELPER())
		echo(t, there[0], back[1]);
}

CASE(eventfd_pingpong, "eventfd(2): wake another process, be woken by it")
{
	uint64_t one = 1;

	EXPECT(write(fd, &one, sizeof(one)) == sizeof(one));
	EXPECT(read(other, &one, sizeof(one)) == sizeof(one));
}

OPS(eventfd_pingpong, 32)

SETUP(eventfd_pingpong)
{
	uint64_t one;

	fd = NEED("CONFIG_EVENTFD", eventfd(0, 0));
	other = OK(eventfd(0, 0));
	if (HELPER())
		while (OK(read(fd, &one, sizeof(one))))
			OK(write(other, &one, sizeof(one)));
}

static _Atomic uint32_t *turn;

/* Waits until it is my turn; false where the kernel refuses that. */
static bool wait_turn(uint32_t me)
{
	uint32_t now;

	while ((now = atomic_load(turn)) != me)
		if (syscall(SYS_futex, turn, FUTEX_WAIT, now, NULL, NULL, 0) && errno != EAGAIN &&
		    errno != EINTR)
			return false;
	return true;
}

/* Passes the turn on and waits for it to come back. */
static bool pass(uint32_t to, uint32_t me)
{
	atomic_store(turn, to);
	return syscall(SYS_futex, turn, FUTEX_WAKE, 1, NULL, NULL, 0) >= 0 && wait_turn(me);
}

CASE(futex_pingpong, "futex(2): wake another process, wait for it")
{
	EXPECT(pass(1, 0));
}

OPS(futex_pingpong, 32)

SETUP(futex_pingpong)
{
	turn = NEED("CONFIG_FUTEX", mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
	if (HELPER()) {
		EXPECT(wait_turn(1));
		while (pass(0, 1))
			;
	}
}

CASE(sem_pingpong, "semop(2): up for another process, down when it answers")
{
	OK(semop(fd, &(struct sembuf){.sem_num = 0, .sem_op = 1}, 1));
	OK(semop(fd, &(struct sembuf){.sem_num = 1, .sem_op = -1}, 1));
}

OPS(sem_pingpong, 32)

SETUP(sem_pingpong)
{
	fd = NEED("CONFIG_SYSVIPC", semget(IPC_PRIVATE, 2, 0600));
	if (HELPER())
		for (;;) {
			OK(semop(fd, &(struct sembuf){.sem_num = 0, .sem_op = -1}, 1));
			OK(semop(fd, &(struct sembuf){.sem_num = 1, .sem_op = 1}, 1));
		}
}

TEARDOWN(sem_pingpong)
{
	semctl(fd, 0, IPC_RMID);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "objects.h"

#define CACHED_AT (1 << 20)

int object_file(unsigned int nr)
{
	(void)nr;
	return open("/dev/null", O_RDONLY);
}

static int one_end(int error, const int ends[2])
{
	if (error)
		return -1;
	close(ends[1]);
	return ends[0];
}

int object_pipe(unsigned int nr)
{
	int ends[2];

	(void)nr;
	return one_end(pipe(ends), ends);
}

int object_socket(unsigned int nr)
{
	int ends[2];

	return one_end(socketpair(AF_UNIX, nr % 2 ? SOCK_STREAM : SOCK_DGRAM, 0, ends), ends);
}

/* It counts what is under way for each CPU (packet_alloc_pending, net/packet/af_packet.c). */
int object_packet(unsigned int nr)
{
	(void)nr;
	return socket(AF_PACKET, SOCK_DGRAM, 0);
}

int object_eventfd(unsigned int nr)
{
	return eventfd(nr, 0);
}

int object_epoll(unsigned int nr)
{
	(void)nr;
	return epoll_create1(0);
}

int object_timerfd(unsigned int nr)
{
	(void)nr;
	return timerfd_create(CLOCK_MONOTONIC, 0);
}

int object_signalfd(unsigned int nr)
{
	sigset_t none;

	(void)nr;
	sigemptyset(&none);
	return signalfd(-1, &none, 0);
}

int object_inotify(unsigned int nr)
{
	(void)nr;
	return inotify_init1(0);
}

int object_memfd(unsigned int nr)
{
	(void)nr;
	return memfd_create("scattered", 0);
}

/* Names of pages that are cached: one far off in a file has nodes of its own. */
int object_cached(unsigned int nr)
{
	int fd = memfd_create("cached", 0);

	(void)nr;
	if (fd >= 0 && pwrite(fd, "", 1, CACHED_AT) != 1) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Neighbours differ, or they would be one. */
int object_mapping(unsigned int nr)
{
	void *p = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), nr % 2 ? PROT_READ : PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? -1 : 0;
}

void object_close(int fd)
{
	close(fd);
}

/* A task, its memory, mappings, signals, files. */
int object_process(unsigned int nr)
{
	pid_t pid = fork();

	(void)nr;
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

static __attribute__((noreturn)) int stay(void *nr)
{
	(void)nr;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

int object_task(unsigned int nr)
{
	static char stacks[TASKS][2048] __attribute__((aligned(16)));

	if (nr >= TASKS)
		return -1;
	return clone(stay, stacks[nr] + sizeof(stacks[nr]),
		     CLONE_VM | CLONE_FS | CLONE_FILES | SIGCHLD, NULL);
}

void object_end_process(int pid)
{
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

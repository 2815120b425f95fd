/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where objects of the kernel lie, as a seed says: before a guest of several CPUs is stopped,
 * each of its CPUs makes objects of many kinds and ends most of them. What lies beside what in a
 * line is decided there, and it decides what crosses between CPUs: contention/create_one of 6.12
 * had 7 % more transfers, and of the directory's lock 73 % more, with a longer command line, under
 * every seed of one boot. No kernel promises either.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "init.h"
#include "objects.h"

#define MOST 64 /* of a kind on a CPU: a slab or more of most */
#define PROCESSES 8
#define PAGES 512
#define MESSAGE_MOST 4096
#define FOLDER "/tmp/.scattered"

/* Objects by a number that is not below 0; what ends one takes that number. */
struct kind {
	int (*make)(unsigned int nr);
	void (*end)(int made);
	unsigned int most;
	bool all_end; /* none stays: it would be seen, or be too many (fs.inotify.max_user_instances is 128) */
};

static void path_of(char path[64], unsigned int nr)
{
	snprintf(path, 64, FOLDER "/%d-%u", sched_getcpu(), nr);
}

static int named_file(unsigned int nr)
{
	char path[64];
	int fd;

	path_of(path, nr);
	fd = open(path, O_CREAT | O_EXCL | O_RDWR, 0600);
	if (fd < 0)
		return -1;
	close(fd);
	return (int)nr;
}

static void end_file(int nr)
{
	char path[64];

	path_of(path, (unsigned int)nr);
	unlink(path);
}

static int directory(unsigned int nr)
{
	char path[64];

	path_of(path, nr + MOST);
	return mkdir(path, 0700) ? -1 : (int)nr;
}

static void end_directory(int nr)
{
	char path[64];

	path_of(path, (unsigned int)nr + MOST);
	rmdir(path);
}

/* kmalloc's caches, whatever the size: a queue with one message. */
static int message(unsigned int nr)
{
	static struct {
		long type;
		char text[MESSAGE_MOST];
	} said = {.type = 1};
	int queue = msgget(IPC_PRIVATE, 0600);

	if (queue >= 0)
		msgsnd(queue, &said, 8u << nr % 10, IPC_NOWAIT);
	return queue;
}

static void end_message(int queue)
{
	msgctl(queue, IPC_RMID, NULL);
}

static const struct kind kinds[] = {
	{object_process, object_end_process, PROCESSES, true},
	{object_file, object_close, MOST, false},
	{named_file, end_file, MOST, false},
	{directory, end_directory, MOST, false},
	{object_memfd, object_close, MOST, false},
	{object_pipe, object_close, MOST, false},
	{object_socket, object_close, MOST, false},
	{object_eventfd, object_close, MOST, false},
	{object_epoll, object_close, MOST, false},
	{object_timerfd, object_close, MOST, false},
	{object_signalfd, object_close, MOST, false},
	{object_inotify, object_close, MOST, true},
	{message, end_message, MOST, false},
};

/* What is made next lies where one ended last, in most allocators; so they end in any order. */
static void vary(const struct kind *kind, uint64_t *state)
{
	unsigned int wanted =
		kind->most / 2 + (unsigned int)(random_next(state) % (kind->most / 2));
	unsigned int n = 0, stay, nr;
	int made[MOST];

	for (nr = 0; nr < wanted; nr++) {
		made[n] = kind->make(nr);
		n += made[n] >= 0;
	}
	stay = kind->all_end ? 0 : (unsigned int)(random_next(state) % (kind->most / 4));
	while (n > stay) {
		unsigned int at = (unsigned int)(random_next(state) % n);

		kind->end(made[at]);
		made[at] = made[--n];
	}
}

static void vary_all(uint64_t *state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = random_next(state) % PAGES, i;
	char *p;

	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		vary(&kinds[i], state);
	p = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	while (p != MAP_FAILED && pages--)
		p[pages * page] = 1;
}

/* The process that keeps what is left: PID 1 has no file more, and hands none down. */
static void keep(uint64_t state, int cpu, int says)
{
	cpu_set_t one;
	char byte = 1;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (!sched_setaffinity(0, sizeof(one), &one))
		vary_all(&state);
	if (write(says, &byte, 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

void scatter(uint64_t seed)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t state = seed;
	int cpu, ends[2];
	char byte;

	mkdir(FOLDER, 0700);
	for (cpu = 0; cpu < cpus; cpu++) {
		uint64_t own = random_next(&state);

		if (pipe2(ends, O_CLOEXEC))
			return;
		if (!fork())
			keep(own, cpu, ends[1]);
		close(ends[1]);
		while (read(ends[0], &byte, 1) < 0 && errno == EINTR)
			;
		close(ends[0]);
	}
}

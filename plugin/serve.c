/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * At the mark ORDER a guest is told what to do, by writing into its memory: first its job
 * list, then its seed. They are in a file (order=PATH), or come one after the other
 * (serve=FD), each for a process of its own: a restored guest becomes one for each job
 * list, and each of these, once it has rehearsed that, one for each seed. What was
 * translated so far is shared. Each goes on as if it had been restored for that one alone.
 *
 * A fork leaves the calling thread only, the vCPU's. QEMU's lock is held over it,
 * so that no other thread is inside; then the child starts its main loop anew. Its
 * RCU thread is not: what it would free is freed by the end of the process. So
 * are QEMU's event descriptors, which would be shared with the parent.
 *
 * What is called of QEMU is no interface of plugins (machine/orders.py looks whether it is there).
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kdelta.h"
#include "qemu_api.h"

#define ORDER_ADDRESS 0x4b44000000u /* guest/init_order.c */
#define ORDER_MAX (64u << 10)
#define SEED_ADDRESS (ORDER_ADDRESS + ORDER_MAX)
#define SEED_DIGITS 16u
#define PATH_MAX_BYTES 4096
#define STACK_BYTES (8u << 20)

static struct {
	void (*lock)(const char *file, int line);
	void (*unlock)(void);
	int (*main_loop)(void);
	void (*notify)(void);
	void *(*cpu)(int index);
	int (*memory)(void *cpu, uint64_t at, void *data, uint64_t size, bool write);
} qemu;

static char order[PATH_MAX_BYTES + ORDER_MAX]; /* a packet, or the text of a file */
static size_t order_bytes;
static int host = -1;	      /* a socket of packets; the next ORDER waits for them */
static int witness = -1;      /* in a child: a pipe whose other end the host has */
static char folder[PATH_MAX]; /* of the files that QEMU writes to, as /proc has it: without links */

static bool find_qemu(void)
{
	*(void **)&qemu.lock = qemu_function("bql_lock_impl", "qemu_mutex_lock_iothread_impl");
	*(void **)&qemu.unlock = qemu_function("bql_unlock", "qemu_mutex_unlock_iothread");
	*(void **)&qemu.main_loop = qemu_function("qemu_main_loop", NULL);
	*(void **)&qemu.notify = qemu_function("qemu_notify_event", NULL);
	*(void **)&qemu.cpu = qemu_function("qemu_get_cpu", NULL);
	*(void **)&qemu.memory = qemu_function("cpu_memory_rw_debug", NULL);
	if (qemu.lock && qemu.unlock && qemu.main_loop && qemu.notify && qemu.cpu && qemu.memory)
		return true;
	fprintf(stderr, "kdelta plugin: this QEMU does not export what orders need\n");
	return false;
}

bool order_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, order, ORDER_MAX);

	if (n <= 0)
		fprintf(stderr, "kdelta plugin: no order can be read from %s\n", path);
	order_bytes = n > 0 ? (size_t)n : 0;
	if (fd >= 0)
		close(fd);
	if (n > 0 && (n <= SEED_DIGITS || order[SEED_DIGITS] != '\n')) {
		fprintf(stderr, "kdelta plugin: the order in %s does not begin with a seed\n",
			path);
		return false;
	}
	return n > 0 && find_qemu();
}

bool serve_open(int fd, const char *out)
{
	const char *name = strrchr(out, '/');

	if (!name || !find_qemu() || !forks_only()) {
		fprintf(stderr, "kdelta plugin: serve= takes out= with a folder, and seccomp\n");
		return false;
	}
	host = fd;
	snprintf(order, sizeof(order), "%.*s", (int)(name - out), out);
	return realpath(order, folder);
}

static bool tell(const char *text, size_t n, bool is_seed)
{
	return n <= (is_seed ? SEED_DIGITS : ORDER_MAX) &&
	       !qemu.memory(qemu.cpu(0), is_seed ? SEED_ADDRESS : ORDER_ADDRESS,
			    (void *)(uintptr_t)text, n, true);
}

static void *run_main_loop(void *unused)
{
	(void)unused;
	qemu.lock(__FILE__, __LINE__);
	qemu.notify();
	exit(qemu.main_loop());
}

static bool start_main_loop(void)
{
	void *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	pthread_attr_t attr;
	pthread_t thread;

	/* Not one that glibc has left over: QEMU's lists still lead into those. */
	return stack != MAP_FAILED && !pthread_attr_init(&attr) &&
	       !pthread_attr_setstack(&attr, stack, STACK_BYTES) &&
	       !pthread_create(&thread, &attr, run_main_loop, NULL);
}

/* The file of the same name in the child's folder, with what it has so far. */
static int own_file(int fd, const char *name, const char *into)
{
	char path[PATH_MAX_BYTES], block[4096];
	int from, to;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	from = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "%s/%s", into, name);
	to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	while (from >= 0 && to >= 0 && (n = read(from, block, sizeof(block))) > 0)
		if (write(to, block, (size_t)n) != n)
			return -1;
	close(from);
	return to;
}

/* A descriptor of its own in place of one that it shares with the parent; -1: that failed, -2: it stays. */
static int replacement(int fd, const char *is, const char *into)
{
	size_t n = strlen(folder);
	int ends[2];

	if (!strcmp(is, "anon_inode:[eventfd]"))
		return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (!strncmp(is, "socket:", 7)) /* its other end stays open, and silent */
		return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) ? -1 : ends[0];
	if (!strncmp(is, folder, n) && is[n] == '/' && (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY)
		return own_file(fd, is + n + 1, into);
	return -2;
}

static bool take_apart(const char *into)
{
	DIR *all = opendir("/proc/self/fd");
	struct dirent *e;
	bool good = all;

	while (good && (e = readdir(all))) {
		char is[PATH_MAX_BYTES];
		int fd = atoi(e->d_name), own;
		ssize_t n = readlinkat(dirfd(all), e->d_name, is, sizeof(is) - 1);

		if (n < 0 || fd < 3 || fd == dirfd(all) || fd == witness || fd == host)
			continue;
		is[n] = '\0';
		own = replacement(fd, is, into);
		if (own >= 0)
			good = dup3(own, fd, O_CLOEXEC) == fd && !close(own);
		else
			good = own == -2;
	}
	if (all)
		closedir(all);
	return good;
}

/* Of a child to be: a pipe that ends when it does, and where it is told what its children do, or -1. */
struct ends {
	int witness, host;
};

/* One packet: a folder, a NUL, the text; with it, one or both ends. */
static bool next_order(struct ends *its)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(*its))];
	} control;
	struct iovec data = {order, sizeof(order)};
	struct msghdr m = {
		.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n;

	while ((n = recvmsg(host, &m, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
		;
	if (n <= 0 || !CMSG_FIRSTHDR(&m) || CMSG_FIRSTHDR(&m)->cmsg_type != SCM_RIGHTS)
		return false;
	*its = (struct ends){-1, -1};
	memcpy(its, CMSG_DATA(CMSG_FIRSTHDR(&m)), CMSG_FIRSTHDR(&m)->cmsg_len - CMSG_LEN(0));
	order_bytes = (size_t)n;
	return memchr(order, 0, order_bytes);
}

static void be_child(const struct ends *mine, bool with_seed)
{
	size_t path = strlen(order) + 1;
	char said[32];
	int n = snprintf(said, sizeof(said), "%d\n", (int)getpid());

	close(witness); /* the parent's: it ends with the parent */
	close(host);
	witness = mine->witness;
	host = mine->host;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (write(witness, said, (size_t)n) != n || !take_apart(order) || !start_main_loop() ||
	    (host < 0 && !threads_only()) || !realpath(order, folder) ||
	    !tell(order + path, order_bytes - path, with_seed)) {
		fprintf(stderr, "kdelta plugin: a forked QEMU cannot go on: %s\n", strerror(errno));
		_exit(2);
	}
	order_bytes = 0;
}

/* QEMU keeps the guest's memory from its children (physmem.c: MADV_DONTFORK); these shall have it. */
static bool share_memory(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[PATH_MAX_BYTES + 128], how[5];
	unsigned long from, to;

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %4s", &from, &to, how) == 3 && !strcmp(how, "rw-p"))
			madvise((void *)from, to - from, MADV_DOFORK);
	return maps && !fclose(maps);
}

static __attribute__((noreturn)) void fail(const char *what)
{
	fprintf(stderr, "kdelta plugin: %s: %s\n", what, strerror(errno));
	_exit(2);
}

/* Returns in children alone. */
static void serve(bool seeds)
{
	struct ends its;
	pid_t pid;

	if (!share_memory())
		fail("the guest's memory cannot be shared");
	if (witness >= 0 && write(witness, "ready\n", 6) != 6)
		fail("the host does not listen");
	while (next_order(&its)) {
		fflush(NULL);
		qemu.lock(__FILE__, __LINE__);
		pid = fork();
		qemu.unlock();
		if (!pid) {
			be_child(&its, seeds);
			return;
		}
		if (pid < 0)
			fail("QEMU cannot be forked");
		close(its.witness);
		close(its.host);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
	_exit(0);
}

/* What a file has for both marks. */
static bool tell_of_file(bool seed)
{
	size_t head = SEED_DIGITS + 1;

	return seed ? tell(order, SEED_DIGITS, true)
		    : tell(order + head, order_bytes - head, false);
}

void order_mark(bool seed)
{
	if (host >= 0)
		serve(seed);
	else if (order_bytes && !tell_of_file(seed))
		fail("the guest has no place for an order");
}

void serve_ended(void)
{
	if (witness >= 0)
		_exit(write(witness, "ended\n", 6) == 6 ? 0 : 2);
}

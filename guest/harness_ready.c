/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness_ready.h"
#include "stream.h"

#define AGAIN SIZE_MAX

/* The one that goes on is forked now; it leads a session as this one has. Its parent will be who adopts orphans. */
static void again(int fd)
{
	pid_t pid;
	int says;

	if (read(fd, &says, sizeof(says)) != sizeof(says))
		_exit(1);
	pid = fork();
	if (!pid) {
		setsid();
		return;
	}
	write_all(says, (const char *)&pid, sizeof(pid));
	_exit(0);
}

/* Its length comes first: others that were forked in between keep the pipe open. */
static void take_order(int fd, struct text *order)
{
	char buf[4096];
	size_t left;

	do {
		if (read(fd, &left, sizeof(left)) != sizeof(left))
			return;
		if (left == AGAIN)
			again(fd);
	} while (left == AGAIN);
	while (left) {
		ssize_t n = read(fd, buf, left < sizeof(buf) ? left : sizeof(buf));

		if (n <= 0)
			return;
		text_bytes(order, buf, (size_t)n);
		left -= (size_t)n;
	}
	close(fd);
}

/*
 * What the kernel does not know of its command line becomes PID 1's environment:
 * above the stack, which would begin at another place of its page, and reach into
 * another page, with each.
 */
static inline __attribute__((always_inline)) void from_top_of_page(void)
{
	char *below = __builtin_alloca((uintptr_t)__builtin_frame_address(0) & 4095);

	__asm__ __volatile__("" : : "r"(below) : "memory");
}

int ready_fork(struct ready *r, void (*run)(void *arg, const char *order, size_t n), void *arg)
{
	struct text order = {0};
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return -1;
	r->order = ends[1];
	r->pid = fork();
	if (!r->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setsid();
		close(ends[1]);
		take_order(ends[0], &order);
		from_top_of_page();
		if (order.len)
			run(arg, order.s, order.len);
		_exit(0);
	}
	close(ends[0]);
	if (r->pid > 0)
		return 0;
	close(ends[1]);
	r->pid = 0;
	return -1;
}

pid_t ready_go(struct ready *r, const char *order, size_t n)
{
	pid_t pid = r->pid;
	int error = write_all(r->order, &n, sizeof(n)) ?: write_all(r->order, order, n);

	close(r->order);
	r->pid = 0;
	return error ? -1 : pid;
}

int ready_again(struct ready *r, const int says[2])
{
	const size_t word = AGAIN;
	pid_t pid = -1;

	if (write_all(r->order, (const char *)&word, sizeof(word)) ||
	    write_all(r->order, (const char *)&says[1], sizeof(says[1])) ||
	    read(says[0], &pid, sizeof(pid)) != sizeof(pid) || pid <= 0)
		return -1;
	while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
		;
	r->pid = pid;
	return 0;
}

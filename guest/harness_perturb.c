/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A deterministic disturbance of the guest. An exact measurement repeats bit
 * for bit, which says nothing about how it moves with what no kernel promises:
 * which slab object, page and process number comes next, what the random
 * generator says. Each seed is another such state.
 */
#include <fcntl.h>
#include <linux/random.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/*
 * Credits 512 bits to the kernel's generator and makes it draw a new key.
 * Without it the generator may never be ready in a guest with no devices, and
 * every caller pays for that on its own. Only root may; others change nothing.
 */
void crng_seed(uint64_t seed)
{
	struct {
		struct rand_pool_info info;
		uint64_t bytes[8];
	} pool = {.info = {.entropy_count = 512, .buf_size = sizeof(pool.bytes)}};
	int fd = open("/dev/urandom", O_RDWR | O_CLOEXEC), i;

	if (fd < 0)
		return;
	for (i = 0; i < 8; i++) {
		uint64_t r = next_random(&seed);

		memcpy((char *)pool.info.buf + i * 8, &r, sizeof(r));
	}
	if (!ioctl(fd, RNDADDENTROPY, &pool.info))
		ioctl(fd, RNDRESEEDCRNG);
	close(fd);
}

/* Pages, files and pipes that stay, and process numbers that are used up. */
static void hold(uint64_t *state)
{
	uint64_t pages = 16 + next_random(state) % 512, files = next_random(state) % 96;
	uint64_t pipes = next_random(state) % 48, forks = next_random(state) % 16;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
	int ends[2];

	for (; p != MAP_FAILED && pages; pages--)
		p[(pages - 1) * page] = 1;
	while (files-- && open("/dev/null", O_RDONLY) >= 0)
		;
	while (pipes-- && !pipe(ends))
		;
	while (forks--) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		if (pid > 0)
			waitpid(pid, NULL, 0);
	}
}

pid_t perturb_start(uint64_t seed, unsigned int job)
{
	uint64_t state = seed ^ (uint64_t)job << 32;
	int ready[2];
	pid_t pid;
	char byte;

	next_random(&state);
	crng_seed(state);
	if (pipe2(ready, O_CLOEXEC))
		return -1;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		hold(&state);
		byte = 1;
		if (write(ready[1], &byte, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	while (pid > 0 && read(ready[0], &byte, 1) < 0)
		;
	close(ready[0]);
	return pid;
}

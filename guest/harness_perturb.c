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
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"
#include "objects.h"

#define PIDS_FROM 400 /* above those that the kernel has started */
#define PIDS 3072
#define REST_NS 250000000u

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
		uint64_t r = random_next(&seed);

		memcpy((char *)pool.info.buf + i * 8, &r, sizeof(r));
	}
	if (!ioctl(fd, RNDADDENTROPY, &pool.info))
		ioctl(fd, RNDRESEEDCRNG);
	close(fd);
}

/*
 * A new slab is shuffled with a few of the kernel's u32 (CONFIG_SLAB_FREELIST_RANDOM), and a
 * new tmpfs inode has one as its generation: drawn here, it is not the slab's that fills the buffer.
 */
void crng_renew(void)
{
	int fd = open("/dev/urandom", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return;
	ioctl(fd, RNDRESEEDCRNG);
	close(fd);
	fd = memfd_create("u32", MFD_CLOEXEC);
	if (fd >= 0)
		close(fd);
}

/*
 * How many of each a seed holds: from one, so that a rehearsal (seed 0) has made each, to as many as
 * the kernel hands out together (a slab, a CPU's sheaf), so that any place in one may come next,
 * whatever a kernel has left there when it has booted. They are not drawn but spread evenly over any few seeds that follow each other, by
 * multiples of the golden ratio and of square roots (Kronecker sequences; Weyl, Math. Ann. 77,
 * 1916): of 16 pipes, seeds 1 to 8 had drawn 5 to 10.
 */
#define PAGES_PART 0x4d82b446159f360fu
#define PAGES_BITS 7
#define PERCPU_PART 0x9b05688c2b3e6c1fu
#define PERCPU_BITS 6
#define GAPS_PART 0x5be0cd19137e2179u
#define GAPS_BITS 4
#define PROCESSES_PART 0x298b075b4b6a5240u
#define PROCESSES_BITS 2
#define TASKS_PART 0x1f83d9abfb41bd6bu
#define TASKS_BITS 4

static const struct {
	int (*make)(unsigned int nr);
	uint64_t part;	   /* of 2^64 */
	unsigned int bits; /* fewer than 1 << bits */
} held[] = {
	{object_pipe, 0x9e3779b97f4a7c15u, 6},	  {object_file, 0x6a09e667f3bcc908u, 6},
	{object_memfd, 0xbb67ae8584caa73bu, 6},	  {object_socket, 0x7311c2812425cfa0u, 4},
	{object_eventfd, 0xa54ff53a5f1d36f1u, 5}, {object_epoll, 0x314d14951b3e6a83u, 4},
	{object_timerfd, 0x510e527fade682d1u, 4}, {object_inotify, 0xdf7bd629e9db362fu, 3},
	{object_mapping, 0xcbbb9d5dc1059ed8u, 6}, {object_cached, 0x629a292a367cd507u, 4},
};

static unsigned int few(uint64_t seed, uint64_t part, unsigned int bits)
{
	return (unsigned int)(seed * part >> (64 - bits));
}

static void hold_pages(unsigned int pages)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);

	for (; p != MAP_FAILED && pages; pages--)
		p[(pages - 1) * page] = 1;
}

/* Those of a process end with it, and none stays: it would be seen. */
static void use_processes(int (*make)(unsigned int nr), unsigned int n)
{
	int made[TASKS];
	unsigned int i;

	for (i = 0; i < n && i < TASKS; i++)
		made[i] = make(i);
	while (i--)
		if (made[i] > 0)
			object_end_process(made[i]);
}

/*
 * What follows is to find gaps of its size in the CPUs' own memory, or none, by the seed: where the
 * search for one begins and ends moves mount(2) by 6 % (pcpu_alloc_area, mm/percpu.c).
 */
static void leave_gaps(uint64_t seed)
{
	unsigned int n = 1 + few(seed, PERCPU_PART, PERCPU_BITS),
		     gaps = few(seed, GAPS_PART, GAPS_BITS), i;
	int made[1 << PERCPU_BITS];

	for (i = 0; i < n; i++) {
		made[i] = object_packet(i);
		if (made[i] < 0)
			return; /* this kernel has none, and may have looked for a module */
	}
	for (i = 0; i < gaps && 2 * i < n; i++)
		object_close(made[2 * i]);
}

static void hold(uint64_t seed, bool in_guest)
{
	size_t i;
	unsigned int nr;

	/* First: of the files, names and inodes that go with them the rest makes use. */
	if (in_guest)
		leave_gaps(seed);
	for (i = 0; i < sizeof(held) / sizeof(*held); i++)
		for (nr = 1 + few(seed, held[i].part, held[i].bits); nr; nr--)
			held[i].make(nr);
	use_processes(object_process, few(seed, PROCESSES_PART, PROCESSES_BITS));
	use_processes(object_task, few(seed, TASKS_PART, TASKS_BITS));
	hold_pages(16 + few(seed, PAGES_PART, PAGES_BITS));
}

static void hold_until_killed(uint64_t seed, const struct holder *holder)
{
	char byte = 1;

	hold(seed, holder->in_guest);
	if (write(holder->says[1], &byte, 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static void holder_with_order(void *arg, const char *order, size_t n)
{
	const struct holder *holder = arg;
	uint64_t seed = 0;

	memcpy(&seed, order, n < sizeof(seed) ? n : sizeof(seed));
	hold_until_killed(seed, holder);
}

/* Where the next process number is said; only a kernel with CONFIG_CHECKPOINT_RESTORE has it. */
static int last_pid = -1;

static void open_last_pid(void)
{
	if (last_pid < 0)
		last_pid = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
}

int perturb_prepare(struct holder *holder)
{
	open_last_pid();
	holder->in_guest = true;
	if (pipe2(holder->says, O_CLOEXEC))
		return -1;
	return ready_fork(&holder->ready, holder_with_order, holder);
}

static pid_t start_holder(struct holder *holder, uint64_t seed)
{
	pid_t pid;

	if (pipe2(holder->says, O_CLOEXEC))
		return -1;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		hold_until_killed(seed, holder);
	}
	return pid;
}

uint64_t perturb_ns(uint64_t seed, uint32_t nr, uint64_t below)
{
	uint64_t state = seed << 16 ^ nr;

	return random_next(&state) % below;
}

void perturb_rest(void)
{
	nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
}

pid_t perturb_start(uint64_t seed, struct holder *holder)
{
	uint64_t state = seed;
	pid_t pid;
	char byte;

	random_next(&state);
	crng_seed(state);
	open_last_pid();
	if (last_pid >= 0)
		dprintf(last_pid, "%u", PIDS_FROM + (unsigned int)(random_next(&state) % PIDS));
	if (holder->ready.pid)
		pid = ready_go(&holder->ready, (const char *)&seed, sizeof(seed));
	else
		pid = start_holder(holder, seed);
	if (pid < 0)
		return -1;
	close(holder->says[1]);
	while (read(holder->says[0], &byte, 1) < 0)
		;
	close(holder->says[0]);
	return pid;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* io_uring: requests by the ring, one call to submit them and wait. */
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <sys/eventfd.h>

#include "parts.h"

static int fd, pair[2];
static char *buf;

static struct {
	int fd;
	_Atomic uint32_t *sq_tail, *cq_head;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
	uint32_t mask;
} ring;

static void ring_setup(struct wl_task *t)
{
	struct io_uring_params p = {.features = 0};
	uint32_t i, *array;
	char *sq, *cq;

	ring.fd = (int)NEED("CONFIG_IO_URING", syscall(SYS_io_uring_setup, 64, &p));
	sq = OK(mmap(NULL, p.sq_off.array + p.sq_entries * sizeof(uint32_t), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_SQ_RING));
	cq = OK(mmap(NULL, p.cq_off.cqes + p.cq_entries * sizeof(*ring.cqes),
		     PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd,
		     IORING_OFF_CQ_RING));
	ring.sqes = OK(mmap(NULL, p.sq_entries * sizeof(*ring.sqes), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_SQES));
	array = (uint32_t *)(sq + p.sq_off.array);
	for (i = 0; i < p.sq_entries; i++)
		array[i] = i;
	ring.sq_tail = (_Atomic uint32_t *)(sq + p.sq_off.tail);
	ring.cq_head = (_Atomic uint32_t *)(cq + p.cq_off.head);
	ring.cqes = (struct io_uring_cqe *)(cq + p.cq_off.cqes);
	ring.mask = p.sq_entries - 1;
}

/* n copies of one request, submitted and waited for with one call; how many of them said `res`. */
static uint64_t ring_run(const struct io_uring_sqe *sqe, uint64_t n, int32_t res)
{
	uint32_t tail = atomic_load(ring.sq_tail), head = atomic_load(ring.cq_head);
	uint64_t i, good = 0;

	for (i = 0; i < n; i++)
		ring.sqes[tail++ & ring.mask] = *sqe;
	atomic_store(ring.sq_tail, tail);
	if (syscall(SYS_io_uring_enter, ring.fd, n, n, IORING_ENTER_GETEVENTS, NULL, 0) != (long)n)
		return 0;
	for (i = 0; i < n; i++)
		good += ring.cqes[head++ & (2 * ring.mask + 1)].res == res;
	atomic_store(ring.cq_head, head);
	return good;
}

CASE_N(io_uring_nop, "io_uring_enter(2): N times IORING_OP_NOP", 1, 32)
{
	EXPECT(ring_run(&(struct io_uring_sqe){.opcode = IORING_OP_NOP}, N, 0) == N);
}

SETUP(io_uring_nop)
{
	ring_setup(t);
}

CASE(io_uring_read, "io_uring_enter(2): IORING_OP_READ of 512 bytes of /dev/zero")
{
	struct io_uring_sqe read = {
		.opcode = IORING_OP_READ, .fd = fd, .addr = (uintptr_t)buf, .len = 512};

	EXPECT(ring_run(&read, 1, 512) == 1);
}

SETUP(io_uring_read)
{
	ring_setup(t);
	fd = OK(open("/dev/zero", O_RDONLY | O_CLOEXEC));
	buf = memory(t, PAGE);
}

CASE(io_uring_read_fixed,
     "io_uring_enter(2): IORING_OP_READ_FIXED of a page of tmpfs, file and buffer registered")
{
	struct io_uring_sqe read = {.opcode = IORING_OP_READ_FIXED,
				    .flags = IOSQE_FIXED_FILE,
				    .addr = (uintptr_t)buf,
				    .len = PAGE};

	EXPECT(ring_run(&read, 1, (int32_t)PAGE) == 1);
}

SETUP(io_uring_read_fixed)
{
	struct iovec page;

	ring_setup(t);
	fd = file(t, "file", PAGE);
	buf = memory(t, PAGE);
	page = (struct iovec){.iov_base = buf, .iov_len = PAGE};
	OK(syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_BUFFERS, &page, 1));
	OK(syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_FILES, &fd, 1));
}

CASE(io_uring_poll, "io_uring_enter(2): IORING_OP_POLL_ADD of an eventfd that is ready")
{
	struct io_uring_sqe poll = {
		.opcode = IORING_OP_POLL_ADD, .fd = fd, .poll32_events = POLLIN};

	EXPECT(ring_run(&poll, 1, POLLIN) == 1);
}

SETUP(io_uring_poll)
{
	ring_setup(t);
	fd = NEED("CONFIG_EVENTFD", eventfd(1, EFD_CLOEXEC));
}

CASE(io_uring_send,
     "io_uring_enter(2): IORING_OP_SEND of a byte to an AF_UNIX stream, then IORING_OP_RECV")
{
	struct io_uring_sqe sent = {
		.opcode = IORING_OP_SEND, .fd = pair[0], .addr = (uintptr_t)buf, .len = 1};
	struct io_uring_sqe received = {
		.opcode = IORING_OP_RECV, .fd = pair[1], .addr = (uintptr_t)buf, .len = 1};

	EXPECT(ring_run(&sent, 1, 1) == 1);
	EXPECT(ring_run(&received, 1, 1) == 1);
}

SETUP(io_uring_send)
{
	ring_setup(t);
	buf = memory(t, PAGE);
	NEED("CONFIG_UNIX", socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
}

CASE(io_uring_openat,
     "io_uring_enter(2): IORING_OP_OPENAT into a registered slot, IORING_OP_CLOSE of it")
{
	struct io_uring_sqe opened = {.opcode = IORING_OP_OPENAT,
				      .fd = AT_FDCWD,
				      .addr = (uintptr_t) "file",
				      .open_flags = O_RDONLY,
				      .file_index = 1};
	struct io_uring_sqe closed = {.opcode = IORING_OP_CLOSE, .file_index = 1};

	EXPECT(ring_run(&opened, 1, 0) == 1);
	EXPECT(ring_run(&closed, 1, 0) == 1);
}

SETUP(io_uring_openat)
{
	static const int none = -1;

	ring_setup(t);
	OK(close(file(t, "file", 0)));
	NEED("Linux 5.15",
	     syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_FILES, &none, 1));
}

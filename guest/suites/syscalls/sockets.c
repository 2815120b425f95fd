/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sockets of one process: made, connected, filled and emptied. The network is lo. */
#include <arpa/inet.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <sys/un.h>

#include "net.h"

static int fd, pair[2], listener;
static char *buf;
static struct sockaddr_in address;

CASE(socketpair, "socketpair(2) of AF_UNIX, close(2) of both")
{
	int made[2];

	OK(socketpair(AF_UNIX, SOCK_STREAM, 0, made));
	OK(close(made[0]));
	OK(close(made[1]));
}

OPS(socketpair, 32)

SETUP(socketpair)
{
	NEED("CONFIG_UNIX", socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
}

CASE(socket_udp, "socket(2) of UDP, close(2)")
{
	OK(close(OK(socket(AF_INET, SOCK_DGRAM, 0))));
}

OPS(socket_udp, 32)

SETUP(socket_udp)
{
	fd = NEED("CONFIG_INET", socket(AF_INET, SOCK_DGRAM, 0));
}

CASE(socket_tcp, "socket(2) of TCP, close(2)")
{
	OK(close(OK(socket(AF_INET, SOCK_STREAM, 0))));
}

OPS(socket_tcp, 32)

SETUP(socket_tcp)
{
	fd = NEED("CONFIG_INET", socket(AF_INET, SOCK_STREAM, 0));
}

CASE_N(send, "send(2) of N bytes to an AF_UNIX stream", 1, 96000)
{
	EXPECT(send(pair[0], buf, N, MSG_DONTWAIT) == (ssize_t)N);
}

OPS(send, 1000000 / N)

AFTER(send)
{
	EXPECT(recv(pair[1], buf, N, MSG_WAITALL) == (ssize_t)N);
}

SETUP(send)
{
	NEED("CONFIG_UNIX", socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	buf = memory(t, N);
}

CASE_N(recv, "recv(2) of N bytes from an AF_UNIX stream", 1, 96000)
{
	EXPECT(recv(pair[1], buf, N, MSG_WAITALL) == (ssize_t)N);
}

OPS(recv, 1000000 / N)

AFTER(recv)
{
	EXPECT(send(pair[0], buf, N, MSG_DONTWAIT) == (ssize_t)N);
}

SETUP(recv)
{
	NEED("CONFIG_UNIX", socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	buf = memory(t, N);
	EXPECT(send(pair[0], buf, N, MSG_DONTWAIT) == (ssize_t)N);
}

CASE(scm_rights, "sendmsg(2) of a descriptor, recvmsg(2), close(2) of the copy")
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {.head = {.cmsg_len = CMSG_LEN(sizeof(int)),
			      .cmsg_level = SOL_SOCKET,
			      .cmsg_type = SCM_RIGHTS}};
	struct iovec byte = {.iov_base = buf, .iov_len = 1};
	struct msghdr msg = {.msg_iov = &byte,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control.space)};
	int copy;

	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	EXPECT(sendmsg(pair[0], &msg, 0) == 1);
	EXPECT(recvmsg(pair[1], &msg, 0) == 1);
	memcpy(&copy, CMSG_DATA(&control.head), sizeof(copy));
	OK(close(copy));
}

OPS(scm_rights, 32)

SETUP(scm_rights)
{
	NEED("CONFIG_UNIX", socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	fd = file(t, "file", 0);
	buf = memory(t, PAGE);
}

CASE(unix_connect, "connect(2) to an AF_UNIX listener, accept4(2), close(2) of both")
{
	struct sockaddr_un to = {.sun_family = AF_UNIX, .sun_path = "listener"};
	int made = OK(socket(AF_UNIX, SOCK_STREAM, 0));

	OK(connect(made, (struct sockaddr *)&to, sizeof(to)));
	OK(close(OK(accept4(listener, NULL, NULL, SOCK_CLOEXEC))));
	OK(close(made));
}

OPS(unix_connect, 32)

SETUP(unix_connect)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = "listener"};

	listener = NEED("CONFIG_UNIX", socket(AF_UNIX, SOCK_STREAM, 0));
	OK(bind(listener, (struct sockaddr *)&at, sizeof(at)));
	OK(listen(listener, 8));
}

/* The connecting side is reset first, so that nothing stays behind in TIME_WAIT. */
CASE(tcp_connect, "connect(2) to a TCP listener on lo, accept4(2), close(2) of both")
{
	struct linger now = {.l_onoff = 1};
	int made = OK(socket(AF_INET, SOCK_STREAM, 0)), other;

	OK(connect(made, (struct sockaddr *)&address, sizeof(address)));
	other = OK(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
	OK(setsockopt(made, SOL_SOCKET, SO_LINGER, &now, sizeof(now)));
	OK(close(made));
	OK(close(other));
}

OPS(tcp_connect, 24)

SETUP(tcp_connect)
{
	listener = on_loopback(t, SOCK_STREAM, &address);
	OK(listen(listener, 8));
}

CASE_N(tcp_send, "send(2) of N bytes over TCP on lo, recv(2) of all of them", 1, 65536)
{
	EXPECT(send(pair[0], buf, N, 0) == (ssize_t)N);
	EXPECT(recv(pair[1], buf, N, MSG_WAITALL) == (ssize_t)N);
}

OPS(tcp_send, 1048576 / N)

SETUP(tcp_send)
{
	int size = 1 << 20;

	tcp_pair(t, pair);
	/* Else the kernel grows it by how long a round trip takes, and a seed says how often it acknowledges. */
	OK(setsockopt(pair[1], SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)));
	buf = memory(t, N);
}

CASE_N(udp_send, "send(2) of N bytes over UDP on lo, recv(2)", 1, 1400)
{
	EXPECT(send(pair[0], buf, N, 0) == (ssize_t)N);
	EXPECT(recv(pair[1], buf, N, 0) == (ssize_t)N);
}

OPS(udp_send, 32)

SETUP(udp_send)
{
	udp_pair(t, pair);
	buf = memory(t, N);
}

CASE(sendmmsg, "sendmmsg(2) of 8 datagrams over UDP on lo, recvmmsg(2)")
{
	struct iovec byte = {.iov_base = buf, .iov_len = 1};
	struct mmsghdr all[8];

	for (size_t i = 0; i < 8; i++)
		all[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &byte, .msg_iovlen = 1}};
	EXPECT(sendmmsg(pair[0], all, 8, 0) == 8);
	EXPECT(recvmmsg(pair[1], all, 8, 0, NULL) == 8);
}

OPS(sendmmsg, 4)

SETUP(sendmmsg)
{
	udp_pair(t, pair);
	buf = memory(t, PAGE);
}

CASE(mq_send, "mq_send(3) of 64 bytes, mq_receive(3)")
{
	OK(mq_send(fd, buf, 64, 0));
	EXPECT(mq_receive(fd, buf, 64, NULL) == 64);
}

SETUP(mq_send)
{
	struct mq_attr few = {.mq_maxmsg = 8, .mq_msgsize = 64};
	char name[32];

	buf = memory(t, PAGE);
	snprintf(name, sizeof(name), "/kdelta.%d", (int)getpid());
	fd = NEED("CONFIG_POSIX_MQUEUE", mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &few));
	OK(mq_unlink(name));
}

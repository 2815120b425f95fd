/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sockets, further: datagrams in pieces, options, routes, what rtnetlink lists. */
#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "net.h"

static int fd, pair[2];
static char *buf;
static struct sockaddr_in address;

CASE(unix_dgram, "sendmsg(2) of 4 pieces to an AF_UNIX datagram socket, recvmsg(2)")
{
	struct iovec pieces[4];
	struct msghdr msg = {.msg_iov = pieces, .msg_iovlen = 4};

	for (size_t i = 0; i < 4; i++)
		pieces[i] = (struct iovec){.iov_base = buf + i * 64, .iov_len = 64};
	EXPECT(sendmsg(pair[0], &msg, 0) == 256);
	EXPECT(recvmsg(pair[1], &msg, 0) == 256);
}

OPS(unix_dgram, 32)

SETUP(unix_dgram)
{
	NEED("CONFIG_UNIX", socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
	buf = memory(t, PAGE);
}

CASE(getsockopt, "getsockopt(2) SO_TYPE")
{
	int type;
	socklen_t size = sizeof(type);

	OK(getsockopt(pair[0], SOL_SOCKET, SO_TYPE, &type, &size));
	EXPECT(type == SOCK_STREAM);
}

SETUP(getsockopt)
{
	NEED("CONFIG_UNIX", socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
}

CASE(setsockopt, "setsockopt(2) SO_RCVBUF")
{
	const int size = 65536;

	OK(setsockopt(pair[0], SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)));
}

SETUP(setsockopt)
{
	NEED("CONFIG_UNIX", socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
}

CASE(udp_connect, "connect(2) of a UDP socket: a route to lo")
{
	OK(connect(fd, (struct sockaddr *)&address, sizeof(address)));
}

SETUP(udp_connect)
{
	struct sockaddr_in own;

	OK(close(on_loopback(t, SOCK_DGRAM, &address)));
	fd = on_loopback(t, SOCK_DGRAM, &own);
	NEED("CONFIG_INET and lo up", connect(fd, (struct sockaddr *)&address, sizeof(address)));
}

/* All of an answer: NLMSG_DONE ends it, in a datagram of its own. */
static void listed(struct wl_task *t)
{
	struct nlmsghdr *head = (struct nlmsghdr *)buf;
	ssize_t size;

	do {
		size = recv(fd, buf, 32768, 0);
		EXPECT(size >= (ssize_t)sizeof(*head) && head->nlmsg_type != NLMSG_ERROR);
	} while (head->nlmsg_type != NLMSG_DONE);
}

CASE(netlink_links, "RTM_GETLINK of all links from rtnetlink(7)")
{
	struct {
		struct nlmsghdr head;
		struct ifinfomsg link;
	} all = {.head = {.nlmsg_len = sizeof(all),
			  .nlmsg_type = RTM_GETLINK,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}};

	EXPECT(send(fd, &all, sizeof(all), 0) == sizeof(all));
	listed(t);
}

OPS(netlink_links, 12)

SETUP(netlink_links)
{
	buf = memory(t, 32768);
	fd = NEED("CONFIG_NET", socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
}

CASE(netlink_route, "RTM_GETROUTE of 127.0.0.1 from rtnetlink(7)")
{
	struct {
		struct nlmsghdr head;
		struct rtmsg route;
		struct rtattr to;
		uint32_t address;
	} one = {.head = {.nlmsg_len = sizeof(one),
			  .nlmsg_type = RTM_GETROUTE,
			  .nlmsg_flags = NLM_F_REQUEST},
		 .route = {.rtm_family = AF_INET, .rtm_dst_len = 32},
		 .to = {.rta_len = RTA_LENGTH(4), .rta_type = RTA_DST},
		 .address = htonl(INADDR_LOOPBACK)};
	struct nlmsghdr *head = (struct nlmsghdr *)buf;

	EXPECT(send(fd, &one, sizeof(one), 0) == sizeof(one));
	EXPECT(recv(fd, buf, 32768, 0) > 0 && head->nlmsg_type == RTM_NEWROUTE);
}

OPS(netlink_route, 24)

SETUP(netlink_route)
{
	buf = memory(t, 32768);
	OK(close(on_loopback(t, SOCK_DGRAM, &address)));
	fd = NEED("CONFIG_NET", socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sockets on lo. */
#ifndef KDELTA_SYSCALLS_NET_H
#define KDELTA_SYSCALLS_NET_H

#include <netinet/in.h>
#include <netinet/tcp.h>

#include "parts.h"

/* A socket that is bound to a port of 127.0.0.1, and its address. */
static inline int on_loopback(struct wl_task *t, int type, struct sockaddr_in *at)
{
	socklen_t size = sizeof(*at);
	int fd = NEED("CONFIG_INET", socket(AF_INET, type | SOCK_CLOEXEC, 0));

	*at = (struct sockaddr_in){.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	OK(bind(fd, (struct sockaddr *)at, size));
	OK(getsockname(fd, (struct sockaddr *)at, &size));
	return fd;
}

static inline void tcp_pair(struct wl_task *t, int pair[2])
{
	struct sockaddr_in at;
	int listener = on_loopback(t, SOCK_STREAM, &at), on = 1;

	OK(listen(listener, 1));
	pair[0] = OK(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
	NEED("CONFIG_INET and lo up", connect(pair[0], (struct sockaddr *)&at, sizeof(at)));
	pair[1] = OK(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
	OK(setsockopt(pair[0], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)));
	OK(setsockopt(pair[1], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)));
	OK(close(listener));
}

static inline void udp_pair(struct wl_task *t, int pair[2])
{
	struct sockaddr_in a, b;

	pair[0] = on_loopback(t, SOCK_DGRAM, &a);
	pair[1] = on_loopback(t, SOCK_DGRAM, &b);
	NEED("CONFIG_INET and lo up", connect(pair[0], (struct sockaddr *)&b, sizeof(b)));
	NEED("CONFIG_INET and lo up", connect(pair[1], (struct sockaddr *)&a, sizeof(a)));
}

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lives of pidfds: made by every call that makes one, of targets alive, dead and reaped. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lifetimes.h"

#define FLAG_THREAD ((unsigned int)O_EXCL) /* PIDFD_THREAD */
#ifndef SO_PASSPIDFD
#define SO_PASSPIDFD 76
#define SO_PEERPIDFD 77
#endif
#ifndef SCM_PIDFD
#define SCM_PIDFD 4
#endif

/* struct clone_args of its first version, which every kernel with clone3 takes. */
struct clone3_args {
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
};

int lifetimes_pidfd_open(int pid, unsigned int flags)
{
	return (int)syscall(434, pid, flags);
}

int lifetimes_clone3(int *pidfd)
{
	struct clone3_args args = {
		.flags = 0x1000, /* CLONE_PIDFD */
		.pidfd = (uintptr_t)pidfd,
		.exit_signal = SIGCHLD,
	};

	return (int)syscall(435, &args, sizeof(args));
}

void lifetimes_reap(int pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static int need_pidfd_open(struct wl *wl)
{
	int fd = lifetimes_pidfd_open(getpid(), 0);

	if (fd >= 0)
		return close(fd);
	return errno == ENOSYS ? wl_unsupported(wl, "syscall pidfd_open (v5.3)")
			       : wl_fail(wl, "pidfd_open");
}

int lifetimes_need_clone3(struct wl *wl)
{
	if (syscall(435, NULL, 0) < 0 && errno == ENOSYS)
		return wl_unsupported(wl, "syscall clone3 (v5.3)");
	return 0;
}

/* clone3 that works; the child dies, is reaped, and only then the pidfd is closed. */
static void clone3_pidfd(struct wl_task *t)
{
	int pidfd = -1, pid = lifetimes_clone3(&pidfd);

	if (!pid)
		_exit(0);
	if (pid < 0) {
		wl_op_failed(t, "clone3");
		return;
	}
	lifetimes_reap(pid);
	close(pidfd);
}

/* clone3 that fails after the pidfd was made: there is nowhere to store it. */
static void clone3_efault(struct wl_task *t)
{
	int pid = lifetimes_clone3((int *)8);

	if (!pid)
		_exit(0);
	if (pid > 0 || errno != EFAULT)
		wl_op_failed(t, "clone3 with a bad address for the pidfd did not fail with EFAULT");
	if (pid > 0)
		lifetimes_reap(pid);
}

static void dies_while_held(struct wl_task *t)
{
	int pid = fork(), fd;
	struct stat st;

	if (!pid)
		for (;;)
			pause();
	fd = pid > 0 ? lifetimes_pidfd_open(pid, 0) : -1;
	if (fd < 0)
		wl_op_failed(t, "pidfd_open of a child");
	if (pid > 0) {
		kill(pid, SIGKILL);
		lifetimes_reap(pid);
	}
	if (fd >= 0) {
		fstat(fd, &st);
		if (!syscall(424, fd, 0, NULL, 0)) /* pidfd_send_signal */
			wl_op_failed(t, "a signal reached a reaped process");
		close(fd);
	}
}

static struct {
	_Atomic int tid, stop;
} thread;

static void *thread_main(void *arg)
{
	(void)arg;
	atomic_store(&thread.tid, (int)syscall(SYS_gettid));
	while (!atomic_load(&thread.stop))
		sched_yield();
	return NULL;
}

/* A pidfd of a thread that is not its process' leader; it outlives the thread. */
static void thread_pidfd(struct wl_task *t)
{
	pthread_t id;
	int fd;

	atomic_store(&thread.tid, 0);
	atomic_store(&thread.stop, 0);
	if (pthread_create(&id, NULL, thread_main, NULL)) {
		wl_op_failed(t, "pthread_create");
		return;
	}
	while (!atomic_load(&thread.tid))
		sched_yield();
	fd = lifetimes_pidfd_open(atomic_load(&thread.tid), FLAG_THREAD);
	if (fd < 0)
		wl_op_failed(t, "pidfd_open with PIDFD_THREAD");
	atomic_store(&thread.stop, 1);
	pthread_join(id, NULL);
	if (fd >= 0)
		close(fd);
}

static int need_thread(struct wl *wl)
{
	int fd = lifetimes_pidfd_open(getpid(), FLAG_THREAD);

	if (fd >= 0)
		return close(fd);
	return errno == EINVAL ? wl_unsupported(wl, "PIDFD_THREAD (v6.9)") : need_pidfd_open(wl);
}

static int dead_pid;

/* pidfd_open that must fail: bad flags, nobody of that number, no descriptor left. */
static void open_fails(struct wl_task *t)
{
	struct rlimit was, none = {0};
	int fd;

	if (lifetimes_pidfd_open(getpid(), 0x40000000) >= 0 || errno != EINVAL)
		wl_op_failed(t, "pidfd_open with unknown flags did not fail with EINVAL");
	if (lifetimes_pidfd_open(dead_pid, 0) >= 0 || errno != ESRCH)
		wl_op_failed(t, "pidfd_open of a reaped process did not fail with ESRCH");
	getrlimit(RLIMIT_NOFILE, &was);
	none.rlim_max = was.rlim_max;
	setrlimit(RLIMIT_NOFILE, &none);
	fd = lifetimes_pidfd_open(getpid(), 0);
	if (fd >= 0 || errno != EMFILE)
		wl_op_failed(t, "pidfd_open without a free descriptor did not fail with EMFILE");
	setrlimit(RLIMIT_NOFILE, &was);
}

static int setup_open_fails(struct wl *wl)
{
	dead_pid = fork();
	if (!dead_pid)
		_exit(0);
	if (dead_pid < 0)
		return wl_fail(wl, "fork");
	lifetimes_reap(dead_pid);
	return need_pidfd_open(wl);
}

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static int listener = -1;

/* The pidfd of a peer that connected, exited and was reaped: some kernels give one, others say no. */
static void peer_pidfd(struct wl_task *t)
{
	int pid = fork(), fd, pidfd = -1;
	socklen_t size = sizeof(pidfd);

	if (!pid) {
		fd = socket(AF_UNIX, SOCK_STREAM, 0);
		_exit(connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0);
	}
	fd = pid > 0 ? accept(listener, NULL, NULL) : -1;
	if (pid > 0)
		lifetimes_reap(pid);
	if (fd < 0) {
		wl_op_failed(t, "accept of a connection");
		return;
	}
	if (!getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size))
		close(pidfd);
	close(fd);
}

static int setup_peer_pidfd(struct wl *wl)
{
	int pair[2], pidfd = -1, error;
	socklen_t size = sizeof(pidfd);

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return wl_unsupported(wl, "sockets of AF_UNIX (CONFIG_UNIX)");
	error = getsockopt(pair[0], SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) ? errno : 0;
	close(pair[0]);
	close(pair[1]);
	if (error == ENOPROTOOPT)
		return wl_unsupported(wl, "SO_PEERPIDFD (v6.5)");
	if (!error)
		close(pidfd);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	memcpy(address.sun_path + 1, "kdelta-lifetimes", 16); /* abstract: no file */
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 16))
		return wl_fail(wl, "a listening socket");
	return 0;
}

static void teardown_peer_pidfd(struct wl *wl)
{
	(void)wl;
	close(listener);
}

static void close_passed(struct msghdr *m)
{
	struct cmsghdr *c;
	int pidfd;

	for (c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_PIDFD)
			continue;
		memcpy(&pidfd, CMSG_DATA(c), sizeof(pidfd));
		if (pidfd >= 0)
			close(pidfd);
	}
}

/* A message whose sender has exited and was reaped before it is received. */
static void scm_pidfd(struct wl_task *t)
{
	char byte = 0, control[256];
	struct iovec part = {&byte, 1};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control};
	int pair[2], pid, on = 1;

	m.msg_controllen = sizeof(control);
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair)) {
		wl_op_failed(t, "socketpair");
		return;
	}
	setsockopt(pair[0], SOL_SOCKET, SO_PASSPIDFD, &on, sizeof(on));
	pid = fork();
	if (!pid)
		_exit(send(pair[1], &byte, 1, 0) != 1);
	if (pid > 0)
		lifetimes_reap(pid);
	if (recvmsg(pair[0], &m, MSG_DONTWAIT) == 1)
		close_passed(&m);
	else if (errno == EAGAIN)
		wl_op_failed(t, "a message of a reaped sender");
	close(pair[0]);
	close(pair[1]);
}

static int setup_scm_pidfd(struct wl *wl)
{
	int on = 1, error, fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	if (fd < 0)
		return wl_unsupported(wl, "sockets of AF_UNIX (CONFIG_UNIX)");
	error = setsockopt(fd, SOL_SOCKET, SO_PASSPIDFD, &on, sizeof(on)) ? errno : 0;
	close(fd);
	return error == ENOPROTOOPT ? wl_unsupported(wl, "SO_PASSPIDFD (v6.5)") : 0;
}

const struct way lifetimes_pidfd[] = {
	{"clone3", lifetimes_need_clone3, clone3_pidfd, NULL},
	{"clone3_efault", lifetimes_need_clone3, clone3_efault, NULL},
	{"dies_while_held", need_pidfd_open, dies_while_held, NULL},
	{"thread_pidfd", need_thread, thread_pidfd, NULL},
	{"open_fails", setup_open_fails, open_fails, NULL},
	{"peer_pidfd", setup_peer_pidfd, peer_pidfd, teardown_peer_pidfd},
	{"scm_pidfd", setup_scm_pidfd, scm_pidfd, NULL},
	{NULL, NULL, NULL, NULL},
};

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QEMU's sandbox with spawn=deny lets no process be made, so one that forks for us
 * has spawn=allow. What of it is not needed is denied here: to execute a program ever,
 * and to fork, once it is a child. QEMU's own filter stays, and ends a process that uses
 * the numbers of another architecture (libseccomp: SCMP_FLTATR_ACT_BADARCH).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kdelta.h"

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define UNLESS(nr, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, skip)
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)
#define REFUSE(error) RETURN(SECCOMP_RET_ERRNO | (error))
#define DENY(nr) UNLESS(nr, 1), REFUSE(EPERM)

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the flags of clone(2) are in the low half of its first argument"
#endif

/* For all threads that there are, and those to come. */
static bool install(struct sock_filter *filter, size_t n)
{
	struct sock_fprog program = {(unsigned short)n, filter};

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
}

bool forks_only(void)
{
	struct sock_filter filter[] = {
		LOAD(nr),
		DENY(SYS_execve),
		DENY(SYS_execveat),
		RETURN(SECCOMP_RET_ALLOW),
	};

	return install(filter, sizeof(filter) / sizeof(*filter));
}

bool threads_only(void)
{
	struct sock_filter filter[] = {
		LOAD(nr),
#ifdef SYS_fork
		DENY(SYS_fork),
		DENY(SYS_vfork),
#endif
		UNLESS(SYS_clone3,
		       1), /* its flags cannot be seen here; clone(2) is what glibc then takes */
		REFUSE(ENOSYS),
		UNLESS(SYS_clone, 3),
		LOAD(args[0]),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0),
		REFUSE(EPERM),
		RETURN(SECCOMP_RET_ALLOW),
	};

	return install(filter, sizeof(filter) / sizeof(*filter));
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Processes and threads: made, executed, waited for, traced, confined. A child
 * runs within the operation that waits for it, and its work counts.
 */
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>

#include "program.h"

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

static int fd;
static char *buf;
static pid_t child;

static void wait_for(struct wl_task *t, pid_t pid)
{
	int status;

	EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
}

static void fork_exit(struct wl_task *t)
{
	pid_t pid = OK(fork());

	if (!pid)
		_exit(0);
	wait_for(t, pid);
}

CASE(fork_exit, "fork(2), _exit(2), waitpid(2)")
{
	fork_exit(t);
}

OPS(fork_exit, 12)

CASE_N(fork_mappings, "fork(2) of a process with N shared mappings, _exit(2), waitpid(2)", 1000,
       6000)
{
	fork_exit(t);
}

OPS(fork_mappings, 1)

SETUP(fork_mappings)
{
	for (uint64_t i = 0; i < N; i++)
		OK(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
}

CASE(vfork_exit, "vfork(2), _exit(2), waitpid(2)")
{
	pid_t pid = OK(vfork());

	if (!pid)
		_exit(0);
	wait_for(t, pid);
}

OPS(vfork_exit, 12)

CASE(clone3, "clone3(2) with CLONE_PIDFD, _exit(2), waitid(2) of the pidfd")
{
	int pidfd = -1;
	siginfo_t info;
	struct clone_args args = {
		.flags = CLONE_PIDFD, .pidfd = (uintptr_t)&pidfd, .exit_signal = SIGCHLD};

	if (!OK(syscall(SYS_clone3, &args, sizeof(args))))
		_exit(0);
	OK(waitid((idtype_t)P_PIDFD, (id_t)pidfd, &info, WEXITED));
	OK(close(pidfd));
}

OPS(clone3, 12)

SETUP(clone3)
{
	struct clone_args args = {.exit_signal = SIGCHLD};
	long pid = NEED("Linux 5.3", syscall(SYS_clone3, &args, sizeof(args)));

	if (!pid)
		_exit(0);
	wait_for(t, (pid_t)pid);
}

static void *no_thread(void *arg)
{
	return arg;
}

CASE(thread_create, "pthread_create(3), pthread_join(3)")
{
	pthread_t thread;

	EXPECT(!pthread_create(&thread, NULL, no_thread, NULL));
	EXPECT(!pthread_join(thread, NULL));
}

OPS(thread_create, 12)

static void fork_execve(struct wl_task *t, const char *path, char *const argv[])
{
	pid_t pid = OK(fork());

	if (!pid) {
		execve(path, argv, (char *[]){NULL});
		_exit(127);
	}
	wait_for(t, pid);
}

CASE(fork_execve, "fork(2), execve(2) of a static program of one page, waitpid(2)")
{
	fork_execve(t, "program", (char *[]){"program", NULL});
}

OPS(fork_execve, 1)

SETUP(fork_execve)
{
	program(t, "program", NULL);
}

CASE(fork_execve_dynamic, "fork(2), execve(2) of a program with an interpreter, waitpid(2)")
{
	fork_execve(t, "program", (char *[]){"program", NULL});
}

OPS(fork_execve_dynamic, 1)

SETUP(fork_execve_dynamic)
{
	program(t, "interpreter", NULL);
	program(t, "program", "./interpreter");
}

CASE(fork_sh, "fork(2), execve(2) of a shell that does the same with a program")
{
	fork_execve(t, "/proc/self/exe", (char *[]){"sh", "program", NULL});
}

OPS(fork_sh, 1)

SETUP(fork_sh)
{
	program(t, "program", NULL);
	NEED("CONFIG_PROC_FS", access("/proc/self/exe", X_OK));
}

CASE(pidfd_open, "pidfd_open(2) of its own process, close(2)")
{
	OK(close((int)OK(syscall(SYS_pidfd_open, getpid(), 0))));
}

SETUP(pidfd_open)
{
	OK(close((int)NEED("Linux 5.3", syscall(SYS_pidfd_open, getpid(), 0))));
}

CASE(pidfd_send_signal, "pidfd_send_signal(2) of signal 0")
{
	OK(syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0));
}

SETUP(pidfd_send_signal)
{
	fd = (int)NEED("Linux 5.3", syscall(SYS_pidfd_open, getpid(), 0));
}

CASE(ptrace_peek, "ptrace(2) PTRACE_PEEKDATA of a stopped child")
{
	errno = 0;
	EXPECT(ptrace(PTRACE_PEEKDATA, child, &fd, NULL) == fd || !errno);
}

static void traced_child(struct wl_task *t)
{
	if (HELPER()) {
		OK(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
		OK(raise(SIGSTOP));
		for (;;)
			syscall(SYS_getppid);
	}
	child = OK(waitpid(-1, NULL, 0));
	NEED("CONFIG_MULTIUSER", ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_EXITKILL));
}

SETUP(ptrace_peek)
{
	traced_child(t);
}

CASE(ptrace_syscall, "ptrace(2) PTRACE_SYSCALL, waitpid(2): to the child's next stop")
{
	OK(ptrace(PTRACE_SYSCALL, child, NULL, NULL));
	EXPECT(waitpid(child, NULL, 0) == child);
}

OPS(ptrace_syscall, 32)

SETUP(ptrace_syscall)
{
	traced_child(t);
}

CASE(seccomp, "getppid(2) through a seccomp filter that looks at an argument")
{
	OK(syscall(SYS_getppid));
}

SETUP(seccomp)
{
	struct sock_filter allow[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x4b444c54, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {sizeof(allow) / sizeof(*allow), allow};

	OK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	NEED("CONFIG_SECCOMP_FILTER", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter));
}

static int bpf(struct wl_task *t, const char *missing, int command, union bpf_attr *attr)
{
	return (int)NEED(missing, syscall(SYS_bpf, command, attr, sizeof(*attr)));
}

CASE(bpf_run, "bpf(2) BPF_PROG_TEST_RUN of a program of two instructions")
{
	union bpf_attr run = {.test = {.prog_fd = (uint32_t)fd,
				       .data_size_in = 64,
				       .data_in = (uintptr_t)buf,
				       .repeat = 1}};

	OK(syscall(SYS_bpf, BPF_PROG_TEST_RUN, &run, sizeof(run)));
}

SETUP(bpf_run)
{
	struct bpf_insn code[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	union bpf_attr load = {.prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
			       .insns = (uintptr_t)code,
			       .insn_cnt = 2,
			       .license = (uintptr_t) "GPL"};

	buf = memory(t, PAGE);
	fd = bpf(t, "CONFIG_BPF_SYSCALL", BPF_PROG_LOAD, &load);
}

CASE(bpf_map, "bpf(2): update and look up an element of a hash map")
{
	uint64_t key = 7, value = 1;
	union bpf_attr at = {
		.map_fd = (uint32_t)fd, .key = (uintptr_t)&key, .value = (uintptr_t)&value};

	OK(syscall(SYS_bpf, BPF_MAP_UPDATE_ELEM, &at, sizeof(at)));
	OK(syscall(SYS_bpf, BPF_MAP_LOOKUP_ELEM, &at, sizeof(at)));
}

SETUP(bpf_map)
{
	union bpf_attr map = {
		.map_type = BPF_MAP_TYPE_HASH, .key_size = 8, .value_size = 8, .max_entries = 64};

	fd = bpf(t, "CONFIG_BPF_SYSCALL", BPF_MAP_CREATE, &map);
}

CASE(unshare_uts, "unshare(2) of the UTS namespace")
{
	OK(unshare(CLONE_NEWUTS));
}

SETUP(unshare_uts)
{
	NEED("CONFIG_UTS_NS", unshare(CLONE_NEWUTS));
}

CASE(unshare_mounts, "unshare(2) of the mount namespace")
{
	OK(unshare(CLONE_NEWNS));
}

OPS(unshare_mounts, 16)

SETUP(unshare_mounts)
{
	NEED("CONFIG_NAMESPACES", unshare(CLONE_NEWNS));
}

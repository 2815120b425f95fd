/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a task is and has: credentials, priorities, children, timers, keys; System V messages and semaphores. */
#include <grp.h>
#include <linux/capability.h>
#include <linux/futex.h>
#include <linux/keyctl.h>
#include <linux/landlock.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/sysinfo.h>
#include <sys/time.h>

#include "parts.h"

static int fd;
static struct __user_cap_header_struct who = {.version = _LINUX_CAPABILITY_VERSION_3};
static struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];

CASE(capset, "capset(2) to what it has")
{
	OK(syscall(SYS_capset, &who, caps));
}

SETUP(capset)
{
	NEED("CONFIG_MULTIUSER", syscall(SYS_capget, &who, caps));
}

CASE(setgroups, "setgroups(2) of 4 groups")
{
	const gid_t groups[4] = {1, 2, 3, 4};

	OK(syscall(SYS_setgroups, 4, groups));
}

SETUP(setgroups)
{
	NEED("CONFIG_MULTIUSER", syscall(SYS_setgroups, 0, NULL));
}

CASE(setpriority, "setpriority(2) to 1, and back")
{
	OK(setpriority(PRIO_PROCESS, 0, 1));
	OK(setpriority(PRIO_PROCESS, 0, 0));
}

SETUP(setpriority)
{
	OK(setpriority(PRIO_PROCESS, 0, 1));
	NEED("CONFIG_MULTIUSER", setpriority(PRIO_PROCESS, 0, 0));
}

CASE(sched_setscheduler, "sched_setscheduler(2) to SCHED_OTHER, and back to SCHED_BATCH")
{
	const struct sched_param none = {.sched_priority = 0};

	OK(syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &none));
	OK(syscall(SYS_sched_setscheduler, 0, SCHED_BATCH, &none));
}

CASE(waitid, "waitid(2) WNOHANG: the child still runs")
{
	siginfo_t info;

	OK(waitid(P_ALL, 0, &info, WEXITED | WNOHANG));
}

SETUP(waitid)
{
	if (HELPER())
		pause();
}

CASE(setitimer, "setitimer(2): a timer far off, and none")
{
	const struct itimerval later = {.it_value.tv_sec = 100000}, never = {.it_value.tv_sec = 0};

	OK(setitimer(ITIMER_REAL, &later, NULL));
	OK(setitimer(ITIMER_REAL, &never, NULL));
}

CASE(sysinfo, "sysinfo(2)")
{
	struct sysinfo info;

	OK(sysinfo(&info));
}

CASE(setns, "setns(2) to the UTS namespace that it is in")
{
	OK(setns(fd, CLONE_NEWUTS));
}

SETUP(setns)
{
	fd = NEED("CONFIG_UTS_NS", open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC));
}

static uint32_t word;

CASE(futex_waitv, "futex_waitv(2) of one whose value has changed")
{
	struct futex_waitv one = {.val = 1, .uaddr = (uintptr_t)&word, .flags = FUTEX_32};

	EXPECT(syscall(SYS_futex_waitv, &one, 1, 0, NULL, 0) == -1 && errno == EAGAIN);
}

SETUP(futex_waitv)
{
	struct timespec past = {.tv_sec = 0};
	struct futex_waitv one = {.uaddr = (uintptr_t)&word, .flags = FUTEX_32};

	if (syscall(SYS_futex_waitv, &one, 1, 0, &past, CLOCK_MONOTONIC) != -1 ||
	    errno != ETIMEDOUT)
		NEED("Linux 5.16", -1);
}

static int32_t key;
static char *buf;

CASE(keyctl_read, "keyctl(2) KEYCTL_READ of a user's key of 16 bytes")
{
	EXPECT(syscall(SYS_keyctl, KEYCTL_READ, key, buf, 64) == 16);
}

SETUP(keyctl_read)
{
	buf = memory(t, PAGE);
	key = (int32_t)NEED("CONFIG_KEYS", syscall(SYS_add_key, "user", "kdelta", buf, 16,
						   KEY_SPEC_PROCESS_KEYRING));
}

CASE(landlock_open, "open(2) of a file under a Landlock domain, close(2)")
{
	OK(close(OK(open("folder/file", O_RDONLY | O_CLOEXEC))));
}

SETUP(landlock_open)
{
	struct landlock_ruleset_attr handled = {.handled_access_fs = LANDLOCK_ACCESS_FS_READ_FILE};
	struct landlock_path_beneath_attr below = {.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE};

	OK(mkdir("folder", 0700));
	OK(close(file(t, "folder/file", 0)));
	fd = (int)NEED("CONFIG_SECURITY_LANDLOCK, and lsm=landlock",
		       syscall(SYS_landlock_create_ruleset, &handled, sizeof(handled), 0));
	below.parent_fd = OK(open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
	OK(syscall(SYS_landlock_add_rule, fd, LANDLOCK_RULE_PATH_BENEATH, &below, 0));
	OK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	OK(syscall(SYS_landlock_restrict_self, fd, 0));
}

CASE(semop, "semop(2): one up, one down again")
{
	struct sembuf up = {.sem_op = 1}, down = {.sem_op = -1};

	OK(semop(fd, &up, 1));
	OK(semop(fd, &down, 1));
}

SETUP(semop)
{
	fd = NEED("CONFIG_SYSVIPC", semget(IPC_PRIVATE, 1, 0600));
}

TEARDOWN(semop)
{
	semctl(fd, 0, IPC_RMID);
}

CASE(msgsnd, "msgsnd(2) of 64 bytes, msgrcv(2)")
{
	struct {
		long type;
		char text[64];
	} message = {.type = 1};

	OK(msgsnd(fd, &message, sizeof(message.text), 0));
	EXPECT(msgrcv(fd, &message, sizeof(message.text), 0, 0) == sizeof(message.text));
}

SETUP(msgsnd)
{
	fd = NEED("CONFIG_SYSVIPC", msgget(IPC_PRIVATE, 0600));
}

TEARDOWN(msgsnd)
{
	msgctl(fd, IPC_RMID, NULL);
}

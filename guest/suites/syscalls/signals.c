/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Signals: handlers installed, signals sent and caught, faults that become signals. */
#include <sys/signalfd.h>

#include "parts.h"

static int fd;
static char *buf;
static volatile sig_atomic_t caught;

static void on_signal(int sig)
{
	caught = sig;
}

CASE(sigaction, "rt_sigaction(2): install a handler")
{
	OK(sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_signal}, NULL));
}

CASE(sigprocmask, "rt_sigprocmask(2): block a signal, unblock it")
{
	sigset_t one;

	sigemptyset(&one);
	sigaddset(&one, SIGUSR1);
	OK(sigprocmask(SIG_BLOCK, &one, NULL));
	OK(sigprocmask(SIG_UNBLOCK, &one, NULL));
}

CASE(kill_self, "kill(2) of itself with a signal that is ignored")
{
	OK(kill(getpid(), SIGUSR1));
}

SETUP(kill_self)
{
	signal(SIGUSR1, SIG_IGN);
}

CASE(signal_catch, "kill(2) of itself, the handler, rt_sigreturn(2)")
{
	caught = 0;
	OK(kill(getpid(), SIGUSR1));
	EXPECT(caught == SIGUSR1);
}

SETUP(signal_catch)
{
	OK(sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_signal}, NULL));
}

CASE(tgkill_catch, "tgkill(2) of its own thread, the handler, rt_sigreturn(2)")
{
	caught = 0;
	OK(syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1));
	EXPECT(caught == SIGUSR1);
}

SETUP(tgkill_catch)
{
	OK(sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_signal}, NULL));
}

static void on_fault(int sig)
{
	caught = sig;
	mprotect(buf, PAGE, PROT_READ | PROT_WRITE);
}

CASE(protection_fault, "a write to a read-only page: SIGSEGV, the handler makes it writable")
{
	*(volatile char *)buf = 1;
	EXPECT(caught == SIGSEGV);
}

AFTER(protection_fault)
{
	caught = 0;
	OK(mprotect(buf, PAGE, PROT_READ));
}

SETUP(protection_fault)
{
	buf = memory(t, PAGE);
	OK(sigaction(SIGSEGV, &(struct sigaction){.sa_handler = on_fault}, NULL));
	OK(mprotect(buf, PAGE, PROT_READ));
}

CASE(signalfd, "kill(2) of itself with a blocked signal, read(2) of the signalfd")
{
	struct signalfd_siginfo info;

	OK(kill(getpid(), SIGUSR2));
	EXPECT(read(fd, &info, sizeof(info)) == sizeof(info) && info.ssi_signo == SIGUSR2);
}

SETUP(signalfd)
{
	sigset_t one;

	sigemptyset(&one);
	sigaddset(&one, SIGUSR2);
	OK(sigprocmask(SIG_BLOCK, &one, NULL));
	fd = NEED("CONFIG_SIGNALFD", signalfd(-1, &one, SFD_CLOEXEC));
	/* One stays pending: the user's first one costs more (ucounts), and others of root may have one or not. */
	sigaddset(&one, SIGUSR1);
	OK(sigprocmask(SIG_BLOCK, &one, NULL));
	OK(kill(getpid(), SIGUSR1));
}

CASE(sigtimedwait, "kill(2) of itself with a blocked signal, rt_sigtimedwait(2)")
{
	sigset_t one;

	sigemptyset(&one);
	sigaddset(&one, SIGUSR2);
	OK(kill(getpid(), SIGUSR2));
	EXPECT(sigtimedwait(&one, NULL, &(struct timespec){.tv_sec = 0}) == SIGUSR2);
}

SETUP(sigtimedwait)
{
	sigset_t one;

	sigemptyset(&one);
	sigaddset(&one, SIGUSR2);
	OK(sigprocmask(SIG_BLOCK, &one, NULL));
}

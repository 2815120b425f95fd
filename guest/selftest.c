/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A job that is a program of the kernel's selftests instead of a workload. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "selftest.h"

#define OUTPUT_MAX (4u << 20)
#define RESERVE_MS 2000 /* of the job's limit: to say that the program did not end */

static void exec_program(const char *path, int out)
{
	static char *const environment[] = {"PATH=/bin:/usr/bin", "HOME=/tmp", "TMPDIR=/tmp", NULL};
	char dir[512];
	char *slash;

	setpgid(0, 0);
	dup2(open("/dev/null", O_RDWR | O_CLOEXEC), 0);
	dup2(out, 1);
	dup2(out, 2);
	snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	if (slash)
		*slash = '\0';
	if (slash && chdir(dir)) {
		dprintf(2, "cannot enter %s: %s\n", dir, strerror(errno));
		_exit(126);
	}
	execve(path, (char *const[]){(char *)path, NULL}, environment);
	dprintf(2, "cannot run %s: %s\n", path, strerror(errno));
	_exit(126);
}

static void put_line(struct text *out, unsigned int job, const char *line)
{
	text_put(out, "{\"t\":\"out\",\"j\":%u,\"text\":", job);
	text_json(out, line);
	text_put(out, "}\n");
}

/* Whole lines of `said` become records; at the end also what has no newline. */
static void put_lines(struct text *out, unsigned int job, const struct text *said)
{
	char *line = said->s, *end;

	for (; line && (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		put_line(out, job, line);
	}
	if (line && *line)
		put_line(out, job, line);
}

/* NULs would end the text early. */
static void keep(struct text *said, char *buf, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!buf[i])
			buf[i] = '?';
	if (said->len < OUTPUT_MAX)
		text_bytes(said, buf, n);
}

/* Until the program has ended; what it left behind may hold the pipe. False where its time is over first. */
static bool listen(pid_t pid, int fd, uint64_t limit_ms, struct text *said, int *status)
{
	uint64_t deadline = now_ns() + limit_ms * 1000000u;
	bool ended = false;

	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		char buf[16384];
		ssize_t n = 0;

		if (!ended)
			ended = waitpid(pid, status, WNOHANG) == pid;
		if (poll(&p, 1, ended ? 0 : 20) > 0) {
			n = read(fd, buf, sizeof(buf));
			if (n > 0)
				keep(said, buf, (size_t)n);
		}
		if (ended && n <= 0)
			return true;
		if (!ended && n <= 0 && p.revents)
			usleep(1000); /* it closed its streams and goes on */
		if (now_ns() >= deadline)
			return ended;
	}
}

static void put_end(struct text *out, const struct job *job, int status)
{
	bool killed = WIFSIGNALED(status);

	text_put(out, "{\"t\":\"val\",\"j\":%u,\"name\":\"%s\",\"v\":%d}\n", job->nr,
		 killed ? "signal" : "exit", killed ? WTERMSIG(status) : WEXITSTATUS(status));
	done_record(out, job->nr, "ok", "");
}

static void run(const struct job *job, const char *path, int ends[2], struct text *out)
{
	uint64_t limit_ms =
		job->limit_ms > 2 * RESERVE_MS ? job->limit_ms - RESERVE_MS : job->limit_ms / 2;
	struct text said = {0};
	int status = 0;
	char why[96];
	pid_t pid = fork();

	if (!pid)
		exec_program(path, ends[1]);
	close(ends[1]);
	if (pid < 0) {
		done_record(out, job->nr, "failed", "fork of the program failed");
	} else if (listen(pid, ends[0], limit_ms, &said, &status)) {
		put_lines(out, job->nr, &said);
		put_end(out, job, status);
	} else {
		kill(-pid, SIGKILL);
		put_lines(out, job->nr, &said);
		snprintf(why, sizeof(why), "no end within %" PRIu64 " ms", limit_ms);
		done_record(out, job->nr, "hung", why);
	}
	text_free(&said);
	close(ends[0]);
}

void selftest_run(const struct job *job, int fd)
{
	const char *path = job_param(job, "program");
	struct text out = {0};
	int ends[2];

	if (!path || *path != '/')
		done_record(&out, job->nr, "failed", "no program=/PATH is given");
	else if (pipe2(ends, O_CLOEXEC))
		done_record(&out, job->nr, "failed", "no pipe for the program's output");
	else
		run(job, path, ends, &out);
	if (out.lost) {
		text_free(&out);
		done_record(&out, job->nr, "failed", "out of memory for the output");
	}
	write_all(fd, out.s, out.len);
	text_free(&out);
}

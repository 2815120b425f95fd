/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One binary: PID 1 of a guest, or a measurement of the machine it is started on. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"
#include "harness.h"
#include "init.h"
#include "readfile.h"

static int usage(void)
{
	fprintf(stderr, "usage: kdelta-guest --native --jobs FILE --data DIR --fd N\n"
			"       kdelta-guest --cases\n");
	return 2;
}

static int native(const char *jobs_path, const char *data_dir, int fd)
{
	struct stream s = {.fd = fd};
	struct supervisor sv = {.stream = &s, .data_dir = data_dir};
	struct jobs js = {0};
	struct text t = {0}, hello = {0};
	char why[256];
	int error = read_whole(jobs_path, &t);

	supervisor_hello(&sv, "fd", &hello);
	stream_record(&s, hello.s, hello.len);
	text_free(&hello);
	if (error)
		stream_note(&s, "%s cannot be read: %s", jobs_path, strerror(error));
	else if (jobs_parse(&js, t.s ? t.s : "", t.len, why, sizeof(why)))
		stream_note(&s, "%s", why);
	else
		supervisor_run(&sv, &js);
	stream_end(&s);
	jobs_free(&js);
	text_free(&t);
	if (!s.error)
		return 0;
	fprintf(stderr, "kdelta-guest: records could not be written: %s\n", strerror(s.error));
	return 1;
}

static bool named(char **argv, const char *word)
{
	for (; *argv; argv++)
		if (!strcmp(*argv, word))
			return true;
	return false;
}

/* sh PROGRAM, for cases: what a shell does with a command. */
static int shell(char **argv)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		execv(argv[1], argv + 1);
		_exit(127);
	}
	return pid < 0 || waitpid(pid, &status, 0) < 0 || status;
}

int main(int argc, char **argv)
{
	const char *jobs = NULL, *data = "";
	bool native_mode = false;
	int i, fd = -1;

	/* A guest has no root file system: what others exec by name is in here. */
	if (argc == 2 && !strcmp(program_invocation_short_name, "sleep")) {
		sleep((unsigned int)strtoul(argv[1], NULL, 10));
		return 0;
	}
	if (argc == 2 && !strcmp(program_invocation_short_name, "sh"))
		return shell(argv);
	if (argc == 2 && !strcmp(argv[1], "--cases")) {
		case_list();
		return 0;
	}
	/* The kernel hands unknown words of its command line to PID 1; in a container PID 1 may be ours natively. */
	if (getpid() == 1 && !named(argv, "--native"))
		init_main(argv);
	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--native"))
			native_mode = true;
		else if (i + 1 < argc && !strcmp(argv[i], "--jobs"))
			jobs = argv[++i];
		else if (i + 1 < argc && !strcmp(argv[i], "--data"))
			data = argv[++i];
		else if (i + 1 < argc && !strcmp(argv[i], "--fd"))
			fd = atoi(argv[++i]);
		else
			return usage();
	}
	if (!native_mode || !jobs || fd < 0)
		return usage();
	return native(jobs, data, fd);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A job that tells the kernel's symbols instead of running a workload. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "kallsyms.h"
#include "stream.h"
#include "trace.h"

#define LINE_MAX_BYTES 1024 /* KSYM_NAME_LEN is 512 */

/* "ffffffff81000000 T _stext\n", with "\t[module]" behind the name of a module's. */
static bool wanted(const char *line)
{
	const char *type = strchr(line, ' ');

	if (!type || !type[1] || type[2] != ' ' || strchr(type, '['))
		return false;
	return strchr("tTwW", type[1]) || !strcmp(type + 3, "_end\n");
}

static int collect(FILE *file, struct text *t)
{
	char line[LINE_MAX_BYTES];

	while (fgets(line, sizeof(line), file))
		if (wanted(line))
			text_put(t, "%s", line);
	return ferror(file) ? EIO : t->lost ? ENOMEM : 0;
}

void kallsyms_run(const struct job *job, int fd)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	struct text t = {0}, out = {0};
	int error = file ? collect(file, &t) : errno;

	if (file)
		fclose(file);
	if (!error)
		trace_records(&out, job->nr, KALLSYMS_JOB, &t);
	if (error || out.lost) {
		text_free(&out);
		done_record(&out, job->nr, "failed",
			    error ? strerror(error) : "out of memory for the symbols");
	} else {
		done_record(&out, job->nr, "ok", "");
	}
	write_all(fd, out.s, out.len);
	text_free(&t);
	text_free(&out);
}

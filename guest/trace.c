/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "harness.h"
#include "readfile.h"
#include "trace.h"

#define TRACEFS "/sys/kernel/tracing"
#define ERROR_LOG TRACEFS "/error_log"
#define CHUNK_BYTES 24576 /* of a file in one record */
#define PROBES_MAX 64

/* In the case's own process. `chosen` is the first line of a way that was accepted, 0 for none (line 0 is a probe). */
static struct {
	size_t chosen[PROBES_MAX], nprobes;
	struct text status, errors;
} trace;

static void full_path(const char *name, char *path, size_t size)
{
	snprintf(path, size, TRACEFS "/%s", name);
}

/* Appends: in these files, opening for anything else would remove what is there. */
static int append(const struct trace_line *line)
{
	char path[256];
	int fd, error;

	full_path(line->name, path, sizeof(path));
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd < 0)
		return errno;
	error = write_all(fd, line->text, strlen(line->text));
	close(fd);
	return error;
}

static void clear_errors(void)
{
	int fd = open(ERROR_LOG, O_WRONLY | O_TRUNC | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
}

/* The kernel keeps its last few complaints only: take them as they come. */
static void keep_errors(void)
{
	read_whole(ERROR_LOG, &trace.errors);
	clear_errors();
}

static void put_status(const char *word, const char *probe, const char *way,
		       const struct trace_line *line, int error)
{
	text_put(&trace.status, "%s %s %s", word, probe, way);
	if (line)
		text_put(&trace.status, " %s %s %s", strerrorname_np(error) ?: "?", line->name,
			 line->text);
	text_put(&trace.status, "\n");
}

static bool way_ends(const struct job *j, size_t i)
{
	return i >= j->ntrace || j->trace[i].verb <= TRACE_TRY;
}

/* All lines of one verb of the way that starts at `at`, the last first for what takes back. */
static void undo_way(const struct job *j, size_t at)
{
	size_t end = at;

	while (!way_ends(j, end))
		end++;
	while (end-- > at)
		if (j->trace[end].verb == TRACE_UNDO)
			append(&j->trace[end]);
}

static bool try_way(const struct job *j, const char *probe, size_t at)
{
	const char *way = j->trace[at - 1].name;
	size_t i;

	for (i = at; !way_ends(j, i); i++) {
		int error = j->trace[i].verb == TRACE_DO ? append(&j->trace[i]) : 0;

		if (!error)
			continue;
		put_status("refused", probe, way, &j->trace[i], error);
		keep_errors();
		undo_way(j, at);
		return false;
	}
	put_status("ok", probe, way, NULL, 0);
	return true;
}

int trace_prepare(struct harness *h)
{
	const struct job *j = h->job;
	const char *probe = "";
	size_t i;

	if (!j->ntrace)
		return 0;
	if (access(TRACEFS "/events", F_OK)) {
		set_error(h, STATE_UNSUPPORTED, "this kernel has no tracefs (CONFIG_FTRACE)");
		return -1;
	}
	clear_errors(); /* of taking back what an earlier job did not have */
	for (i = 0; i < j->ntrace; i++) {
		if (j->trace[i].verb == TRACE_PROBE && trace.nprobes == PROBES_MAX) {
			set_error(h, STATE_FAILED, "more than %d probes", PROBES_MAX);
			return -1;
		}
		if (j->trace[i].verb == TRACE_PROBE) {
			probe = j->trace[i].name;
			trace.nprobes++;
		} else if (j->trace[i].verb == TRACE_TRY && trace.nprobes &&
			   !trace.chosen[trace.nprobes - 1] && try_way(j, probe, i + 1)) {
			trace.chosen[trace.nprobes - 1] = i + 1;
		}
	}
	return 0;
}

static void write_verb(const struct job *j, size_t at, enum trace_verb verb)
{
	size_t i;

	for (i = at; at && !way_ends(j, i); i++) {
		int error = j->trace[i].verb == verb ? append(&j->trace[i]) : 0;

		if (error) {
			put_status("failed", "-", j->trace[at - 1].name, &j->trace[i], error);
			keep_errors();
		}
	}
}

/* Under a name that the triggers leave out: what arming itself causes is not the case's. */
void trace_arm(struct harness *h)
{
	char name[16];
	size_t k;

	if (!trace.nprobes)
		return;
	prctl(PR_GET_NAME, name);
	prctl(PR_SET_NAME, "kdelta-trace");
	for (k = 0; k < trace.nprobes; k++)
		write_verb(h->job, trace.chosen[k], TRACE_ARM);
	prctl(PR_SET_NAME, name);
}

void trace_disarm(struct harness *h)
{
	size_t k;

	if (!trace.nprobes)
		return;
	prctl(PR_SET_NAME, "kdelta-trace");
	for (k = trace.nprobes; k-- > 0;)
		write_verb(h->job, trace.chosen[k], TRACE_DISARM);
}

void trace_records(struct text *out, unsigned int job, const char *name, const struct text *t)
{
	size_t parts = t->len / CHUNK_BYTES + 1, i;

	for (i = 0; i < parts; i++) {
		size_t at = i * CHUNK_BYTES, left = t->len - at;

		text_put(out, "{\"t\":\"trace\",\"j\":%u,\"name\":", job);
		text_json(out, name);
		text_put(out, ",\"part\":%zu,\"parts\":%zu,\"b64\":\"", i, parts);
		text_base64(out, (const uint8_t *)t->s + at,
			    left < CHUNK_BYTES ? left : CHUNK_BYTES);
		text_put(out, "\"}\n");
	}
}

static void put_file(struct harness *h, const struct trace_line *line)
{
	struct text t = {0};
	char path[256];
	int error;

	full_path(line->name, path, sizeof(path));
	error = read_whole(path, &t);
	if (error)
		put_status("failed", "-", "read", line, error);
	else
		trace_records(&h->out, h->job->nr, line->name, &t);
	text_free(&t);
}

void trace_collect(struct harness *h)
{
	const struct job *j = h->job;
	size_t k, i;

	if (!j->ntrace || case_failed(h))
		return;
	for (k = 0; k < trace.nprobes; k++)
		for (i = trace.chosen[k]; i && !way_ends(j, i); i++)
			if (j->trace[i].verb == TRACE_READ)
				put_file(h, &j->trace[i]);
	trace_records(&h->out, h->job->nr, "@status", &trace.status);
	if (trace.errors.len)
		trace_records(&h->out, h->job->nr, "@error_log", &trace.errors);
}

void trace_undo(const struct job *j)
{
	size_t i;

	for (i = j->ntrace; i-- > 0;)
		if (j->trace[i].verb == TRACE_UNDO)
			append(&j->trace[i]);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What workloads call (workload.h). */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

const char *wl_param(const struct wl *wl, const char *name)
{
	struct harness *h = harness_of(wl);
	const char *value = job_param(h->job, name);

	if (value)
		return value;
	set_error(h, STATE_FAILED, "parameter %s is missing in the job", name);
	return "";
}

uint64_t wl_param_u64(const struct wl *wl, const char *name)
{
	const char *value = wl_param(wl, name);
	char *end;
	uint64_t v;

	errno = 0;
	v = strtoull(value, &end, 0);
	if (*value < '0' || *value > '9' || *end || errno)
		set_error(harness_of(wl), STATE_FAILED, "parameter %s=%.60s is not a number", name,
			  value);
	return v;
}

bool wl_param_is(const struct wl *wl, const char *name, const char *value)
{
	return !strcmp(wl_param(wl, name), value);
}

unsigned int wl_cpus(const struct wl *wl)
{
	return (unsigned int)CPU_COUNT(&harness_of(wl)->cpus);
}

int wl_unsupported(struct wl *wl, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	set_verror(harness_of(wl), STATE_UNSUPPORTED, 0, fmt, args);
	va_end(args);
	return -1;
}

int wl_fail(struct wl *wl, const char *fmt, ...)
{
	int error = errno;
	va_list args;

	va_start(args, fmt);
	set_verror(harness_of(wl), STATE_FAILED, error, fmt, args);
	va_end(args);
	return -1;
}

void wl_op_failed(struct wl_task *t, const char *what)
{
	struct harness *h = harness_of(t->wl);
	int error = errno;

	if (case_failed(h))
		return;
	set_error(h, STATE_FAILED, "operation of task %u failed: %s%s%s", t->nr, what,
		  error ? ": " : "", error ? strerror(error) : "");
	tasks_event(h);
}

void wl_value(struct wl *wl, const char *name, double value)
{
	struct harness *h = harness_of(wl);
	char why[128];

	if (getpid() != h->owner) { /* another process' memory would not reach the records */
		set_error(h, STATE_FAILED, "value %s was not set by the case's own process", name);
		return;
	}
	if (!isfinite(value)) { /* not measured: no value, but said */
		snprintf(why, sizeof(why), "job %u: %s was not measured", h->job->nr, name);
		text_put(&h->out, "{\"t\":\"note\",\"text\":");
		text_json(&h->out, why);
		text_put(&h->out, "}\n");
		return;
	}
	text_put(&h->out, "{\"t\":\"val\",\"j\":%u,\"name\":", h->job->nr);
	text_json(&h->out, name);
	text_put(&h->out, ",\"v\":");
	text_number(&h->out, value);
	text_put(&h->out, "}\n");
}

void wl_say(struct wl *wl, const char *line)
{
	struct harness *h = harness_of(wl);

	text_put(&h->out, "{\"t\":\"out\",\"j\":%u,\"text\":", h->job->nr);
	text_json(&h->out, line);
	text_put(&h->out, "}\n");
}

static const char *data_root = "/data";

void api_data_root(const char *folder)
{
	data_root = folder;
}

const char *wl_data(const char *name, char *buf, size_t size)
{
	snprintf(buf, size, "%s/%s", data_root, name);
	return buf;
}

const char *wl_tmpdir(struct wl *wl)
{
	return harness_of(wl)->tmp_dir;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs.h"

#define HEADER "kdelta-jobs 1"

struct field {
	const char *key;
	size_t at; /* offset in struct job or struct jobs, of a uint64_t */
	uint64_t least, most;
};

#define JOB(name, least, most)                                 \
	{                                                      \
#name, offsetof(struct job, name), least, most \
	}
static const struct field job_fields[] = {
	JOB(limit_ms, 1, 86400000), JOB(warmup, 0, 100000),	   JOB(windows, 0, 100000),
	JOB(window_ms, 1, 600000),  JOB(latency_ops, 0, 10000000), JOB(reps, 0, JOB_REPS_MAX),
	JOB(ops, 1, 1000000000),    JOB(batches, 0, 64),	   JOB(pmu, 0, 1000),
};

static bool number(const char *s, uint64_t least, uint64_t most, uint64_t *out)
{
	char *end;

	errno = 0;
	if (*s < '0' || *s > '9')
		return false;
	*out = strtoull(s, &end, 10);
	return !*end && !errno && *out >= least && *out <= most;
}

static bool printable(const char *s)
{
	for (; *s; s++)
		if (*s < 0x21 || *s > 0x7e)
			return false;
	return true;
}

__attribute__((format(printf, 2, 3))) static void job_bad(struct job *j, const char *fmt, ...)
{
	va_list args;

	if (j->bad[0])
		return;
	va_start(args, fmt);
	vsnprintf(j->bad, sizeof(j->bad), fmt, args);
	va_end(args);
}

const char *job_param(const struct job *j, const char *key)
{
	size_t i;

	for (i = 0; i < j->nparams; i++)
		if (!strcmp(j->params[i].key, key))
			return j->params[i].value;
	return NULL;
}

static void job_reserved(struct job *j, const struct field *f, const char *value)
{
	uint64_t v;

	if (number(value, f->least, f->most, &v))
		memcpy((char *)j + f->at, &v, sizeof(v));
	else
		job_bad(j, "%s=%.40s is not a number in %llu..%llu", f->key, value,
			(unsigned long long)f->least, (unsigned long long)f->most);
}

static void job_word(struct job *j, char *word)
{
	char *value = strchr(word, '=');
	struct param *grown;
	size_t i;

	if (!value || value == word || !value[1] || !printable(word)) {
		job_bad(j, "%.60s is not key=value", printable(word) ? word : "a word");
		return;
	}
	*value++ = '\0';
	for (i = 0; i < sizeof(job_fields) / sizeof(*job_fields); i++) {
		if (!strcmp(word, job_fields[i].key)) {
			job_reserved(j, &job_fields[i], value);
			return;
		}
	}
	if (!strcmp(word, "cgroup")) {
		j->cgroup_child = !strcmp(value, "child");
		if (!j->cgroup_child && strcmp(value, "root"))
			job_bad(j, "cgroup=%.40s is neither root nor child", value);
		return;
	}
	if (!strcmp(word, "pressure")) {
		j->pressure = value;
		return;
	}
	if (job_param(j, word))
		job_bad(j, "parameter %.60s is given twice", word);
	grown = reallocarray(j->params, j->nparams + 1, sizeof(*grown));
	if (!grown) {
		job_bad(j, "no memory for the parameters");
		return;
	}
	j->params = grown;
	j->params[j->nparams++] = (struct param){word, value};
}

static int job_line(struct jobs *js, char *rest, char *why, size_t size)
{
	char *save = NULL, *nr = strtok_r(rest, " ", &save), *name = strtok_r(NULL, " ", &save);
	struct job *j = reallocarray(js->jobs, js->njobs + 1, sizeof(*j));
	uint64_t v;
	char *word;
	size_t i;

	if (!j) {
		snprintf(why, size, "jobs: out of memory");
		return -1;
	}
	js->jobs = j;
	j += js->njobs;
	if (!nr || !name || !number(nr, 0, JOB_NR_MAX, &v)) {
		snprintf(why, size, "jobs: a job without a number and a workload");
		return -1;
	}
	*j = (struct job){
		.nr = (unsigned int)v,
		.workload = name,
		.limit_ms = 60000,
		.warmup = 2,
		.windows = 12,
		.window_ms = 60,
		.latency_ops = 4000,
		.reps = 7,
		.ops = 16,
	};
	for (i = 0; i < js->njobs; i++) {
		if (js->jobs[i].nr == j->nr) {
			snprintf(why, size, "jobs: job %u is given twice", j->nr);
			return -1;
		}
	}
	js->njobs++;
	while ((word = strtok_r(NULL, " ", &save)))
		job_word(j, word);
	return 0;
}

static bool trace_name(const char *name)
{
	return *name && *name != '/' && !strstr(name, "..") && printable(name);
}

/* "VERB NAME [TEXT]", of the job above. */
static int trace_line(struct jobs *js, char *rest, char *why, size_t size)
{
	static const char *const verbs[] = {"probe", "try", "do", "arm", "disarm", "read", "undo"};
	struct job *j = js->njobs ? &js->jobs[js->njobs - 1] : NULL;
	char *verb = strsep(&rest, " "), *name = strsep(&rest, " ");
	struct trace_line *grown;
	unsigned int i;

	for (i = 0; i < sizeof(verbs) / sizeof(*verbs) && strcmp(verb, verbs[i]); i++)
		;
	if (!j || i == sizeof(verbs) / sizeof(*verbs) || !name || !trace_name(name)) {
		snprintf(why, size, "jobs: cannot parse the line \"trace %.40s\"", verb);
		return -1;
	}
	grown = reallocarray(j->trace, j->ntrace + 1, sizeof(*grown));
	if (!grown) {
		snprintf(why, size, "jobs: out of memory");
		return -1;
	}
	j->trace = grown;
	j->trace[j->ntrace++] = (struct trace_line){(enum trace_verb)i, name, rest ? rest : ""};
	return 0;
}

/* "ttyS0", "ttyAMA0", "hvc0": a device's name and nothing else. */
static bool tty_name(const char *s)
{
	return *s && strlen(s) < 16 &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") ==
		       strlen(s);
}

static int set_line(struct jobs *js, char *rest, char *why, size_t size)
{
	char *save = NULL, *key = strtok_r(rest, " ", &save), *value = strtok_r(NULL, " ", &save);
	uint64_t v;

	if (key && value && !strcmp(key, "mode")) {
		js->exact = !strcmp(value, "exact");
		if (js->exact || !strcmp(value, "timed"))
			return 0;
	} else if (key && value && !strcmp(key, "snapshot") && number(value, 0, 1, &v)) {
		js->snapshot = v;
		return 0;
	} else if (key && value && !strcmp(key, "rehearse") && number(value, 0, 1, &v)) {
		js->unrehearsed = !v;
		return 0;
	} else if (key && value && !strcmp(key, "seed") && number(value, 0, UINT64_MAX, &v)) {
		js->seed = v;
		return 0;
	} else if (key && value && !strcmp(key, "scatter") && number(value, 0, UINT64_MAX, &v)) {
		js->scatter = v;
		return 0;
	} else if (key && value && !strcmp(key, "settle_ms") && number(value, 0, 3600000, &v)) {
		js->settle_ms = v;
		return 0;
	} else if (key && value && !strcmp(key, "turns_ms") && number(value, 0, 3600000, &v)) {
		js->turns_ms = v;
		return 0;
	} else if (key && value && !strcmp(key, "port") && tty_name(value)) {
		js->port = value;
		return 0;
	}
	snprintf(why, size, "jobs: unknown setting %.40s %.40s", key ? key : "",
		 value ? value : "");
	return -1;
}

int jobs_parse(struct jobs *js, const char *text, size_t n, char *why, size_t size)
{
	char *line, *next;
	bool header = false;

	*js = (struct jobs){.text = malloc(n + 1)};
	if (!js->text) {
		snprintf(why, size, "jobs: out of memory");
		return -1;
	}
	memcpy(js->text, text, n);
	js->text[n] = '\0';
	/* A line counts only with its newline: a list that was cut off has no end. */
	for (line = js->text; (next = strchr(line, '\n')); line = next) {
		int bad = 0;

		*next++ = '\0';
		if (!*line || *line == '#')
			continue;
		if (!header && strcmp(line, HEADER)) {
			snprintf(why, size, "jobs: the first line is not \"%s\"", HEADER);
			return -1;
		}
		if (!header)
			header = true;
		else if (!strcmp(line, "end"))
			return 0;
		else if (!strncmp(line, "set ", 4))
			bad = set_line(js, line + 4, why, size);
		else if (!strncmp(line, "job ", 4))
			bad = job_line(js, line + 4, why, size);
		else if (!strncmp(line, "trace ", 6))
			bad = trace_line(js, line + 6, why, size);
		else
			bad = snprintf(why, size, "jobs: cannot parse the line \"%.60s\"", line);
		if (bad)
			return -1;
	}
	snprintf(why, size, "jobs: the list is cut off, there is no end line");
	return -1;
}

void jobs_free(struct jobs *js)
{
	size_t i;

	for (i = 0; i < js->njobs; i++) {
		free(js->jobs[i].params);
		free(js->jobs[i].trace);
	}
	free(js->jobs);
	free(js->text);
	*js = (struct jobs){0};
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pure parts of the harness at a command line, so that tests can hold them
 * against independent implementations (zlib, json, hdrh): see
 * tests/unit/guest/test_harness_native.py. Built with sanitizers.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness.h"
#include "../hdr.h"

static void read_input(struct text *t)
{
	char buf[4096];
	size_t n;

	text_bytes(t, "", 0);
	while ((n = fread(buf, 1, sizeof(buf), stdin)) > 0)
		text_bytes(t, buf, n);
}

static int parse_jobs(const struct text *in)
{
	struct jobs js;
	char why[256];
	size_t i, k;

	if (jobs_parse(&js, in->s, in->len, why, sizeof(why))) {
		printf("refused %s\n", why);
		jobs_free(&js);
		return 0;
	}
	printf("exact=%d snapshot=%d seed=%" PRIu64 " scatter=%" PRIu64 " settle_ms=%" PRIu64
	       " turns_ms=%" PRIu64 "%s%s\n",
	       js.exact, js.snapshot, js.seed, js.scatter, js.settle_ms, js.turns_ms,
	       js.port ? " port=" : "", js.port ? js.port : "");
	for (i = 0; i < js.njobs; i++) {
		const struct job *j = &js.jobs[i];

		printf("job %u %s limit_ms=%" PRIu64 " reps=%" PRIu64 " ops=%" PRIu64 " child=%d",
		       j->nr, j->workload, j->limit_ms, j->reps, j->ops, j->cgroup_child);
		for (k = 0; k < j->nparams; k++)
			printf(" %s=%s", j->params[k].key, j->params[k].value);
		printf(" bad=%s\n", j->bad);
	}
	jobs_free(&js);
	return 0;
}

static int histogram(int n, char **values)
{
	struct hdr *h = calloc(1, sizeof(*h));
	uint8_t *out = malloc(hdr_encoded_max());
	struct text t = {0};
	int i;

	if (!h || !out)
		return 1;
	for (i = 0; i < n; i++)
		hdr_record(h, strtoull(values[i], NULL, 10));
	text_base64(&t, out, hdr_encode(h, out));
	puts(t.s);
	text_free(&t);
	free(out);
	free(h);
	return 0;
}

static int best(int n, char **values)
{
	uint64_t *v = calloc((size_t)n + 1, sizeof(*v));
	double ns;
	int i;

	if (!v)
		return 1;
	for (i = 0; i < n; i++)
		v[i] = strtoull(values[i], NULL, 10);
	if (kbest(v, (size_t)n, &ns))
		puts("none");
	else
		printf("%.0f\n", ns);
	free(v);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	struct text in = {0}, out = {0};

	if (!strcmp(what, "hdr"))
		return histogram(argc - 2, argv + 2);
	if (!strcmp(what, "kbest"))
		return best(argc - 2, argv + 2);
	read_input(&in);
	if (!strcmp(what, "jobs"))
		parse_jobs(&in);
	else if (!strcmp(what, "crc"))
		printf("%08" PRIx32 "\n", crc32_update(0, in.s, in.len));
	else if (!strcmp(what, "json"))
		text_json(&out, in.s);
	else if (!strcmp(what, "base64"))
		text_base64(&out, (const uint8_t *)in.s, in.len);
	else if (!strcmp(what, "number"))
		text_number(&out, strtod(in.s, NULL));
	else
		return 2;
	if (out.s)
		puts(out.s);
	text_free(&in);
	text_free(&out);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The guest's job list. */
#include "../../guest/jobs.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char why[80] = "";
	struct jobs js;
	size_t touched = 0;

	if (jobs_parse(&js, (const char *)data, size, why, sizeof(why)))
		HOLDS(*why && strlen(why) < sizeof(why));
	for (size_t i = 0; i < js.njobs; i++) {
		const struct job *j = &js.jobs[i];

		HOLDS(j->nr <= JOB_NR_MAX && j->reps <= JOB_REPS_MAX && *j->workload);
		for (size_t k = 0; k < j->nparams; k++)
			touched += strlen(j->params[k].value) + !job_param(j, j->params[k].key);
		for (size_t k = 0; k < j->ntrace; k++)
			touched += strlen(j->trace[k].name) + strlen(j->trace[k].text);
	}
	HOLDS(touched <= 2 * size);
	jobs_free(&js);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Before guests part (init_order.c) the shortest of cases is run once, from its fork
 * to its exit, uncounted: what the harness and the kernel need for any case QEMU has
 * translated then, once and not once for each of them (a suite: a third
 * less CPU time). It is part of what every guest has behind it when it learns of its
 * job, also of one that is restored for a single case.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "harness_child.h"
#include "mark.h"

#define LIMIT_NS 10000000000u
#define FOLDER "/tmp/rehearsal"

/* Operations enough that the interval ends like any other; one repetition, which is counted for nobody. */
static int parse(struct jobs *js, uint64_t seed)
{
	char list[256], why[128];
	int n = snprintf(list, sizeof(list),
			 "kdelta-jobs 1\nset mode exact\nset seed %" PRIu64 "\n"
			 "job 0 syscalls/getpid limit_ms=10000 reps=1 ops=4 cgroup=root\nend\n",
			 seed);

	return jobs_parse(js, list, (size_t)n, why, sizeof(why));
}

void rehearse(uint64_t seed)
{
	struct child c = {.fd = -1};
	struct jobs js;
	int ends[2];

	if (parse(&js, seed) || mkdir(FOLDER, 0700) || pipe2(ends, O_CLOEXEC))
		return;
	MARK(MARK_OP_REHEARSE, 0);
	c.fd = ends[0];
	c.pid = fork();
	if (!c.pid) {
		setsid();
		case_run(&js, js.jobs, "/", FOLDER, ends[1], false);
		_exit(0);
	}
	close(ends[1]);
	if (c.pid > 0) {
		child_collect(&c, LIMIT_NS);
		child_finish(&c, false, "");
	}
	close(c.fd);
	text_free(&c.said);
	jobs_free(&js);
	rmdir(FOLDER);
}

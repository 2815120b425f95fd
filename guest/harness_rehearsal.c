/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What QEMU has translated before guests part (init_order.c) is translated once, and not
 * by each of them. So the shortest of cases is run before jobs are told, for what the
 * harness and the kernel need for any; and a job before the seeds are: from the
 * perturbation to the outcome, uncounted. Both are part of what every guest has behind it when it
 * learns of its seed, also of one that is restored for a single case and seed.
 */
#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "init.h"
#include "mark.h"
#include "readfile.h"

#define KTHREADD 2
#define ENDING_US 10000
#define DONE "\"t\":\"done\""
#define WELL "\"state\":\"ok\""

/* Whatever else there is is not run before its time: what it would do is not known to be undone. */
static bool can_be_rehearsed(const struct job *job)
{
	return !job->bad[0] && !job->batches && !job->pressure && !job->ntrace &&
	       case_measures(job);
}

/* A process that is neither the kernel's nor one of ours that wait for their order. */
static bool is_stray(const struct supervisor *sv, pid_t pid)
{
	char path[32], line[512], *at;
	int parent;

	if (pid <= KTHREADD || pid == sv->prepared->child.pid ||
	    pid == sv->prepared->holder.ready.pid)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	at = read_line(path, line, sizeof(line)) ? strrchr(line, ')') : NULL;
	return at && sscanf(at, ") %*c %d", &parent) == 1 && parent != KTHREADD;
}

/* What the case has left behind, in whatever session; the supervisor would say kill(-1). */
static void end_strays(const struct supervisor *sv)
{
	DIR *all = opendir("/proc");
	struct dirent *e;

	while (all && (e = readdir(all)))
		if (isdigit((unsigned char)e->d_name[0]) && is_stray(sv, atoi(e->d_name)))
			kill(atoi(e->d_name), SIGKILL);
	if (all)
		closedir(all);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

/* A case that failed may have ended those that wait for their order, as kill(-1, SIGKILL) does: they are forked again. */
static void wait_again(const struct supervisor *sv)
{
	usleep(ENDING_US);
	end_strays(sv); /* who was killed is a zombie until then */
	if (kill(sv->prepared->child.pid, 0) || kill(sv->prepared->holder.ready.pid, 0))
		supervisor_prepare(sv);
}

static bool went_well;

/* What records cost is paid as well. */
static int said_to_nobody(const void *data, size_t n)
{
	went_well = memmem(data, n, DONE, strlen(DONE)) && memmem(data, n, WELL, strlen(WELL));
	return snapshot_put(data, 0);
}

/* All that a guest does once it knows its seed, by the functions that do it. */
static bool rehearse(const struct supervisor *sv, uint64_t tick_ns, const char *list, size_t n)
{
	struct stream silent = {.fd = -1, .put = said_to_nobody};
	struct prepared prepared = {.source = list, .source_bytes = n};
	struct supervisor once = *sv;
	struct jobs js;
	char why[128];
	bool rehearsed;

	once.stream = &silent;
	once.prepared = &prepared;
	if (jobs_parse(&js, list, n, why, sizeof(why)))
		return false;
	js.rehearsal = js.njobs == 1 && !js.unrehearsed && can_be_rehearsed(js.jobs);
	js.seed = 0;
	js.tick_ns = tick_ns;
	if (js.rehearsal) {
		went_well = false;
		MARK(MARK_OP_REHEARSE, 0);
		if (!supervisor_prepare(&once) && !supervisor_perturb(&once, js.seed)) {
			perturb_rest();
			supervisor_run(&once, &js);
		}
		end_strays(sv);
		if (!went_well)
			wait_again(sv);
	}
	rehearsed = js.rehearsal;
	jobs_free(&js);
	return rehearsed;
}

/* Operations enough that the interval ends like any other; one repetition, which is counted for nobody. */
void rehearse_any(const struct supervisor *sv, uint64_t tick_ns)
{
	static const char list[] = "kdelta-jobs 1\nset mode exact\n"
				   "job 0 syscalls/getpid limit_ms=10000 reps=1 ops=4 cgroup=root\n"
				   "end\n";

	rehearse(sv, tick_ns, list, sizeof(list) - 1);
}

bool rehearse_own(const struct supervisor *sv, uint64_t tick_ns)
{
	return rehearse(sv, tick_ns, sv->prepared->source, sv->prepared->source_bytes);
}

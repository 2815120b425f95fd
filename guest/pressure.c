/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stress-ng's vm workers keep their share of memory in use. A guest has no disk
 * and so no page cache that could be reclaimed; in its place a filler keeps the
 * rest of memory full of pages that it has freed lazily (MADV_FREE). So every
 * page that the case allocates has to be reclaimed first, by kswapd or by the
 * case itself, as on a machine whose memory is full of clean cache.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pressure.h"
#include "readfile.h"

#define PROGRAM "/pressure/stress-ng"
#define CHUNK (1u << 20)
#define CHUNK_REST_NS 5000000L
#define START_TRIES 600
#define START_STEP_US 100000

/* Sums over the lines of /proc/vmstat that begin with these: their endings differ between kernels. */
static const struct {
	const char *prefix, *name;
} counters[PRESSURE_COUNTERS] = {
	{"pgscan_", "pgscan"},
	{"pgsteal_", "pgsteal"},
	{"allocstall", "allocstall"},
	{"pglazyfreed", "lazyfreed"},
	{"pswpin", "pswpin"},
	{"pswpout", "pswpout"},
	{"slabs_scanned", "slabs_scanned"},
	{"oom_kill", "oom_kill"},
};
#define OOM_KILL 7

/* Who reclaimed, not from which list: some kernels say both, and would be counted twice. */
static bool is_wanted(const char *line, size_t i)
{
	static const char *const who[] = {"kswapd ", "direct ", "khugepaged ", "proactive "};
	const char *rest = line + strlen(counters[i].prefix);
	size_t k;

	if (i > 1)
		return strncmp(line, "oom_kill_", 9) != 0;
	for (k = 0; k < sizeof(who) / sizeof(*who); k++)
		if (!strncmp(rest, who[k], strlen(who[k])))
			return true;
	return false;
}

static void read_counters(uint64_t *sums)
{
	struct text t = {0};
	const char *line, *space;
	size_t i;

	memset(sums, 0, PRESSURE_COUNTERS * sizeof(*sums));
	read_whole("/proc/vmstat", &t);
	for (line = t.s; line && *line; line = strchr(line, '\n'), line += line ? 1 : 0)
		for (i = 0; i < PRESSURE_COUNTERS; i++)
			if (!strncmp(line, counters[i].prefix, strlen(counters[i].prefix)) &&
			    is_wanted(line, i) && (space = strchr(line, ' ')))
				sums[i] += strtoull(space, NULL, 10);
	text_free(&t);
}

static int64_t meminfo_bytes(const char *name)
{
	struct text t = {0};
	const char *at = NULL;
	int64_t bytes = -1;

	read_whole("/proc/meminfo", &t);
	if (t.s && (at = strstr(t.s, name)) &&
	    __builtin_mul_overflow(strtoll(at + strlen(name), NULL, 10), 1024, &bytes))
		bytes = -1;
	text_free(&t);
	return bytes;
}

static bool parse(struct pressure *p, const char *spec)
{
	int64_t total = meminfo_bytes("MemTotal:");
	unsigned int percent;
	char end;

	if (total < 0 || sscanf(spec, "%ux%u%%%c", &p->workers, &percent, &end) != 2 ||
	    !p->workers || p->workers > 64 || !percent || percent > 95)
		return false;
	p->bytes = (uint64_t)total / 100 * percent;
	return true;
}

static __attribute__((noreturn)) void fill(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), at, i;
	struct timespec rest = {.tv_nsec = CHUNK_REST_NS};
	char *area = mmap(NULL, size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (area == MAP_FAILED || madvise(area, size, MADV_NOHUGEPAGE))
		write_string("/dev/kmsg", "kdelta: pressure: huge pages stay as they are");
	for (at = 0; area != MAP_FAILED; at = at + 2 * CHUNK > size ? 0 : at + CHUNK) {
		for (i = 0; i < CHUNK; i += page)
			area[at + i] = 1;
		if (madvise(area + at, CHUNK, MADV_FREE))
			break;
		nanosleep(&rest, NULL);
	}
	_exit(1);
}

/* The child of a fork that is to run beside the case: dies with us, and first when memory runs out. */
static void detach(const char *oom_score)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	write_string("/proc/self/oom_score_adj", oom_score);
}

static __attribute__((noreturn)) void exec_stress(const struct pressure *p)
{
	static char *const environment[] = {"LD_LIBRARY_PATH=/pressure/lib", "HOME=/tmp",
					    "PATH=/pressure", NULL};
	char workers[16], bytes[32];
	int null = open("/dev/null", O_RDWR);

	/* stress-ng divides the bytes among its workers. */
	snprintf(workers, sizeof(workers), "%u", p->workers);
	snprintf(bytes, sizeof(bytes), "%" PRIu64, p->bytes);
	if (null >= 0) {
		dup2(null, 0);
		dup2(null, 1);
		dup2(null, 2);
	}
	execve(PROGRAM,
	       (char *const[]){"stress-ng", "--vm", workers, "--vm-bytes", bytes, "--vm-keep",
			       "--timeout", "0", "--temp-path", "/tmp", "--quiet", NULL},
	       environment);
	_exit(127);
}

static bool is_alive(pid_t pid)
{
	siginfo_t info = {0};

	/* Left for whoever reaps; a process that was reaped is no child any more. */
	return pid > 0 && !waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) &&
	       !info.si_pid;
}

/* Processes whose name begins with stress-ng: the one that was started, and its workers. */
static unsigned int count_stress(void)
{
	DIR *dir = opendir("/proc");
	unsigned int n = 0;
	struct dirent *e;
	char path[300], name[32];

	while (dir && (e = readdir(dir))) {
		if (e->d_name[0] < '0' || e->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%s/comm", e->d_name);
		n += read_line(path, name, sizeof(name)) && !strncmp(name, "stress-ng", 9);
	}
	if (dir)
		closedir(dir);
	return n;
}

/* Waits until the workers have touched nearly all of their memory. */
static bool wait_for_workers(struct pressure *p)
{
	int64_t least = p->available_before - (int64_t)(p->bytes / 100 * 80);
	int i;

	for (i = 0; i < START_TRIES && is_alive(p->stress); i++) {
		p->available_during = meminfo_bytes("MemAvailable:");
		if (p->available_during < least && count_stress() > p->workers)
			return true;
		usleep(START_STEP_US);
	}
	return false;
}

int pressure_start(struct pressure *p, const char *spec, char *why, size_t size)
{
	*p = (struct pressure){0};
	if (!parse(p, spec)) {
		snprintf(why, size, "pressure=%.40s is not WORKERSxPERCENT%%, as in 2x60%%", spec);
		return -1;
	}
	if (access(PROGRAM, X_OK)) {
		snprintf(why, size, "this guest was made without stress-ng");
		return -1;
	}
	p->available_before = meminfo_bytes("MemAvailable:");
	p->stress = fork();
	if (!p->stress) {
		detach("500");
		exec_stress(p);
	}
	if (!wait_for_workers(p)) {
		snprintf(why, size,
			 "stress-ng %s: %u processes had %" PRId64 " of %" PRIu64
			 " MiB; ask for less pressure or give the guest more memory",
			 is_alive(p->stress) ? "is too slow" : "has ended", count_stress(),
			 (p->available_before - p->available_during) >> 20, p->bytes >> 20);
		pressure_stop(p);
		return -1;
	}
	p->filler = fork();
	if (!p->filler) {
		detach("1000");
		fill(2 * (size_t)meminfo_bytes("MemTotal:"));
	}
	read_counters(p->before);
	/* Full now: from here on there is reclaim. */
	while (is_alive(p->filler) && meminfo_bytes("MemFree:") > (64 << 20))
		usleep(START_STEP_US);
	return 0;
}

int pressure_check(struct pressure *p, char *why, size_t size)
{
	unsigned int n = count_stress();

	read_counters(p->after);
	p->available_during = meminfo_bytes("MemAvailable:");
	if (p->after[OOM_KILL] > p->before[OOM_KILL])
		snprintf(why, size,
			 "memory ran out under pressure: %" PRIu64
			 " processes were killed; ask for less "
			 "pressure or give the guest more memory",
			 p->after[OOM_KILL] - p->before[OOM_KILL]);
	else if (!is_alive(p->stress) || n <= p->workers)
		snprintf(why, size,
			 "the memory pressure did not last: %u of stress-ng's %u workers were left",
			 n ? n - 1 : 0, p->workers);
	else if (!is_alive(p->filler))
		snprintf(why, size, "the memory pressure did not last: its filler ended");
	else
		return 0;
	return -1;
}

void pressure_stop(struct pressure *p)
{
	pid_t *all[] = {&p->stress, &p->filler};
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(*all); i++) {
		if (*all[i] > 0) {
			kill(-*all[i], SIGKILL);
			waitpid(*all[i], NULL, 0);
		}
		*all[i] = 0;
	}
}

static void put(struct stream *s, unsigned int job, const char *name, double v)
{
	struct text t = {0};

	text_put(&t, "{\"t\":\"val\",\"j\":%u,\"name\":\"%s\",\"v\":", job, name);
	text_number(&t, v);
	text_put(&t, "}");
	stream_record(s, t.s, t.len);
	text_free(&t);
}

void pressure_report(const struct pressure *p, struct stream *s, unsigned int job)
{
	char name[64];
	size_t i;

	for (i = 0; i < PRESSURE_COUNTERS; i++) {
		snprintf(name, sizeof(name), "reclaim_%s", counters[i].name);
		put(s, job, name, (double)(p->after[i] - p->before[i]));
	}
	put(s, job, "pressure_bytes", (double)p->bytes);
	put(s, job, "available_before_bytes", (double)p->available_before);
	put(s, job, "available_during_bytes", (double)p->available_during);
}

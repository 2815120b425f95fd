/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The first records: which kernel this is, and what its clock costs. */
#include <inttypes.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "harness.h"
#include "readfile.h"

extern char **environ;

/* What the kernel gives PID 1 by itself (init/main.c: envp_init). */
static bool usual(const char *entry)
{
	return !strncmp(entry, "HOME=", 5) || !strncmp(entry, "TERM=", 5);
}

/* Words of the command line that the kernel did not know: most often misspelt. */
static void put_unknown(struct text *t, char **argv)
{
	struct text words = {0};

	if (!argv || !argv[0])
		return;
	for (char **word = argv + 1; *word; word++)
		text_put(&words, "%s%s", words.len ? " " : "", *word);
	for (char **word = environ; word && *word; word++)
		if (!usual(*word))
			text_put(&words, "%s%s", words.len ? " " : "", *word);
	if (words.len) {
		text_put(t, ",\"unknown\":");
		text_json(t, words.s);
	}
	text_free(&words);
}

void supervisor_hello(const struct supervisor *sv, const char *port, struct text *t)
{
	char cmdline[4096] = "", clock[64] = "unknown";
	struct clock_cost cost;
	struct timespec up;
	struct utsname u;
	struct sysinfo si;

	uname(&u);
	sysinfo(&si);
	clock_gettime(CLOCK_BOOTTIME, &up);
	clock_measure(&cost);
	read_line("/proc/cmdline", cmdline, sizeof(cmdline));
	read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", clock,
		  sizeof(clock));
	text_put(t, "{\"t\":\"hello\",\"proto\":1,\"release\":");
	text_json(t, u.release);
	text_put(t, ",\"machine\":");
	text_json(t, u.machine);
	text_put(t, ",\"nproc\":%ld,\"mem_kib\":%llu,\"cmdline\":", sysconf(_SC_NPROCESSORS_ONLN),
		 (unsigned long long)si.totalram * si.mem_unit / 1024);
	text_json(t, cmdline);
	put_unknown(t, sv->argv);
	text_put(t, ",\"clock\":");
	text_json(t, clock);
	text_put(t, ",\"clock_read_ns\":");
	text_number(t, cost.read_median_ns);
	text_put(t, ",\"clock_read_least_ns\":");
	text_number(t, cost.read_least_ns);
	text_put(t, ",\"clock_step_ns\":");
	text_number(t, cost.step_ns);
	text_put(t, ",\"port\":\"%s\",\"uptime_ns\":%" PRIu64 "}", port,
		 (uint64_t)up.tv_sec * 1000000000u + (uint64_t)up.tv_nsec);
}

/* What tells this boot and this build of a kernel from all others: proc(5), elf(5). */
void supervisor_kernel(struct stream *s)
{
	struct text notes = {0}, t = {0};
	char boot_id[64] = "";
	struct utsname u;

	uname(&u);
	read_line("/proc/sys/kernel/random/boot_id", boot_id, sizeof(boot_id));
	read_whole("/sys/kernel/notes", &notes);
	text_put(&t, "{\"t\":\"kernel\",\"version\":");
	text_json(&t, u.version);
	text_put(&t, ",\"boot_id\":");
	text_json(&t, boot_id);
	text_put(&t, ",\"notes\":\"");
	text_base64(&t, (const uint8_t *)notes.s, notes.len);
	text_put(&t, "\"}");
	if (!t.lost)
		stream_record(s, t.s, t.len);
	text_free(&notes);
	text_free(&t);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cgroup.h"
#include "readfile.h"

#define ROOT "/sys/fs/cgroup"

/* Our own cgroup: the root in a guest; elsewhere what /proc/self/cgroup says after "0::". */
static void own(bool init, char *path, size_t size)
{
	char line[200];

	snprintf(path, size, ROOT);
	if (!init && read_line("/proc/self/cgroup", line, sizeof(line)) &&
	    !strncmp(line, "0::/", 4) && line[4])
		snprintf(path, size, ROOT "%s", line + 3);
}

static bool has_word(const char *path, const char *word)
{
	char line[256], *save = NULL, *w;

	if (!read_line(path, line, sizeof(line)))
		return false;
	for (w = strtok_r(line, " ", &save); w; w = strtok_r(NULL, " ", &save))
		if (!strcmp(w, word))
			return true;
	return false;
}

int cgroup_make(unsigned int job, bool init, char *path, size_t size, char *why, size_t why_size)
{
	char parent[224], file[256];
	int error;

	own(init, parent, sizeof(parent));
	snprintf(file, sizeof(file), "%s/cgroup.controllers", parent);
	if (access(file, R_OK)) {
		snprintf(why, why_size, "cgroup=child: no cgroup2 here (CONFIG_CGROUPS)");
		return -1;
	}
	if (!has_word(file, "memory")) {
		snprintf(why, why_size,
			 "cgroup=child: the memory controller is missing (CONFIG_MEMCG, or "
			 "cgroup_disable=memory)");
		return -1;
	}
	snprintf(file, sizeof(file), "%s/cgroup.subtree_control", parent);
	error = has_word(file, "memory") ? 0 : write_string(file, "+memory");
	if (!error) {
		snprintf(path, size, "%s/kdelta%u", parent, job);
		error = mkdir(path, 0755) && errno != EEXIST ? errno : 0;
	}
	if (error) {
		snprintf(why, why_size, "cgroup=child: no memory cgroup could be made: %s",
			 strerror(error));
		path[0] = '\0';
		return -1;
	}
	return 0;
}

int cgroup_join(const char *path, char *why, size_t why_size)
{
	char file[288];
	int error;

	if (!path[0])
		return 0;
	snprintf(file, sizeof(file), "%s/cgroup.procs", path);
	error = write_string(file, "0");
	if (!error)
		return 0;
	snprintf(why, why_size, "cgroup=child: cannot enter the memory cgroup: %s",
		 strerror(error));
	return -1;
}

void cgroup_kill(const char *path)
{
	char file[288];

	if (!path[0])
		return;
	snprintf(file, sizeof(file), "%s/cgroup.kill", path);
	write_string(file, "1");
}

void cgroup_remove(const char *path)
{
	int i;

	/* Its last process may still be on its way out. */
	for (i = 0; path[0] && rmdir(path) && errno == EBUSY && i < 100; i++)
		usleep(10000);
}

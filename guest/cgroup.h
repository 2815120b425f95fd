/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A memory cgroup (v2) around a job. An empty path means: stay where you are. */
#ifndef KDELTA_CGROUP_H
#define KDELTA_CGROUP_H

#include <stdbool.h>
#include <stddef.h>

/* Makes a child with the memory controller; -1 and a sentence where this kernel or user has none. */
int cgroup_make(unsigned int job, bool init, char *path, size_t size, char *why, size_t why_size);
/* Moves the caller in. */
int cgroup_join(const char *path, char *why, size_t why_size);
void cgroup_kill(const char *path);
void cgroup_remove(const char *path);

#endif

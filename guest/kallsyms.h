/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KDELTA_KALLSYMS_H
#define KDELTA_KALLSYMS_H

#include "jobs.h"

#define KALLSYMS_JOB "kallsyms" /* in the place of a workload's name */

/*
 * Sends the kernel's own symbols, for images whose tables cannot be read from
 * outside: lines of /proc/kallsyms, functions and "_end" only, none of a
 * module, as trace records of the name "kallsyms". The last record is "done".
 */
void kallsyms_run(const struct job *job, int fd);

#endif

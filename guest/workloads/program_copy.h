/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KDELTA_PROGRAM_COPY_H
#define KDELTA_PROGRAM_COPY_H

#include "../workload.h"

/* Put a copy of what directory @path held at first over it, in memory; a copy that is there goes. Below zero: the case has failed. */
int fresh_copy(struct wl *wl, const char *path);

#endif

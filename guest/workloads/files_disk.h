/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KDELTA_FILES_DISK_H
#define KDELTA_FILES_DISK_H

#include "../workload.h"

/* Mounts an empty file system of this type at the case's directory, of a new RAM disk; tmpfs is there already. */
int mount_new(struct wl *wl, const char *type);

#endif

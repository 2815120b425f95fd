/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KDELTA_FILES_DISK_H
#define KDELTA_FILES_DISK_H

#include "../workload.h"

/* An empty file system of this type, mounted at the case's directory; of a new RAM disk, but for tmpfs. */
int mount_new(struct wl *wl, const char *type);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KDELTA_PROGRAM_DEVICES_H
#define KDELTA_PROGRAM_DEVICES_H

#include "../workload.h"

/* What a system adds to a devtmpfs that is mounted at @dev. Below zero: the case has failed. */
int furnish_devices(struct wl *wl, const char *dev);

#endif

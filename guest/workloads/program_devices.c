// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * /dev as programs find it on a machine that has booted: systemd and udev make there what devtmpfs has not.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program_devices.h"

/* As dev_setup() of systemd has them; <(...) of bash is a name below fd. */
static const char *const links[][2] = {
	{"/proc/self/fd", "fd"},
	{"/proc/self/fd/0", "stdin"},
	{"/proc/self/fd/1", "stdout"},
	{"/proc/self/fd/2", "stderr"},
};

int furnish_devices(struct wl *wl, const char *dev)
{
	char path[512];

	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dev, links[i][1]);
		if (symlink(links[i][0], path) && errno != EEXIST) /* one devtmpfs for all */
			return wl_fail(wl, "symlink %s", path);
	}
	/* for openpty(3), as script(1) calls it; a kernel may have none */
	snprintf(path, sizeof(path), "%s/pts", dev);
	mkdir(path, 0755);
	mount("devpts", path, "devpts", MS_NOSUID | MS_NOEXEC, "ptmxmode=0666,mode=0620");
	snprintf(path, sizeof(path), "%s/shm", dev);
	if ((mkdir(path, 01777) && errno != EEXIST) || mount("tmpfs", path, "tmpfs", 0, NULL))
		return wl_fail(wl, "mount of tmpfs at %s", path);
	return 0;
}

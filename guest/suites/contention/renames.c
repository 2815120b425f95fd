/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names that are read under sequence counters while others write them. */
#include "../../case.h"

CASE(rename_lookup, "access(2) on one name by processes, which another renames there and back")
{
	if (t->nr) {
		EXPECT(!access("../name", R_OK) || errno == ENOENT);
		return;
	}
	OK(rename("../name", "../other"));
	OK(rename("../other", "../name"));
}

OPS(rename_lookup, 24)
EVERY_CPU(rename_lookup, processes);

SHARED(rename_lookup)
{
	OK(close(OK(open("name", O_RDWR | O_CREAT, 0600))));
}

CASE(rename_getcwd, "getcwd(2) by every second process; the others rename a file there and back")
{
	char name[128];

	if (t->nr % 2) {
		OK(syscall(SYS_getcwd, name, sizeof(name)));
		return;
	}
	OK(rename("file", "other"));
	OK(rename("other", "file"));
}

OPS(rename_getcwd, 24)
EVERY_CPU(rename_getcwd, processes);

SETUP(rename_getcwd)
{
	OK(close(OK(open("file", O_RDWR | O_CREAT, 0600))));
}

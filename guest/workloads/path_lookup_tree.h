/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KDELTA_PATH_LOOKUP_TREE_H
#define KDELTA_PATH_LOOKUP_TREE_H

#include <limits.h>

#include "../workload.h"

#define LOOKUPS 205
#define MAX_LINKS 40		 /* the kernel's limit */
#define PLAIN_NAME "%s/file%03u" /* of plain_stem() and 0 .. LOOKUPS - 1 */

/* Makes what path_lookup/tree.txt names below root, a directory that exists. */
int make_recorded_tree(struct wl *wl, const char *root, bool prefix);

/* LOOKUPS files: depth components deep, or with depth 0 in /hop0, to which hops symlinks lead in a chain. */
int make_plain_tree(struct wl *wl, const char *root, unsigned int depth, unsigned int hops);
void plain_stem(char stem[PATH_MAX], unsigned int depth, unsigned int hops);

/*
 * Resolves path below root by readlink(2): 1 where it exists, 0 where it does
 * not, -1 for any other end; *links are the symlinks that were crossed.
 */
int walk(const char *root, const char *cwd, const char *path, unsigned int *links);

#endif

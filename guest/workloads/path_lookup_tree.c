/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The trees that path_lookup resolves names in, and a second opinion on each lookup. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "path_lookup_tree.h"

static int join(char *buf, const char *root, const char *path)
{
	return snprintf(buf, PATH_MAX, "%s%s", root, path) < PATH_MAX ? 0 : -1;
}

/* Without chroot (prefix), a symlink to an absolute name gets the root in front. */
static int make_entry(struct wl *wl, const char *root, bool prefix, char kind, const char *path,
		      const char *target)
{
	char at[PATH_MAX], to[PATH_MAX];
	int fd, error;

	if (join(at, root, path) || join(to, prefix && target[0] == '/' ? root : "", target))
		return wl_fail(wl, "path of %s too long", path);
	switch (kind) {
	case 'd':
		error = mkdir(at, 0755) && errno != EEXIST;
		break;
	case 'f':
		fd = open(at, O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
		error = fd < 0 || close(fd);
		break;
	case 'l':
		error = symlink(to, at);
		break;
	default:
		errno = 0;
		error = 1;
	}
	return error ? wl_fail(wl, "making %c %s", kind, path) : 0;
}

int make_recorded_tree(struct wl *wl, const char *root, bool prefix)
{
	char name[PATH_MAX], line[2 * PATH_MAX], path[PATH_MAX], target[PATH_MAX];
	FILE *f = fopen(wl_data("path_lookup/tree.txt", name, sizeof(name)), "re");
	int error = 0;
	char kind;

	if (!f)
		return wl_fail(wl, "%s", name);
	while (!error && fgets(line, sizeof(line), f)) {
		target[0] = '\0';
		if (sscanf(line, "%c %4095s %4095s", &kind, path, target) < 2)
			error = wl_fail(wl, "damaged line in %s", name);
		else
			error = make_entry(wl, root, prefix, kind, path, target);
	}
	fclose(f);
	return error;
}

void plain_stem(char stem[PATH_MAX], unsigned int depth, unsigned int hops)
{
	unsigned int i;

	stem[0] = '\0';
	if (!depth)
		snprintf(stem, PATH_MAX, "/hop%u", hops);
	for (i = 1; i < depth; i++)
		snprintf(stem + strlen(stem), PATH_MAX - strlen(stem), "/directory%02u", i);
}

int make_plain_tree(struct wl *wl, const char *root, unsigned int depth, unsigned int hops)
{
	char stem[PATH_MAX], at[PATH_MAX + 16], from[16], to[16];
	unsigned int i;
	int error = 0;

	for (i = 1; !error && i < depth; i++) {
		plain_stem(stem, i + 1, 0);
		error = make_entry(wl, root, false, 'd', stem, "");
	}
	plain_stem(stem, depth, 0);
	if (!depth)
		error = make_entry(wl, root, false, 'd', stem, "");
	for (i = 1; !error && i <= hops; i++) {
		snprintf(from, sizeof(from), "/hop%u", i);
		snprintf(to, sizeof(to), "hop%u", i - 1);
		error = make_entry(wl, root, false, 'l', from, to);
	}
	for (i = 0; !error && i < LOOKUPS; i++) {
		snprintf(at, sizeof(at), PLAIN_NAME, stem, i);
		error = make_entry(wl, root, false, 'f', at, "");
	}
	return error;
}

/* Puts target in front of what is still to resolve. */
static int prepend(char *rest, const char *target)
{
	char both[PATH_MAX];

	if (snprintf(both, sizeof(both), "%s/%s", target, rest) >= PATH_MAX)
		return -1;
	strcpy(rest, both);
	return 0;
}

int walk(const char *root, const char *cwd, const char *path, unsigned int *links)
{
	char at[PATH_MAX], rest[PATH_MAX], target[PATH_MAX], *slash;
	size_t floor = strlen(root);
	ssize_t length;
	struct stat st;

	*links = 0;
	if (join(at, root, path[0] == '/' ? "" : cwd) || join(rest, "", path))
		return -1;
	while (rest[0]) {
		size_t name = strcspn(rest, "/"), next = name + strspn(rest + name, "/"),
		       keep = strlen(at);

		if (name == 2 && !strncmp(rest, "..", 2)) {
			slash = strrchr(at, '/');
			if (keep > floor)
				*slash = '\0';
		} else if (name && !(name == 1 && rest[0] == '.')) {
			if (keep + name + 2 > sizeof(at))
				return -1;
			snprintf(at + keep, sizeof(at) - keep, "/%.*s", (int)name, rest);
			if (lstat(at, &st))
				return errno == ENOENT ? 0 : -1;
		}
		memmove(rest, rest + next, strlen(rest + next) + 1);
		length = readlink(at, target, sizeof(target) - 1);
		if (length < 0)
			continue;
		target[length] = '\0';
		at[target[0] == '/' ? floor : keep] = '\0';
		if (++*links > MAX_LINKS || prepend(rest, target))
			return -1;
	}
	return 1;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whole lives of pidfds, processes, pipes and mappings on awkward and failing
 * paths: one operation makes an object, sees it fail or die, and lets go of all
 * of it. What is left afterwards is a leak: kdelta leaks counts it.
 */
#include <string.h>

#include "lifetimes.h"

static const struct way *const families[] = {lifetimes_pidfd, lifetimes_limits, lifetimes_memory};

static const struct way *way_named(const char *name)
{
	const struct way *w;
	size_t i;

	for (i = 0; i < sizeof(families) / sizeof(*families); i++)
		for (w = families[i]; w->name; w++)
			if (!strcmp(w->name, name))
				return w;
	return NULL;
}

static const struct way *way; /* one case a process */

static int setup(struct wl *wl)
{
	way = way_named(wl_param(wl, "path"));
	if (!way)
		return wl_fail(wl, "no such path");
	return way->setup ? way->setup(wl) : 0;
}

static void op(struct wl_task *t)
{
	way->op(t);
}

static void teardown(struct wl *wl)
{
	if (way && way->teardown)
		way->teardown(wl);
}

static const char *const params[] = {"path", NULL};
static const struct workload lifetimes = {
	.name = "lifetimes",
	.params = params,
	.setup = setup,
	.op = op,
	.teardown = teardown,
};
WORKLOAD(lifetimes);

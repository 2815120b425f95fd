/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How many instructions run while a lock is held. The host names the places: a
 * hold starts at the instruction after a call that takes a lock, and ends at the
 * call that releases it in the same function (a group). That instruction is often
 * reached without the call, too (a lock taken under a condition), so the call is
 * a place as well. One vCPU: whatever runs in between, also an interrupt or
 * another task, runs while the lock is held.
 *
 *	in:	kdelta-hold-sites 2
 *		ask ADDRESS SITE GROUP		the call; in order of addresses, at one first what ends
 *		rel ADDRESS 0 GROUP
 *		acq ADDRESS SITE GROUP		the instruction after it; numbers from 0
 *	out:	kdelta-holds 1
 *		interval ID
 *		site SITE COUNT TOTAL MAX	only sites that were there
 *		group GROUP NESTED OPEN		only groups in which a hold began before the last one ended
 *		end INTERVALS
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kdelta.h"
#include "qemu_api.h"

#define LINE_MAX_BYTES 128

enum what { ACQ, REL, ASK }; /* as they happen at one address */

struct place {
	uint64_t pc;
	uint32_t site, group;
	enum what what;
};

struct site {
	uint64_t asked; /* calls that have not returned */
	uint64_t count, total, max;
};

struct group {
	bool held;
	uint32_t site;
	uint64_t since;
	uint64_t
		nested; /* holds that began before the last one ended: it is not known for how long that was */
};

uint64_t hold_executed;

static struct place *places;
static size_t n_places, room;
static struct site *sites;
static struct group *groups;
static uint32_t n_sites, n_groups, n_intervals;
static bool counting;
static FILE *out;

static bool comes_after(const struct place *p, const struct place *last)
{
	return p->pc > last->pc || (p->pc == last->pc && p->what > last->what);
}

static bool add_place(const char *line)
{
	struct place p = {0};
	char what[4];

	if (sscanf(line, "%3s %" SCNx64 " %" SCNu32 " %" SCNu32, what, &p.pc, &p.site, &p.group) !=
	    4)
		return false;
	p.what = !strcmp(what, "acq") ? ACQ : !strcmp(what, "rel") ? REL : ASK;
	if ((p.what == ASK && strcmp(what, "ask")) || p.site >= 1u << 24 || p.group >= 1u << 24 ||
	    (n_places && !comes_after(&p, &places[n_places - 1])))
		return false;
	if (n_places == room) {
		struct place *more = xalloc(room = room ? room * 2 : 4096, sizeof(*more));

		if (n_places)
			memcpy(more, places, n_places * sizeof(*places));
		free(places);
		places = more;
	}
	places[n_places++] = p;
	if (p.site >= n_sites)
		n_sites = p.site + 1;
	if (p.group >= n_groups)
		n_groups = p.group + 1;
	return true;
}

bool hold_open(const char *in_path, const char *out_path)
{
	char line[LINE_MAX_BYTES];
	FILE *in = fopen(in_path, "r");
	bool ok = in && fgets(line, sizeof(line), in) && !strcmp(line, "kdelta-hold-sites 2\n");

	while (ok && fgets(line, sizeof(line), in))
		ok = add_place(line);
	if (in)
		fclose(in);
	if (!ok || !n_places) {
		fprintf(stderr, "kdelta plugin: %s is not a list of lock sites\n", in_path);
		return false;
	}
	sites = xalloc(n_sites, sizeof(*sites));
	groups = xalloc(n_groups, sizeof(*groups));
	out = fopen(out_path, "w");
	if (!out) {
		fprintf(stderr, "kdelta plugin: cannot create %s\n", out_path);
		return false;
	}
	fputs("kdelta-holds 1\n", out);
	return true;
}

bool hold_wanted(void)
{
	return out;
}

static int by_pc(const void *key, const void *place)
{
	uint64_t pc = *(const uint64_t *)key, at = ((const struct place *)place)->pc;

	return (pc > at) - (pc < at);
}

/* Both callbacks run on the same side of the counter's step: it cancels out. */
static void place_cb(unsigned int vcpu, void *udata)
{
	const struct place *p = udata;
	struct group *g = &groups[p->group];
	uint64_t held;

	(void)vcpu;
	if (!counting)
		return;
	if (p->what == ASK) {
		sites[p->site].asked++;
	} else if (p->what == ACQ) {
		if (!sites[p->site].asked) /* not by the call, or the next iteration of a REP */
			return;
		sites[p->site].asked--;
		g->nested += g->held;
		g->held = true;
		g->site = p->site;
		g->since = hold_executed;
	} else if (g->held) {
		held = hold_executed - g->since;
		g->held = false;
		sites[g->site].count++;
		sites[g->site].total += held;
		if (held > sites[g->site].max)
			sites[g->site].max = held;
	}
}

void hold_instrument(struct qemu_plugin_insn *insn, uint64_t pc)
{
	struct place *p = bsearch(&pc, places, n_places, sizeof(*places), by_pc);

	while (p && p > places && p[-1].pc == pc)
		p--;
	for (; p && p < places + n_places && p->pc == pc; p++)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, place_cb, CB_NO_REGS, p);
}

void hold_begin(void)
{
	if (!out)
		return;
	memset(sites, 0, n_sites * sizeof(*sites));
	memset(groups, 0, n_groups * sizeof(*groups));
	counting = true;
}

void hold_end(uint32_t id)
{
	uint32_t i;

	if (!out)
		return;
	counting = false;
	fprintf(out, "interval %" PRIu32 "\n", id);
	for (i = 0; i < n_sites; i++)
		if (sites[i].count)
			fprintf(out, "site %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", i,
				sites[i].count, sites[i].total, sites[i].max);
	for (i = 0; i < n_groups; i++)
		if (groups[i].nested || groups[i].held)
			fprintf(out, "group %" PRIu32 " %" PRIu64 " %d\n", i, groups[i].nested,
				groups[i].held);
	n_intervals++;
}

void hold_close(void)
{
	if (!out)
		return;
	fprintf(out, "end %" PRIu32 "\n", n_intervals);
	if (fclose(out))
		fprintf(stderr, "kdelta plugin: cannot write the holds\n");
	out = NULL;
}

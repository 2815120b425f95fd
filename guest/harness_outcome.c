/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How a case went: ok until the first error, which says why. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "harness.h"

bool case_failed(struct harness *h)
{
	return atomic_load_explicit(&h->state, memory_order_relaxed) != STATE_OK;
}

int set_verror(struct harness *h, enum state state, int error, const char *fmt, va_list args)
{
	int expected = STATE_OK;
	char text[sizeof(h->why)];

	vsnprintf(text, sizeof(text), fmt, args);
	/* The first to fail says why: later failures follow from it. */
	if (atomic_compare_exchange_strong(&h->state, &expected, state)) {
		if (error)
			snprintf(h->why, sizeof(h->why), "%.180s: %s", text, strerror(error));
		else
			snprintf(h->why, sizeof(h->why), "%s", text);
	}
	return -1;
}

int set_error(struct harness *h, enum state state, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	set_verror(h, state, 0, fmt, args);
	va_end(args);
	return -1;
}

void done_record(struct text *t, unsigned int job, const char *state, const char *why)
{
	text_put(t, "{\"t\":\"done\",\"j\":%u,\"state\":\"%s\",\"why\":", job, state);
	text_json(t, why);
	text_put(t, "}\n");
}

void put_rep(struct harness *h, uint32_t r, uint64_t ops)
{
	text_put(&h->out, "{\"t\":\"rep\",\"j\":%u,\"r\":%u,\"id\":%u,\"ops\":%llu}\n", h->job->nr,
		 r, h->job->nr << 8 | r, (unsigned long long)ops);
}

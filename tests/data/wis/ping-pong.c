/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A sample testcase in the will-it-scale ABI: a partner made by new_task(), prepare and cleanup. */
#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

char *testcase_description = "One byte there and back through two pipes";

extern void new_task(void *(*func)(void *), void *arg);

unsigned long helper; /* global, as in other testcases: must not clash */

struct ends {
	int there[2], back[2];
};

static void *partner(void *arg)
{
	struct ends *e = arg;
	char c;

	while (read(e->there[0], &c, 1) == 1)
		if (write(e->back[1], &c, 1) != 1)
			break;
	return NULL;
}

void testcase_prepare(unsigned long nr_tasks)
{
	helper = nr_tasks;
}

void testcase_cleanup(void)
{
	helper = 0;
}

void testcase(unsigned long long *iterations, unsigned long nr)
{
	struct ends e;
	char c = 'k';

	if (nr >= helper)
		abort(); /* prepare has not run */
	assert(pipe(e.there) == 0 && pipe(e.back) == 0);
	new_task(partner, &e);
	while (1) {
		assert(write(e.there[1], &c, 1) == 1);
		assert(read(e.back[0], &c, 1) == 1);
		(*iterations)++;
	}
}

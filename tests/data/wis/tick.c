/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A sample testcase in the will-it-scale ABI: no prepare, no cleanup. */
#include <unistd.h>

char *testcase_description = "getppid in a loop";

static unsigned long helper; /* the same name as in ping-pong.c */

void testcase(unsigned long long *iterations, unsigned long nr)
{
	helper = nr;
	while (1) {
		getppid();
		(*iterations)++;
	}
}

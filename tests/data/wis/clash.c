/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A sample testcase in the will-it-scale ABI that returns, which the ABI does not allow; its global clashes. */
char *testcase_description = "returns";

unsigned long helper;

void testcase(unsigned long long *iterations, unsigned long nr)
{
	helper = nr;
	(*iterations)++;
}

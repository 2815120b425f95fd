/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * When the plugin has code instrumented (ARCHITECTURE.md, "Contract: marks"):
 * only from shortly before the first interval on, because to translate code with
 * its counters takes QEMU twice as long.
 */
#include "harness.h"
#include "mark.h"

/* One copy for all processes: once QUIET was said, ARM is seen only where it was translated before. */
__attribute__((noinline)) void exact_arm(void)
{
	MARK(MARK_OP_ARM, 0);
}

void exact_quiet(void)
{
	/* Twice: a timer that comes within has QEMU translate a part of it alone. */
	exact_arm();
	exact_arm();
	MARK(MARK_OP_QUIET, 0);
}

# SPDX-License-Identifier: GPL-2.0-or-later
"""A kdelta whose guest marks the windows of its hardware counters, so that the plugin counts the same operations.

The guest that ships does not: marks would move what it counts. Here the tasks of the case alone count, as they do for
the counters: what kernel threads do meanwhile is left out. Or all that the CPU runs, under counters of the CPU, which
perf does not stop and start at each task switch.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

import kdelta
from kdelta.attribution import profiles
from kdelta.paths import shipped

_KERNEL_HALF = np.uint64(1 << 63)
_OTHERS = """#include "harness.h"
#include "mark.h"
#include <signal.h>
#include <sys/wait.h>

static uint32_t marked;

/* A task that leaves out all that say nothing, as long as it lives. */
static pid_t others_out(void)
{
	pid_t pid;

	exact_arm();
	pid = fork();
	if (pid)
		return usleep(50000), pid; /* it has said so */
	MARK(MARK_OP_PAUSE, 0);
	for (;;)
		pause();
}

static void others_in(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}
"""
_BEGIN = "mark_id(h->job->nr << 16 | marked++);\n\tMARK(MARK_OP_BEGIN, {0});\n"
_END = "\tMARK(MARK_OP_END, 0);\n"
# By file: (what is there once, what stands there instead).
_PATCHES = {
    "harness_pmu.c": (
        ('#include "harness.h"\n', _OTHERS),
        ("\t\tif (def->after)\n\t\t\tdef->op(t);\n", f"{_BEGIN.format('0')}\t\tif (def->after)\n\t\t\tdef->op(t);\n"),
        ("\t\t\trun_ops(def, t, n);\n", f"\t\t\trun_ops(def, t, n);\n{_END}"),
        ("\tops = next(h);\n", f"\t{_BEGIN.format('MARK_ALONE')}\tops = next(h);\n{_END}"),
        (
            "\tunsigned int round;\n\tstruct pmu p;\n\tuint64_t i;\n\n\tfor",
            "\tunsigned int round;\n\tstruct pmu p;\n\tuint64_t i;\n\tpid_t out = others_out();\n\n\tfor",
        ),
        ("\t\tpmu_close(&p);\n\t}\n}\n", "\t\tpmu_close(&p);\n\t}\n\tothers_in(out);\n}\n"),
        ("\tallow_files();\n", "\tallow_files();\n\tpid_t out = others_out();\n\n"),
        ("\tfree(tids);\n", "\tothers_in(out);\n\tfree(tids);\n"),
        (
            "\tunsigned int k;\n\n\tfor (k = 0; k < AT_ONCE; k++) {\n\t\tint error = why_not",
            '\tunsigned int k;\n\n\tif (p->kinds == kinds[0])\n\t\twl_value(&h->wl, "pmu_ops", (double)p->ops);\n'
            "\tfor (k = 0; k < AT_ONCE; k++) {\n\t\tint error = why_not",
        ),
    ),
    "harness_tasks.c": (
        ('#include "harness.h"\n', '#include "harness.h"\n#include "mark.h"\n'),
        ("\twhile (atomic_load(&h->phase) == PHASE_WAIT)\n",
         "\texact_arm();\n\tMARK(MARK_OP_RESUME, 0);\n\twhile (atomic_load(&h->phase) == PHASE_WAIT)\n"),
    ),
}  # fmt: skip
_WHOLE_CPU = (
    ("\tpid = fork();\n\tif (pid)\n\t\treturn usleep(50000), pid; /* it has said so */\n"
     "\tMARK(MARK_OP_PAUSE, 0);\n\tfor (;;)\n\t\tpause();\n", "\treturn pid = 0;\n"),
    ("\tkill(pid, SIGKILL);\n\twaitpid(pid, NULL, 0);\n", "\t(void)pid;\n"),
    ("#include <signal.h>\n", "#include <sched.h>\n"),
    ("(SYS_perf_event_open, &attr, tid, -1, -1,", "(SYS_perf_event_open, &attr, tid * 0 - 1, sched_getcpu(), -1,"),
    ("MARK(MARK_OP_BEGIN, MARK_ALONE);", "MARK(MARK_OP_BEGIN, 0);"),
    ("pmu_open(&p, kinds[round], tids, h->wl.tasks)", "pmu_open(&p, kinds[round], tids, 1)"),
)  # fmt: skip


def marked(folder: Path, whole_cpu: bool) -> Path:
    """A copy of this kdelta with such a guest; what to set PYTHONPATH to."""
    source = folder / "src"
    shutil.copytree(Path(kdelta.__file__).parent, source / "kdelta", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(shipped("guest"), folder / "guest")
    for name in ("plugin", "recipes"):
        (folder / name).symlink_to(shipped(name))
    for name, patches in [*_PATCHES.items(), *([("harness_pmu.c", _WHOLE_CPU)] if whole_cpu else [])]:
        path = folder / "guest" / name
        text = path.read_text()
        for old, new in patches:
            assert text.count(old) == 1, f"{name}: {old!r} is there {text.count(old)} times"
            text = text.replace(old, new)
        path.write_text(text)
    return source


def kernel_instructions(counts: Path) -> dict[int, int]:
    """By job: what the plugin counted in all windows."""
    found: dict[int, int] = {}
    for interval in profiles.read(counts.read_bytes()):
        kernel = int(interval.counts[interval.pcs >= _KERNEL_HALF, 0].sum())
        found[interval.id >> 16] = found.get(interval.id >> 16, 0) + kernel
    return found

# SPDX-License-Identifier: GPL-2.0-or-later
"""The job list that a guest reads. Pure; see ARCHITECTURE.md, Contract: jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from kdelta.errors import UserError
from kdelta.model import Case, Effort, Mode
from kdelta.spec import program
from kdelta.spec.workloads import RESERVED


def _job(index: int, case: Case, effort: Effort, mode: Mode, exact_ops: int) -> str:
    workload = program.WORKLOAD if program.PACK in case.params else case.workload
    words = [f"job {index} {workload}", f"limit_ms={effort.limit_ms}"]
    if effort.batches:
        words += [f"batches={effort.batches}", f"ops={effort.batch_ops}"]
    elif mode == "exact":
        words += [f"reps={effort.repetitions}", f"ops={exact_ops}"]
    else:
        words += [
            f"warmup={effort.warmup_windows}",
            f"windows={effort.windows}",
            f"window_ms={effort.window_ms}",
            f"latency_ops={effort.latency_ops}",
        ]
        words += [f"pmu={effort.pmu_windows}"] if effort.pmu_windows else []
    words.append(f"cgroup={case.cgroup}")
    if case.pressure:
        words.append(f"pressure={case.pressure}")
    for key, value in case.params.items():
        if key in RESERVED or not value or any(c.isspace() or not c.isprintable() for c in key + value):
            raise UserError(f"case {case.name}: parameter {key}={value!r} cannot be passed to a guest")
        words.append(f"{key}={value}")
    return " ".join(words)


class JobList(Struct, frozen=True, kw_only=True):
    """A job list: ``lines`` are its jobs, each followed by what is to be traced in it.

    ``seed`` perturbs an exact guest before each job; where it is ``rehearsed``, the only job of a restored guest is run
    once before that.
    """

    mode: Mode
    seed: int = 1
    rehearsed: bool = True
    lines: tuple[str, ...] = ()

    def text(
        self, *, settle_ms: int = 0, snapshot: bool = False, scatter: int = 0, turns_ms: int = 0, port: str = ""
    ) -> str:
        """As the guest reads it; with ``snapshot`` it pauses and gets its jobs when it runs again, through fw_cfg.

        ``scatter``: where the kernel's objects lie before that; 0: as they happen to.
        ``turns_ms``: how long after that the turns of its CPUs become short (machine/turns.py), where they do.
        ``port``: the serial console of a machine that is no guest, by its device's name.
        """
        head = (f"mode {self.mode}", f"seed {self.seed}", f"settle_ms {settle_ms}", f"snapshot {int(snapshot)}")
        more = (
            *((f"scatter {scatter}",) if scatter else ()),
            *((f"turns_ms {turns_ms}",) if turns_ms else ()),
            *((f"port {port}",) if port else ()),
            *(() if self.rehearsed else ("rehearse 0",)),
        )
        return "\n".join(["kdelta-jobs 1", *(f"set {line}" for line in (*head, *more)), *self.lines, "end", ""])

    @classmethod
    def joined(cls, lists: Sequence[JobList]) -> JobList:
        """Lists of one job each as one, their jobs numbered as they come; the settings are the first's."""
        lines = []
        for number, one in enumerate(lists):
            _, _, rest = one.lines[0].split(" ", 2)
            lines += [f"job {number} {rest}", *one.lines[1:]]
        return replace(lists[0], lines=tuple(lines))

    def apart(self) -> dict[int, JobList]:
        """Each job, with what is to be traced in it, as a list of its own, by its number here.

        There it is number 0, so that what a guest does hangs on the job alone.
        """
        starts = [index for index, line in enumerate(self.lines) if line.startswith("job ")]
        found = {}
        for first, last in pairwise([*starts, len(self.lines)]):
            _, number, rest = self.lines[first].split(" ", 2)
            found[int(number)] = replace(self, lines=(f"job 0 {rest}", *self.lines[first + 1 : last]))
        return found


def case_jobs(
    cases: Mapping[int, Case],
    *,
    mode: Mode,
    efforts: Mapping[int, Effort],
    exact_ops: Mapping[int, int],
    seed: int = 1,
    rehearsed: bool = True,
    traces: Mapping[int, Sequence[str]] | None = None,
) -> JobList:
    """The job list for ``cases`` by index.

    ``traces``: what a job collects with the kernel's tracefs, as lines of guest/trace.h without their first word.

    Raises:
        UserError: a parameter cannot be passed to a guest.
    """
    lines = []
    for i, case in sorted(cases.items()):
        lines.append(_job(i, case, efforts[i], mode, exact_ops[i]))
        lines += [f"trace {line}" for line in (traces or {}).get(i, ())]
    return JobList(mode=mode, seed=seed, rehearsed=rehearsed or mode == "timed", lines=tuple(lines))

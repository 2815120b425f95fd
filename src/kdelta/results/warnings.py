# SPDX-License-Identifier: GPL-2.0-or-later
"""What a reader must know beside the figures, as values; the sentences are made in report/sentences.py."""

from __future__ import annotations

import errno
from typing import ClassVar, Literal

from msgspec import Struct

from kdelta.model import Warn


class StepUnseen(Warn, frozen=True):
    """A step in times could not be seen, whatever its size: too few blocks."""

    code: ClassVar[str] = "step-unseen"
    blocks: int
    needed: int


class StepDetectable(Warn, frozen=True):
    """The minimum detectable step of counts that vary."""

    code: ClassVar[str] = "step-detectable"
    percent: float


class TakenOver(Warn, frozen=True):
    """Boots that were made for another experiment."""

    code: ClassVar[str] = "taken-over"
    boots: int
    of: int
    experiment: str


class NoNames(Warn, frozen=True):
    """Functions without names: (kernel, why) of each side that has none, as far as it is known."""

    code: ClassVar[str] = "no-symbols"
    why: tuple[tuple[str, str], ...]


class ExactLabel(Warn, frozen=True):
    """What an exact figure of this workload means."""

    code: ClassVar[str] = "exact-label"
    text: str


class Reclaim(Struct, frozen=True):
    """What memory pressure came to on one kernel, in a run."""

    kernel: str
    scanned: float
    reclaimed: float
    stalls: float


class Carried(Warn, frozen=True):
    """Counts beside instructions that changed by much more: (name, change in percent), the largest change first.

    ``new``: (name, per operation) of those that the baseline has none of. ``function``: where most of the ``lead``
    changed, "" where that is not known, or in no single one.
    """

    code: ClassVar[str] = "carried"
    instructions_percent: float
    columns: tuple[tuple[str, float], ...]
    function: str = ""
    new: tuple[tuple[str, float], ...] = ()

    @property
    def lead(self) -> str:
        """The count that is told first."""
        return (*self.new, *self.columns)[0][0]


class Idles(Warn, frozen=True):
    """Operations wait ``more`` often than on the baseline, or less; ``anew``: on one of the two not at all.

    ``grace``: for grace periods of RCU, while other tasks run.
    """

    code: ClassVar[str] = "idles"
    more: bool
    anew: bool
    grace: bool = False


class CallMoved(Struct, frozen=True):
    """By how many instructions an operation a system call moved, and by how much of its own."""

    name: str
    delta: float
    percent: float


class CancelsOut(Warn, frozen=True):
    """Of a figure that is the same: the system calls that take ``fewer`` instructions, and ``more``."""

    code: ClassVar[str] = "cancels-out"
    fewer: tuple[CallMoved, ...]
    more: tuple[CallMoved, ...]


class BusyWaits(Warn, frozen=True):
    """So many of the ``instructions`` that an operation has more, or fewer, pass the time in a loop by a clock."""

    code: ClassVar[str] = "busy-waits"
    instructions: float


class PutsOff(Warn, frozen=True):
    """More instructions hand work over ``to`` what does it later; ``gain``: in all they are fewer.

    ``to`` is () where that is not seen, but objects are made as before and fewer freed.
    """

    code: ClassVar[str] = "puts-off"
    to: tuple[str, ...] = ()
    gain: bool = True


class Rearms(Warn, frozen=True):
    """Timers are started ``times`` as often; ``left_percent``: what the change is without the functions that do."""

    code: ClassVar[str] = "rearms"
    times: float
    left_percent: float


class Layout(Warn, frozen=True):
    """Lines of code, per operation, that functions ``moved`` which run what they ran; ``others`` are the rest."""

    code: ClassVar[str] = "layout"
    moved: float
    others: float


class Explained(Warn, frozen=True):
    """What counts say of a row in time. Changes are in percent (infinite: from 0), by name, the largest first.

    Fewer is cheaper. ``word``: the verdict on the time. ``along``: counts that changed the same way; ``against``: the
    other way; ``still``: those that are the same. ``floor_percent``: the smallest change of the time that is told.
    """

    code: ClassVar[str] = "explained"
    metric: str
    percent: float
    word: str
    along: tuple[tuple[str, float], ...] = ()
    against: tuple[tuple[str, float], ...] = ()
    still: tuple[str, ...] = ()
    floor_percent: float | None = None


class CountsElsewhere(Warn, frozen=True):
    """The counts that explain an experiment in time are not in this store."""

    code: ClassVar[str] = "counts-elsewhere"
    experiment: str


class Grows(Warn, frozen=True):
    """Each repetition cost more than the one before, under all seeds: the mean of the steps, by kernel."""

    code: ClassVar[str] = "grows"
    kernels: tuple[tuple[str, float], ...]


class OneTask(Warn, frozen=True):
    """A case has one task on several CPUs: little moves between them."""

    code: ClassVar[str] = "one-task"
    cpus: int


class Pressure(Warn, frozen=True):
    """Reclaim beside a case under memory pressure."""

    code: ClassVar[str] = "pressure"
    kernels: tuple[Reclaim, ...]


class ProgramVaries(Warn, frozen=True):
    """A program that does other things from seed to seed: its own instructions (None: from 0), and calls by number.

    ``calls``: (system call, fewest, most) per run; ``functions``: of the kernel, whose counts differ for it.
    """

    code: ClassVar[str] = "program-varies"
    kernel: str
    spread_percent: float
    own_percent: float | None
    calls: tuple[tuple[str, float, float], ...]
    more_calls: int
    functions: tuple[str, ...]
    more_functions: int


class Follows(Warn, frozen=True):
    """Fresh boots of what another experiment left undecided."""

    code: ClassVar[str] = "follows"
    experiment: str


class FewerCpus(Warn, frozen=True):
    """Guests of ``kernel`` that had at least ``cpus`` CPUs where ``asked`` were asked for: ``boots`` of ``made``."""

    code: ClassVar[str] = "fewer-cpus"
    kernel: str
    cpus: int
    asked: int
    boots: int
    made: int


class IsolatedCpus(Warn, frozen=True):
    """CPUs of a kernel's guests that no task is moved to, by these ``words`` of its command line."""

    code: ClassVar[str] = "isolated-cpus"
    kernel: str
    words: str


class UnknownParameters(Warn, frozen=True):
    """Parameters on a kernel's command line that it does not know."""

    code: ClassVar[str] = "cmdline"
    kernel: str
    parameters: str


class SameKernel(Warn, frozen=True):
    """A kernel that is another one again, in counts: under the same seeds the same guests count the same."""

    code: ClassVar[str] = "same-kernel"
    kernel: str
    other: str


class FolderLacking(Warn, frozen=True):
    """A program's words name a directory that its guests do not have, because it is too large."""

    code: ClassVar[str] = "not-packed"
    case: str
    folder: str


class KernelComplained(Warn, frozen=True):
    """What a kernel reported on its console while it went on: a WARN, a sanitizer's report, a lock's."""

    code: ClassVar[str] = "kernel-warning"
    kernel: str
    boots: int
    of: int
    lines: tuple[str, ...]
    more: int


PMU_REASONS = {  # by errno of perf_event_open(2), where its text would say little
    errno.ENOENT: "its machine has none (an emulated x86, a guest without a virtual PMU)",
    errno.ENOSYS: "it was built without CONFIG_PERF_EVENTS",
    errno.EACCES: "kernel.perf_event_paranoid forbids them",
    errno.EBUSY: "somebody else used them too",
    errno.ENODATA: "they stood still",
    errno.EOPNOTSUPP: "what undoes an operation cannot be left out where several tasks run",
}


class NoCounters(Warn, frozen=True):
    """Cases without a figure of the CPU's own counters. ``error``: errno of perf_event_open(2), on this ``kernel``."""

    code: ClassVar[str] = "no-pmu"
    kernel: str
    cases: tuple[str, ...]
    error: int


class PrintedOtherwise(Warn, frozen=True):
    """What a program printed on ``kernel`` alone of two, under each seed: the first such ``line``."""

    code: ClassVar[str] = "printed"
    case: str
    kernel: str
    other: str
    line: str


class PrintedFigures(PrintedOtherwise, frozen=True):
    """The same lines but for figures: the first such ``line``, and ``instead`` what it is on the other."""

    instead: str


Lack = Literal["file", "huge", "memory", "network", "right"]


class PrintedLacking(Warn, frozen=True):
    """A ``line`` that a program printed on all seeds of the first kernel, which says what it did not get."""

    code: ClassVar[str] = "lacks"
    case: str
    line: str
    what: Lack = "file"


class LeftOut(Warn, frozen=True):
    """Versions of a sweep that are no kernels, for one reason; ``behind`` is the kernel that has their patches too."""

    code: ClassVar[str] = "gap"
    versions: tuple[str, ...]
    why: str
    behind: str = ""


class StepStrings(Warn, frozen=True):
    """As ``verdict.warnings.Strings``, of a step of a sweep."""

    code: ClassVar[str] = "strings"
    case: str
    last: str
    first: str
    per_word_percent: float


class CompilerChange(Warn, frozen=True):
    """Kernels that were built by different compilers: neighbours in ``steps``, or the baseline and another one."""

    code: ClassVar[str] = "compiler"
    last: str
    last_compiler: str
    first: str
    first_compiler: str
    steps: bool = True

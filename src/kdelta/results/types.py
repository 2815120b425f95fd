# SPDX-License-Identifier: GPL-2.0-or-later
"""What a report can draw beside the verdicts. All of it is made in results/ from the store.

Cells are named as in ``model.CellResult``: case, cgroup, mitigations and metric. Kernels are named by label.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from kdelta.model import Because, CellResult, Cgroup, FunctionDelta, Mitigations, Profile, State, Warn, Word
from kdelta.results.warnings import StepUnseen
from kdelta.units import Better


class CellName(Struct, frozen=True, kw_only=True):
    """Which case, cgroup, mitigations and metric a chart belongs to."""

    case: str
    metric: str
    cgroup: Cgroup = "root"
    mitigations: Mitigations = "default"


class Point(Struct, frozen=True):
    """One boot's figure. ``kernel`` indexes ``Experiment.kernels``; exact mode: ``block`` is the seed."""

    block: int
    slot: int
    kernel: int
    value: float


class CellPoints(Struct, frozen=True, kw_only=True):
    """Every boot's figure of one cell, in the metric's unit."""

    cell: CellName
    unit: str
    better: Better
    points: tuple[Point, ...]


class Curve(Struct, frozen=True, kw_only=True):
    """A distribution as (percentile in 0..100, value) pairs, both ascending."""

    kernel: str
    points: tuple[tuple[float, float], ...]


class Distribution(Struct, frozen=True, kw_only=True):
    """Percentile curves of one case's histogram (``cell.metric`` is the histogram's name), one per kernel."""

    cell: CellName
    unit: str
    curves: tuple[Curve, ...]


class FunctionDiff(Struct, frozen=True, kw_only=True):
    """Kernel functions of one case before and after, largest change first; ``unit`` is that of their counts."""

    cell: CellName
    baseline_label: str
    patched_label: str
    functions: tuple[FunctionDelta, ...]
    unit: str = ""


class StackDiff(Struct, frozen=True, kw_only=True):
    """One case's call stacks on two kernels: profiles that both have some. Their names are as the guest gave them."""

    cell: CellName
    baseline_label: str
    patched_label: str
    before: Profile
    after: Profile
    unit: str = ""


class MovedRow(Struct, frozen=True, kw_only=True):
    """A cache line's transfers per operation before and after, in all and ``by`` function (before, after).

    ``verdict``: of the hottest lines, over the seeds; "" of the others, and where they do not say. ``over_seeds``: what
    it was judged by, while the rest is of the median seed.
    """

    line: str
    baseline: float
    patched: float
    by: dict[str, tuple[float, float]]
    false_sharing: float = 0.0  # share of the transfers after that carried nothing
    verdict: str = ""
    effect_percent: float | None = None
    interval_percent: tuple[float, float] | None = None
    over_seeds: tuple[float | None, float | None] = (None, None)


class MovedDiff(Struct, frozen=True, kw_only=True):
    """The lines of one case that move between CPUs, hottest first by the larger side.

    ``patched_label`` is "" where one kernel was measured: then both sides of each row are the same.
    """

    cell: CellName
    baseline_label: str
    patched_label: str
    rows: tuple[MovedRow, ...]


class CallFigures(Struct, frozen=True, kw_only=True):
    """What one system call came to, per operation: times, kernel instructions, bytes moved by REP instructions."""

    calls: float
    instructions: float
    rep_bytes: float


class CallRow(Struct, frozen=True, kw_only=True):
    """A system call, or a kind of interrupts in brackets; None on the side where it was not there."""

    name: str
    baseline: CallFigures | None
    patched: CallFigures | None

    @property
    def before(self) -> float:
        """Its kernel instructions on the baseline, per operation."""
        return self.baseline.instructions if self.baseline else 0.0

    @property
    def after(self) -> float:
        """Its kernel instructions on the patched kernel, per operation."""
        return self.patched.instructions if self.patched else 0.0

    @property
    def delta(self) -> float:
        """How many more instructions the patched kernel takes."""
        return self.after - self.before


class SystemCalls(Struct, frozen=True, kw_only=True):
    """Kernel instructions of one case by system call; the rows add up to the kernel's instructions.

    ``patched_label`` is "" where one kernel was measured: then no row has ``patched``.
    """

    cell: CellName
    workload: str
    baseline_label: str
    patched_label: str
    rows: tuple[CallRow, ...]


class SweepPoint(Struct, frozen=True, kw_only=True):
    """One version's figure; ``value`` is None with a ``state`` other than ok where the case has a gap.

    ``why`` is the gap's reason; ``unseen``, of a measured version: why no step could have been seen at it.
    ``rep_bytes``: what string instructions moved, of counted instructions, which hide it.
    """

    kernel: str
    value: float | None
    state: State = "ok"
    why: str = ""
    unseen: Warn | None = None
    rep_bytes: float | None = None

    @property
    def undecided(self) -> bool:
        """Whether the figure was judged, and gave no verdict; not that there were too few boots for any."""
        return self.unseen is not None and not isinstance(self.unseen, StepUnseen)


class SweepStep(Struct, frozen=True, kw_only=True):
    """A change between two versions: ``last`` still has the old figure, ``first`` has the new one.

    Of counted instructions, ``effect_rep8_percent``: with one for each 8 bytes that REP moves (verdict/work.py), and
    ``strings``: whether that is so much otherwise that it is told;
    ``effect_same_calls_percent``: with the system calls of the version before, where they differ (results/calls.py).
    """

    last: str
    first: str
    baseline: float
    patched: float
    effect_percent: float
    interval_percent: tuple[float, float] | None = None
    verdict: Word | None = None
    p_value: float | None = None
    because: tuple[FunctionDelta, ...] = ()
    because_line: Because | None = None
    effect_rep8_percent: float | None = None
    strings: bool = False
    effect_same_calls_percent: float | None = None


class Sweep(Struct, frozen=True, kw_only=True):
    """One case and metric over an ordered list of kernels.

    ``whole``: why the last version against the first says nothing of the kernels; None where nothing is known.
    """

    cell: CellName
    unit: str
    better: Better
    points: tuple[SweepPoint, ...]
    steps: tuple[SweepStep, ...] = ()
    whole: Warn | None = None

    @property
    def measured(self) -> bool:
        """Whether any version has a figure."""
        return bool(self.steps) or any(point.value is not None for point in self.points)


class ScalingLine(Struct, frozen=True, kw_only=True):
    """(number of tasks, value) pairs of one kernel, tasks ascending."""

    kernel: str
    points: tuple[tuple[int, float], ...]


class Scaling(Struct, frozen=True, kw_only=True):
    """A metric against the number of tasks, one line per kernel."""

    cell: CellName
    unit: str
    lines: tuple[ScalingLine, ...]


class LegacyLine(Struct, frozen=True):
    """What another tool would say of one case, and what is wrong with that."""

    text: str
    warnings: tuple[Warn, ...] = ()


class LegacyView(Struct, frozen=True, kw_only=True):
    """The same samples by another tool's rule. Never decides."""

    name: str
    lines: tuple[LegacyLine, ...]


class Detail(Struct, frozen=True, kw_only=True):
    """Everything that may be drawn; each part may be empty."""

    points: tuple[CellPoints, ...] = ()
    distributions: tuple[Distribution, ...] = ()
    functions: tuple[FunctionDiff, ...] = ()
    stacks: tuple[StackDiff, ...] = ()
    system_calls: tuple[SystemCalls, ...] = ()
    moved: tuple[MovedDiff, ...] = ()
    sweeps: tuple[Sweep, ...] = ()
    scaling: tuple[Scaling, ...] = ()
    legacy: tuple[LegacyView, ...] = ()


def case_key(cell: CellResult) -> tuple[object, ...]:
    """What the metrics of one case share."""
    return (cell.case, cell.cgroup, cell.mitigations, tuple(sorted(cell.params.items())))


def primary(cells: Sequence[CellResult]) -> list[CellResult]:
    """The cells of the metrics that a case is about; all of a case that has none."""
    with_primary = {case_key(cell) for cell in cells if cell.primary}
    return [cell for cell in cells if cell.primary or case_key(cell) not in with_primary]

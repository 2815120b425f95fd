# SPDX-License-Identifier: GPL-2.0-or-later
"""The largest steps of all stored sweeps: what a row of kernels did to the cases, the largest change first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from kdelta.errors import KdeltaError, UserError
from kdelta.kernel import revisions, rewrites
from kdelta.kernel.history import Commit
from kdelta.kernel.rewrites import Rewrite
from kdelta.model import Experiment, FunctionDelta, Kernel
from kdelta.results import answer, compilers
from kdelta.results.types import CellName, Sweep, SweepStep
from kdelta.store.store import Store
from kdelta.units import size

_SLEEPS, _TIMERS = "__schedule", ("hrtimer", "nanosleep", "timerfd")
_STOPS_TICK = ("__get_next_timer_interrupt", "fetch_next_timer_interrupt", "tick_nohz_stop_tick")
_FUNCTIONS = 2  # of a finding are looked up in a tree
_READ = 3  # of a finding are told of what sources show
_ARCH = {"x86_64": "x86", "arm64": "arm64"}  # directories of arch/
_ALIKE_AT = 0.5  # of the larger change, as logarithms: what is smaller is told apart


MADE_BY = "kdelta sweep 'debian:6.1..7.3' makes one"


class Swept(Struct, frozen=True, kw_only=True):
    """A sweep that was read."""

    experiment: Experiment
    sweeps: tuple[Sweep, ...]


class Change(Struct, frozen=True, kw_only=True):
    """Commits between the tags of two releases that change a function that differs; the newest first."""

    function: str
    before: str
    after: str
    commits: tuple[Commit, ...]


def _image(kernel: Kernel) -> str:
    return f"{kernel.image_sha256} {kernel.cmdline}"


class Finding(Struct, frozen=True, kw_only=True):
    """A step; ``alike``: other cases between the same versions, whose largest part is that of the same function.

    ``rep_bytes``: what string instructions moved before and after, () where that is the same or not known.
    ``kernels``: the two that it lies between. ``compiler``: how it changed there, "" where it did not.
    """

    experiment: str
    mode: str
    cpus: int
    cell: CellName
    unit: str
    step: SweepStep
    kernels: tuple[Kernel, Kernel]
    compiler: str = ""
    rep_bytes: tuple[float, ...] = ()
    alike: tuple[tuple[CellName, float], ...] = ()
    changes: tuple[Change, ...] = ()
    rewrites: tuple[Rewrite, ...] = ()

    @property
    def images(self) -> tuple[str, ...]:
        """What of the two kernels ran."""
        return tuple(map(_image, self.kernels))

    @property
    def sleepless(self) -> bool:
        """Whether tasks wait for a timer on one of the two alone: in emulated time, where an instruction takes a
        nanosecond, a few more can mean that it has run out before they wait. No machine would see that as a cost.
        """
        timers = any(word in d.function for d in self.step.because for word in _TIMERS)
        return self.mode == "exact" and _SLEEPS in self._lone and timers

    @property
    def tickless(self) -> bool:
        """Whether the idle CPU stops its tick on one of the two alone: it does where it expects to be idle for long,
        and in emulated time all that happens meanwhile is slow.
        """
        return self.mode == "exact" and any(name in self._lone for name in _STOPS_TICK)

    @property
    def _lone(self) -> set[str]:
        """The functions that ran on one side alone."""
        return {d.function for d in self.step.because if not d.baseline or not d.patched}


def swept(
    store: Store, names: Iterable[str] = (), of: Callable[[Experiment], tuple[Sweep, ...]] | None = None
) -> tuple[list[Swept], list[str]]:
    """(the named sweeps, or all that are stored, the newest first; what could not be read, a line each).

    ``of`` knows the sweeps of an experiment, where it need not be read again.

    Raises:
        KdeltaError: a named one cannot be read, or is no sweep.
    """
    asked = list(names)
    found, wrong = [], []
    for name in asked or [row.id for row in store.experiments(kind="sweep")]:
        try:
            experiment = store.experiment(name)
            if not experiment.in_steps:
                raise UserError(f"experiment {experiment.id} is a {experiment.kind}, not a sweep; {MADE_BY}")
            sweeps = of(experiment) if of else answer.sweeps(store, experiment.id, placed=False)
            found.append(Swept(experiment=experiment, sweeps=sweeps))
        except KdeltaError as error:
            if asked:
                raise
            wrong.append(f"{name}: {error}")
    return found, wrong


def _plain_size(step: SweepStep) -> float:
    """``units.size`` by the account of string instructions, or of system calls, that makes least of the step.

    REP counts as one instruction whatever it moves, so a loop in its place seems to cost more than it does.
    """
    accounts = step.effect_percent, step.effect_rep8_percent, step.effect_same_calls_percent
    return min(size(one) for one in accounts if one is not None)


def _rep_bytes(sweep: Sweep, step: SweepStep) -> tuple[float, ...]:
    by_kernel = {point.kernel: point.rep_bytes for point in sweep.points}
    before, after = by_kernel.get(step.last), by_kernel.get(step.first)
    return () if before is None or after is None or before == after else (before, after)


def _lead(step: SweepStep) -> str:
    return step.because[0].function if step.because else ""


def _steps(one: Swept) -> Iterable[Finding]:
    e = one.experiment
    kernels = {kernel.label: kernel for kernel in e.kernels}
    of = dict(zip((kernel.label for kernel in e.kernels), e.annotations.compilers, strict=False))
    for sweep in one.sweeps:
        explained = compilers.explained(sweep, of)
        for step in sweep.steps:
            called = step.verdict in ("improved", "regressed") and math.isfinite(step.effect_percent)
            if not called or step.first in explained:
                continue
            yield Finding(
                experiment=e.id,
                mode=e.mode,
                cpus=e.machine.smp,
                cell=sweep.cell,
                unit=sweep.unit,
                step=step,
                kernels=(kernels[step.last], kernels[step.first]),
                compiler=compilers.changed(of, step),
                rep_bytes=_rep_bytes(sweep, step),
            )


def _decided(one: Swept) -> Iterable[tuple[object, ...]]:
    """What a sweep says of neighbours, also that there is no step: case, CPUs and images as in ``largest``."""
    images = {kernel.label: _image(kernel) for kernel in one.experiment.kernels}
    for sweep in one.sweeps:
        measured = [point for point in sweep.points if point.value is not None]
        for last, first in pairwise(measured):
            if first.unseen is None:
                yield sweep.cell, one.experiment.machine.smp, (images[last.kernel], images[first.kernel])


def largest(found: Iterable[Swept], most: int) -> list[Finding]:
    """The ``most`` largest steps. Of neighbours that several sweeps measured the first of them decides; pure.

    Steps of other cases between the same versions that are led by the same function belong to the largest of them.
    What goes with the compiler is no finding about a kernel; steps of which one side alone waits for a timer,
    or stops its tick, come last.
    """
    known: dict[tuple[object, ...], Finding] = {}
    decided: set[tuple[object, ...]] = set()
    for one in found:
        for finding in _steps(one):
            if (named := (finding.cell, finding.cpus, finding.images)) not in decided:
                known.setdefault(named, finding)
        decided |= set(_decided(one))
    ranked = sorted(known.values(), key=lambda f: (-_plain_size(f.step), f.cell.case, f.cell.metric))
    heads: dict[tuple[object, ...], Finding] = {}
    for finding in ranked:
        lead, size = _lead(finding.step), _plain_size(finding.step)
        key = (finding.images, finding.cell.metric, lead or finding.cell, finding.step.effect_percent > 0)
        head = heads.get(key)
        if head is None:
            heads[key] = finding
        elif size >= _ALIKE_AT * _plain_size(head.step):
            heads[key] = replace(head, alike=(*head.alike, (finding.cell, finding.step.effect_percent)))
        else:
            heads[*key, finding.cell] = finding
    return sorted(heads.values(), key=lambda finding: finding.sleepless or finding.tickless)[:most]


def with_changes(found: Sequence[Finding], tree: str, step: Callable[[str], None]) -> list[Finding]:
    """``found`` with the commits of a git ``tree`` that change the functions behind them; ``step`` is told of each.

    Raises:
        UserError: it is no git tree.
        HostError: git failed.
    """
    return [replace(finding, changes=tuple(_changes(finding, tree, step))) for finding in found]


def _changes(finding: Finding, tree: str, step: Callable[[str], None]) -> Iterable[Change]:
    if not any(kernel.release for kernel in finding.kernels) or finding.cell.metric != "instructions":
        return
    try:
        before, after = (revisions.tag(tree, kernel.release) for kernel in finding.kernels)
    except UserError:
        return  # its releases are not in this tree
    for delta in finding.step.because[:_FUNCTIONS]:
        step(f"{delta.function}, {before}..{after}")
        if before != after and (commits := revisions.between(tree, delta.function, before, after)):
            yield Change(function=delta.function, before=before, after=after, commits=commits)


def with_rewrites(found: Sequence[Finding], source_of: Callable[[Kernel], rewrites.Source | None]) -> list[Finding]:
    """``found`` with what became of the text of the functions behind them; ``source_of`` a kernel is None without one.

    Raises:
        KdeltaError: as ``source_of``.
    """
    return [replace(finding, rewrites=tuple(_rewrites(finding, source_of))) for finding in found]


def _functions(step: SweepStep) -> dict[str, FunctionDelta]:
    """The functions behind a step; of lines that move, those they move for (``dput (_raw_spin_trylock)`` is dput)."""
    found: dict[str, FunctionDelta] = {}
    for delta in step.because:
        found.setdefault((delta.where or delta.function).partition(" ")[0], delta)
    return found


def _rewrites(finding: Finding, source_of: Callable[[Kernel], rewrites.Source | None]) -> Iterable[Rewrite]:
    """Those that say most: a function whose text changed and that ran on both sides, or that a side does not have."""
    before, after = map(source_of, finding.kernels)
    if before is None or after is None:
        return []
    told = []
    for function, delta in _functions(finding.step).items():
        if one := rewrites.of(function, before, after, _ARCH[finding.kernels[1].arch]):
            lone = bool(delta.note) and not delta.where
            told.append(replace(one, became="both", diff=()) if lone and one.became == "changed" else one)
    return sorted(told, key=lambda one: one.became in ("same", "both") and not one.diff)[:_READ]

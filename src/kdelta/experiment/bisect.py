# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the commits of a bisection are built, booted and kept: one growing experiment in the store.

The experiment holds everything: its kernels are the commits that were built, its boots their figures, its
annotations what was skipped. Each is stored before the next is begun, so a kill at any instant loses one boot.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kdelta.attribution.exact import exact_metrics
from kdelta.errors import HostError, UserError
from kdelta.experiment import prepare, runner, search, templates
from kdelta.experiment.search import Found, Reading, Same
from kdelta.kernel import history
from kdelta.kernel.build import fault_of_source
from kdelta.kernel.history import Commit
from kdelta.kernel.resolve import resolve
from kdelta.kernel.sources import written
from kdelta.model import Annotations, Experiment, Kernel, Metric, Mode, PlannedBoot, Progress, Refuted, plans
from kdelta.results import answer, cells
from kdelta.spec.kernels import KernelSpec
from kdelta.spec.workloads import Workload
from kdelta.store.rows import Number
from kdelta.store.store import Store

_READINGS = 2  # exact seeds that a commit between the ends needs to be told good or bad


class Answer(Struct, frozen=True, kw_only=True):
    """A finished bisection. ``suspects`` is one commit unless others that cannot be tested hide it; the last is bad."""

    experiment: str
    case: str
    metric: str
    unit: str
    good_value: float
    bad_value: float
    commits: int  # of the line, without the good end
    suspects: tuple[Commit, ...] = ()
    parent: str = ""  # whole hash of the last good commit before them
    probability: float = 1.0
    tested: tuple[tuple[str, float], ...] = ()  # (whole hash, figure) in the order of the line
    skipped: tuple[tuple[str, str], ...] = ()  # (whole hash, why)
    boots: int = 0
    confirmation: str = ""
    refuted: tuple[str, ...] = ()  # whole hashes found on the way, which do not differ from their parents
    same_why: str = ""  # the ends do not differ: nothing was searched


def metric_of(mode: Mode, workload: Workload, name: str | None) -> Metric:
    """The metric to bisect by: the deciding one, or the one called ``name``.

    Raises:
        UserError: the case has none of that name.
    """
    metrics = exact_metrics(workload.part, workload.parts_per_op) if mode == "exact" else workload.metrics
    found = next((m for m in metrics if (m.primary if name is None else m.name == name)), None)
    if found is None:
        names = ", ".join(metric.name for metric in metrics)
        raise UserError(f"--metric {name!r}: the case has no such {mode} metric; it has {names}")
    return found


def plan_of(experiment: Experiment) -> plans.Bisect:
    """What a stored bisection asks.

    Raises:
        UserError: the experiment is no bisection.
    """
    if not isinstance(experiment.plan, plans.Bisect):
        raise UserError(f"experiment {experiment.id} is a {experiment.kind}, not a bisection")
    return experiment.plan


def build(spec: KernelSpec, progress: Progress) -> Kernel | str:
    """The kernel of ``spec``, or why it does not build.

    Raises:
        UserError, HostError: anything else that is wrong, as a full disk or a missing compiler.
    """
    try:
        return resolve(spec, progress)
    except HostError as error:
        line = fault_of_source(error)
        if not line:
            raise
        return f"does not build: {line}"


class Laboratory:
    """Builds and boots commits for ``search.search``; readings come from the store alone."""

    def __init__(
        self,
        store: Store,
        experiment_id: str,
        workloads: dict[str, Workload],
        progress: Progress,
    ) -> None:
        self.store, self.id, self.workloads, self.progress = store, experiment_id, workloads, progress
        self.plan = plan_of(self.experiment)
        self.line = history.line(self.plan.tree, self.plan.good, self.plan.bad)

    @property
    def experiment(self) -> Experiment:
        """The experiment as it stands now."""
        return self.store.experiment(self.id)

    def _commit_of(self, experiment: Experiment) -> list[int]:
        """The commit of each kernel."""
        place = {name[:12]: index for index, name in enumerate(self.line)}
        return [place[kernel.label] for kernel in experiment.kernels]

    def _numbers(self) -> list[Number]:
        return [n for n in self.store.numbers(self.id) if n.metric in ("", self.plan.metric)]

    def readings(self) -> list[Reading]:
        """See ``search.Lab``. The boots of a refuting confirmation stand where they were made: they are evidence."""
        found = self._readings(self.experiment)
        for refuted in reversed(self.refuted):
            told = self._readings(self.store.experiment(refuted.confirmation))
            found[refuted.readings : refuted.readings] = told
        return found

    def _readings(self, experiment: Experiment) -> list[Reading]:
        commit_of = self._commit_of(experiment)
        cut_short = self._cut_short(experiment)
        return [
            Reading(commit_of[n.kernel], n.value)
            for n in self.store.numbers(experiment.id)
            if n.metric == self.plan.metric and n.value is not None and math.isfinite(n.value)
            if n.state == "ok" and n.boot_state == "ok" and n.kernel not in cut_short
        ]

    def _cut_short(self, experiment: Experiment) -> set[int]:
        """Kernels whose seeds an interruption left unfinished: what is there of them is read when all are."""
        if experiment.mode != "exact":
            return set()
        done = self.store.done(experiment.id)
        made = Counter(slot for _, slot in done)
        return {slot for slot, seeds in made.items() if seeds < experiment.blocks}

    def skipped(self) -> dict[int, str]:
        """See ``search.Lab``: what did not build, and what was booted to no avail."""
        experiment = self.experiment
        found = {self.line.index(name): why for name, why in experiment.annotations.search.skipped.items()}
        commit_of = self._commit_of(experiment)
        read = Counter(reading.commit for reading in self.readings())
        failed: dict[int, list[str]] = {}
        for n in self._numbers():
            if n.state != "ok" or n.boot_state != "ok":
                state, why = (n.state, n.why) if n.state != "ok" else (n.boot_state, "")
                failed.setdefault(commit_of[n.kernel], []).append(f"{state}: {why}" if why else state)
        exact = experiment.mode == "exact"
        for commit, whys in failed.items():
            hopeless = read[commit] < _READINGS if exact else not read[commit] and len(whys) >= runner.STRIKES
            if hopeless:
                found[commit] = whys[0]
        return found

    def _spec(self, commit: int) -> KernelSpec:
        name, plan = self.line[commit], self.plan
        spec = KernelSpec(
            text="",
            kind="src",
            target=plan.tree,
            ref=name,
            patches=plan.patches,
            cmdline=plan.cmdline,
            config=plan.config,
            arch=plan.arch,
            label=name[:12],
        )
        return replace(spec, text=written(spec))

    def _kernel(self, commit: int) -> int | None:
        """The index of the commit's kernel in the experiment, built now if it was not; None: it does not build."""
        experiment = self.experiment
        known = self._commit_of(experiment)
        if commit in known:
            return known.index(commit)
        self.progress.step(f"commit {commit} of {len(self.line) - 1}: {self.line[commit][:12]}")
        made = build(self._spec(commit), self.progress)
        if isinstance(made, str):
            self._skip(commit, made)
            return None
        self.store.add_kernel(self.id, made)
        return len(experiment.kernels)

    def _note(self, **changes: Any) -> None:
        """Store how far the search came."""
        self.store.annotate(self.id, lambda known: replace(known, search=replace(known.search, **changes)))

    def _skip(self, commit: int, why: str) -> None:
        self._note(skipped=self.experiment.annotations.search.skipped | {self.line[commit]: why})
        self.progress.note(f"skipped {self.line[commit][:12]}: {why}")

    def measure(self, commit: int) -> None:
        """See ``search.Lab``: all seeds of exact counts, one boot of times."""
        kernel = self._kernel(commit)
        if kernel is None:
            return
        experiment = self.experiment
        job = prepare.prepare(experiment, self.workloads, self.store, self.progress)
        if experiment.mode == "exact":
            runner.execute(job, self.store, self.progress)
        else:
            number = max((block for block, _ in self.store.done(self.id)), default=-1) + 1
            plan = PlannedBoot(block=number, slot=kernel, kernel=kernel)
            self.progress.step(f"boot {number + 1}: {self.line[commit][:12]}")
            self.store.save_boot(self.id, runner.boot(job, plan))
        self._tell(commit)

    def _tell(self, commit: int) -> None:
        values = sorted(reading.value for reading in self.readings() if reading.commit == commit)
        if values:
            self.progress.note(
                f"{self.line[commit][:12]} ({commit}/{len(self.line) - 1}): {values[len(values) // 2]:g}"
            )

    def decide(self, readings: Sequence[Reading], skipped: dict[int, str]) -> search.Step:
        """What to do next by this experiment's mode and noise floor."""
        experiment = self.experiment
        commits = len(self.line)
        floor = cells.floors_of(experiment, self.store).get(experiment.cases[0].name, 0.0)
        if experiment.mode == "exact":
            return search.decide_exact(commits, readings, skipped, floor)
        refuted = [self.line.index(one.commit) for one in self.refuted]
        return search.decide_timed(commits, readings, skipped, self.plan.max_boots, max(1.0, floor), refuted)

    @property
    def refuted(self) -> tuple[Refuted, ...]:
        """The commits that were found and then did not differ from their parents, in this order."""
        return self.experiment.annotations.search.refuted

    def refute(self, commit: int) -> None:
        """Take a commit that its confirmation refuted out of the question, and go on."""
        experiment = self.experiment
        confirmation = experiment.annotations.search.confirmation
        one = Refuted(self.line[commit], confirmation, len(self._readings(experiment)))
        self._note(refuted=(*self.refuted, one), confirmation="")
        self.progress.note(f"{self.line[commit][:12]} does not differ from its parent: searching on")


def _confirm(lab: Laboratory, found: Found, now: Callable[[], datetime], blocks: int, looks: tuple[int, ...]) -> str:
    """Compare the culprit with its parent in an experiment of its own; returns its id. Goes on where it was killed."""
    experiment = lab.experiment
    name = experiment.annotations.search.confirmation
    if not name:
        name = templates.new_id(now())
        lab._note(confirmation=name)
    if not any(row.id == name for row in lab.store.experiments("compare")):
        commit_of = lab._commit_of(experiment)
        sides = tuple(experiment.kernels[commit_of.index(commit)] for commit in (found.good, found.last))
        plan = plans.Compare(confirms=lab.id)
        plain = replace(experiment, kernels=sides, command="", plan=plan, annotations=Annotations())
        if experiment.mode == "timed":
            plain = replace(plain, blocks=blocks, looks=looks)
        made = templates.created(plain, experiment.seed, now)
        lab.store.create(replace(made, id=name))
    stored = lab.store.experiment(name)
    job = prepare.prepare(stored, lab.workloads, lab.store, lab.progress)
    runner.execute(job, lab.store, lab.progress)
    return name


def bisect(
    lab: Laboratory,
    metric: Metric,
    now: Callable[[], datetime],
    blocks: int = templates.USUAL_LOOKS[-1],
    looks: tuple[int, ...] = templates.USUAL_LOOKS,
) -> Answer:
    """Search, then confirm what was found against its parent; the search goes on without a commit that this refutes.

    Raises:
        UserError: an end cannot be measured, so nothing can be said.
        HostError: QEMU, the disk or the compiler failed; everything measured stays.
    """
    while True:
        try:
            step = search.search(lab, lambda readings, skipped: lab.decide(readings, dict(skipped)))
        except search.Untestable as error:
            end = "GOOD" if error.commit == 0 else "BAD"
            raise UserError(f"{end} ({lab.line[error.commit][:12]}) cannot be measured: {error.why}") from None
        if isinstance(step, Same):
            return replace(_answer(lab, metric), same_why=step.why)
        confirmation = _confirm(lab, step, now, blocks, looks)
        spent = len(lab.readings()) >= lab.plan.max_boots
        only = len(lab.line) - 1 - len(lab.skipped()) - len(lab.refuted) <= 1  # nobody else is left: not confirmed
        if spent or only or not _refutes(lab, confirmation, metric):
            break
        lab.refute(step.last)
    tree = lab.plan.tree
    return replace(
        _answer(lab, metric),
        suspects=tuple(history.commit(tree, lab.line[i]) for i in range(step.first, step.last + 1)),
        parent=lab.line[step.good],
        probability=step.probability,
        confirmation=confirmation,
    )


def _refutes(lab: Laboratory, confirmation: str, metric: Metric) -> bool:
    """Whether a timed comparison excludes that the commit makes half of the difference between the ends.

    An interval that holds both this half and nothing decides nothing: the commit then stays, unconfirmed.
    """
    if lab.experiment.mode == "exact":
        return False
    results = answer.result(lab.store, confirmation)[0].results
    interval = next((row.interval_percent for row in results if row.metric == metric.name), None)
    if interval is None or interval[0] <= -100.0:
        return False
    ends = _answer(lab, metric)
    half = math.log(ends.bad_value / ends.good_value) / 2.0
    low, high = (math.log1p(bound / 100.0) for bound in interval)
    return high < half if half > 0 else low > half


def _answer(lab: Laboratory, metric: Metric) -> Answer:
    """What was measured, without a commit named yet."""
    experiment, readings, skipped = lab.experiment, lab.readings(), lab.skipped()
    figures: dict[int, list[float]] = {}
    for reading in readings:
        figures.setdefault(reading.commit, []).append(reading.value)
    middle = {commit: sorted(values)[len(values) // 2] for commit, values in sorted(figures.items())}
    return Answer(
        experiment=lab.id,
        case=experiment.cases[0].name,
        metric=metric.name,
        unit=metric.unit,
        good_value=middle[0],
        bad_value=middle[len(lab.line) - 1],
        commits=len(lab.line) - 1,
        tested=tuple((lab.line[commit], value) for commit, value in middle.items()),
        skipped=tuple((lab.line[commit], why) for commit, why in sorted(skipped.items())),
        boots=len(lab.store.done(lab.id)),
        refuted=tuple(one.commit for one in lab.refuted),
    )

# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the commits of a bisection are built, booted and kept: one growing experiment in the store.

The experiment holds everything: its kernels are the commits that were built, its boots their figures, its
annotations what was skipped. Each is stored before the next is begun, so a kill at any instant loses one boot.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from kdelta.experiment import commits, outstanding, prepare, runner, search
from kdelta.experiment.search import Reading
from kdelta.model import Experiment, PlannedBoot, Progress, Refuted
from kdelta.results import cells, definitions
from kdelta.store.store import Store

_READINGS = 2  # exact seeds that a commit between the ends needs to be told good or bad


@dataclass(frozen=True)
class Hands:
    """Who builds commits and runs experiments, where not this machine does. ``take``: see ``commits.build``."""

    take: commits.Take | None
    run: Callable[[Experiment], None]


class Laboratory:
    """Builds and boots commits for ``search.search``; readings come from the store alone."""

    def __init__(self, store: Store, experiment_id: str, progress: Progress, hands: Hands | None = None) -> None:
        self.store, self.id, self.progress = store, experiment_id, progress
        self._hands = hands or Hands(None, lambda experiment: prepare.run(experiment, store, progress))
        self.plan = commits.plan_of(self.experiment)
        self.line = commits.line(self.plan)
        self.metric = definitions.stored_metric(self.experiment, self.plan.metric)

    @property
    def experiment(self) -> Experiment:
        """The experiment as it stands now."""
        return self.store.experiment(self.id)

    def commit_of(self, experiment: Experiment) -> list[int]:
        """The commit of each kernel."""
        place = {name[:12]: index for index, name in enumerate(self.line)}
        return [place[kernel.label] for kernel in experiment.kernels]

    def readings(self) -> list[Reading]:
        """See ``search.Lab``. The boots of a refuting confirmation stand where they were made: they are evidence."""
        found = self._readings(self.experiment)
        for refuted in reversed(self.refuted):
            told = self._readings(self.store.experiment(refuted.confirmation))
            found[refuted.readings : refuted.readings] = told
        return found

    def _readings(self, experiment: Experiment) -> list[Reading]:
        commit_of = self.commit_of(experiment)
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
        commit_of = self.commit_of(experiment)
        read = Counter(reading.commit for reading in self.readings())
        failed: dict[int, list[str]] = {}
        for n in self.store.numbers(self.id):
            if n.metric not in ("", self.plan.metric):
                continue
            if n.state != "ok" or n.boot_state != "ok":
                state, why = (n.state, n.why) if n.state != "ok" else (n.boot_state, "")
                failed.setdefault(commit_of[n.kernel], []).append(f"{state}: {why}" if why else state)
        exact = experiment.mode == "exact"
        for commit, whys in failed.items():
            hopeless = read[commit] < _READINGS if exact else not read[commit] and len(whys) >= outstanding.STRIKES
            if hopeless:
                found[commit] = whys[0]
        return found

    def _kernel(self, commit: int) -> int | None:
        """The index of the commit's kernel in the experiment, built now if it was not; None: it does not build."""
        experiment = self.experiment
        known = self.commit_of(experiment)
        if commit in known:
            return known.index(commit)
        self.progress.step(f"commit {commit} of {len(self.line) - 1}: {self.line[commit][:12]}")
        made = commits.build(commits.spec(self.plan, self.line[commit]), self.progress, self._hands.take)
        if isinstance(made, str):
            self._skip(commit, made)
            return None
        self.store.add_kernel(self.id, made)
        return len(experiment.kernels)

    def note(self, **changes: Any) -> None:
        """Store how far the search came."""
        self.store.annotate(self.id, lambda known: replace(known, search=replace(known.search, **changes)))

    def _skip(self, commit: int, why: str) -> None:
        self.note(skipped=self.experiment.annotations.search.skipped | {self.line[commit]: why})
        self.progress.note(f"skipped {self.line[commit][:12]}: {why}")

    def run(self, experiment: Experiment) -> None:
        """Run what is left of ``experiment``: this one, or a confirmation."""
        self._hands.run(experiment)

    def measure(self, commit: int) -> None:
        """See ``search.Lab``: all seeds of exact counts, one boot of times."""
        kernel = self._kernel(commit)
        if kernel is None:
            return
        experiment = self.experiment
        if experiment.mode == "exact":
            self.run(experiment)
        else:
            job = prepare.prepare(experiment, self.store, self.progress)
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
        self.note(refuted=(*self.refuted, one), confirmation="")
        self.progress.note(f"{self.line[commit][:12]} does not differ from its parent: searching on")

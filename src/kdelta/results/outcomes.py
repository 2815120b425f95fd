# SPDX-License-Identifier: GPL-2.0-or-later
"""What each experiment of a list came to, and of which cases: verdicts and ends alone, kept while they hold."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock, Thread

from msgspec import Struct

from kdelta.errors import KdeltaError
from kdelta.model import GRAVEST_FIRST
from kdelta.results import answer, leaks
from kdelta.results.types import Sweep, primary
from kdelta.store.rows import ExperimentRow
from kdelta.store.store import Store
from kdelta.units import counted

WORDS = (
    *GRAVEST_FIRST,
    "regressed",
    "leak",
    "improved",
    "inconclusive",
    "same",
    "clean",
    "descriptive",
)  # what a reader looks for first
SELDOM = (*GRAVEST_FIRST, "leak", "clean")  # offered where one is there
_NAMED = 3  # cases that are told by name


class Outcome(Struct, frozen=True, kw_only=True):
    """``verdicts`` are (word, rows with it), the gravest first; of a sweep, its ``steps`` that are so.

    The word of a row that was not measured is how its runs ended, such as hung; without a verdict it is descriptive.
    ``idle``: of a patch, that no case executes what it changes, or that it changes nothing.
    """

    cases: frozenset[str] = frozenset()
    steps: int | None = None  # of a sweep
    verdicts: tuple[tuple[str, int], ...] = ()
    idle: bool = False

    @property
    def told(self) -> str:
        """Its cases, or their number and suite: what tells apart two experiments on the same kernels."""
        if self.idle:
            return "nothing was measured"
        names = sorted(self.cases)
        if len(names) <= _NAMED:
            return ", ".join(names)
        suites = {name.partition("/")[0] for name in names if "/" in name}
        whole = len(suites) == 1 and all("/" in name for name in names)
        return f"{len(names)} cases" + (f" of {suites.pop()}" if whole else "")

    @property
    def words(self) -> str:
        """``2 regressed, 1 same``; of a sweep its steps first."""
        steps = [] if self.steps is None else [counted(self.steps, "step")]
        return ", ".join([*steps, *(f"{count} {word}" for word, count in self.verdicts)])

    def has(self, verdict: str) -> bool:
        """Whether any row got this verdict."""
        return any(word == verdict for word, _ in self.verdicts)


class Outcomes:
    """Outcomes of a store's experiments; any number of threads may ask."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, tuple[tuple[int, str], Outcome]] = {}
        self._lock, self._behind = Lock(), Lock()

    def of(self, row: ExperimentRow) -> Outcome:
        """The outcome of one experiment; of a damaged one, or one that was deleted meanwhile, an empty one."""
        kept = self._kept(row)
        if kept is not None:
            return kept
        found = self._made(row)
        with self._lock:
            self._known[row.id] = ((row.boots_done, row.status), found)
        return found

    def known(self, rows: Sequence[ExperimentRow], patience_s: float | None) -> dict[str, Outcome]:
        """The outcomes of ``rows``, from the first on, as far as ``patience_s`` goes; None waits for all.

        The others are worked out behind, one after another, and are known to who asks later.
        """
        if any(self._kept(row) is None for row in rows):
            thread = Thread(target=self._work_out, args=(tuple(rows),), daemon=True)
            thread.start()
            thread.join(patience_s)
        return {row.id: outcome for row in rows if (outcome := self._kept(row)) is not None}

    def _work_out(self, rows: Sequence[ExperimentRow]) -> None:
        with self._behind:
            for row in rows:
                self.of(row)

    def _kept(self, row: ExperimentRow) -> Outcome | None:
        with self._lock:
            kept = self._known.get(row.id)
        return kept[1] if kept is not None and kept[0] == (row.boots_done, row.status) else None

    def _made(self, row: ExperimentRow) -> Outcome:
        try:
            experiment = self._store.experiment(row.id)
            names = frozenset(case.name for case in experiment.cases)
            if experiment.in_steps:
                return _of_sweeps(names, answer.sweeps(self._store, row.id, causes=False))
            if experiment.kind == "leaks":
                found = leaks.findings(experiment, self._store)
                return Outcome(
                    cases=names,
                    verdicts=_counted([one.verdict or one.state for one in found if one.why != leaks.NOT_RUN]),
                )
            judged = answer.verdicts(self._store, experiment)
        except KdeltaError:  # its own page says what is wrong with it
            return Outcome()
        rows = primary(judged)  # as its own page counts them
        words = [
            row.verdict or "descriptive" if row.state == "ok" else row.state
            for row in rows
            if row.patched_label and not row.unbooted
        ]
        return Outcome(cases=names, verdicts=_counted(words), idle=not names)


def _of_sweeps(names: frozenset[str], found: Sequence[Sweep]) -> Outcome:
    """As the page of the sweeps counts: at the first version there is nothing to decide."""
    steps = [step.verdict for sweep in found for step in sweep.steps]
    undecided = sum(point.undecided for sweep in found for point in sweep.points[1:])
    return Outcome(cases=names, steps=len(steps), verdicts=_counted([*steps, *["inconclusive"] * undecided]))


def _counted(words: Sequence[str | None]) -> tuple[tuple[str, int], ...]:
    return tuple((word, words.count(word)) for word in WORDS if word in words)

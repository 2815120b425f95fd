# SPDX-License-Identifier: GPL-2.0-or-later
"""What a command that measures works with: the store, progress on standard error, and experiments begun and run."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from kdelta.cli import _usual
from kdelta.cli._ending import OUT_OF_MEMORY, out_of_memory
from kdelta.errors import DiskFull, HostError, KdeltaError

if TYPE_CHECKING:
    from kdelta.cli._output import OutputArgs
    from kdelta.model import Experiment, ExperimentResult, Progress
    from kdelta.store.store import Store


def now() -> datetime:
    """The wall clock, in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class Session:
    """The open store; experiments are begun and run in it."""

    store: Store
    quiet: bool
    _shown: list[Progress] = field(default_factory=list)

    @contextmanager
    def progress(self) -> Iterator[Progress]:
        """Progress while something takes time: on standard error, gone before a report is printed."""
        from kdelta.cli.progress import Reporter

        with Reporter(self.quiet) as reporter:
            self._shown.append(reporter)
            try:
                yield reporter
            finally:
                self._shown.pop()

    def note(self, text: str) -> None:
        """One line that stays, above the progress that is shown just now."""
        from kdelta.cli.progress import Reporter

        (self._shown[-1] if self._shown else Reporter(self.quiet)).note(text)

    def begin(self, template: Experiment, seed: int | None) -> Experiment:
        """Give ``template`` an id, a time and a seed, and store it."""
        from kdelta.experiment import templates

        experiment = templates.created(template, seed, now, self.store.taken)
        self.store.create(experiment)
        return experiment

    def run(
        self,
        experiment: Experiment,
        progress: Progress,
        budget_s: float | None = None,
        resumed_as: Experiment | None = None,
        again: str = "",
    ) -> None:
        """Run what is left of ``experiment``; Ctrl-C keeps every finished boot and says how to go on.

        ``resumed_as``: the experiment to go on with, where this one is only a pass of it; ``again``: how, where it is
        one of several.
        """
        from kdelta.cli.progress import Reporter
        from kdelta.experiment import alone, annotate, prepare

        if not experiment.cases and experiment.annotations.looked is not None:
            return  # nothing that differs can be executed here: the report says so
        if isinstance(progress, Reporter):
            at_once = os.cpu_count() or 1 if experiment.mode == "exact" else 1
            shared = experiment.mode == "exact" and experiment.machine.smp == 1  # several CPUs boot for each seed
            progress.expect(_usual.boot_s(self.store, experiment, at_once), shared=shared)
        how = again or f"continue with: kdelta resume {(resumed_as or experiment).id}"
        try:
            with alone.measuring(self.store, experiment.id):
                job = prepare.prepare(experiment, self.store, progress, time_budget_s=budget_s)
                prepare.execute(job, self.store, progress)
            annotate.note_untouched(self.store, annotate.note_executed(self.store, experiment))
        except KeyboardInterrupt as ending:
            ending.add_note(self._kept(experiment, how))
            raise
        except HostError as error:
            said = error.said if isinstance(error, DiskFull) else str(error)
            raise HostError(f"{said}; {self._kept(experiment, how)}") from None
        except (OSError, MemoryError, RuntimeError) as error:
            if isinstance(error.__cause__, KeyboardInterrupt):  # while a class was made: see main.run
                error.__cause__.add_note(self._kept(experiment, how))
                raise
            full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
            if full or out_of_memory(error):
                where = getattr(error, "filename", None) or "this machine"
                what = DiskFull(where).said if full else OUT_OF_MEMORY
                raise HostError(f"{what}; {self._kept(experiment, how)}") from None
            raise

    def _kept(self, experiment: Experiment, how: str) -> str:
        """What is in the store of ``experiment``, read anew: nothing is promised that was not saved."""
        try:
            kept = len(self.store.done(experiment.id))
        except KdeltaError:
            return "the store cannot be read now; kdelta history lists what it holds"
        boots = f"{kept} finished boot{'s are' if kept != 1 else ' is'} kept" if kept else "no boot was finished"
        return f"{boots}; {how}"

    def show(self, experiment: Experiment, args: OutputArgs) -> ExperimentResult:
        """Print or write its report."""
        from kdelta.cli import _show

        return _show.show(self.store, experiment.id, args)

    def conclude(self, experiment: Experiment, args: OutputArgs) -> None:
        """``show``, for a command that has nothing more to print.

        Raises:
            GuestError: nothing at all could be measured, because guests were lost.
        """
        from kdelta.cli import _output

        _output.refuse_lost(self.show(experiment, args))


@contextmanager
def opened(quiet: bool = False, *, stored: bool = False) -> Iterator[Session]:
    """A session on the store of this machine, or the one of ``$KDELTA_STORE``.

    ``stored``: to go on with what is in it, so that a name where there is none is refused.
    """
    from kdelta.cli import _stores

    with _stores.going_on() if stored else _stores.writing(lambda text: session.note(text)) as store:
        session = Session(store, quiet)
        yield session

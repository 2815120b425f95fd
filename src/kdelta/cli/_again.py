# SPDX-License-Identifier: GPL-2.0-or-later
"""The same command again: it goes on with the comparison that it began."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kdelta.cli import _gate, _output, _session, _stores, common
from kdelta.errors import UnreadableError

if TYPE_CHECKING:
    from kdelta.cli._budget import Budget
    from kdelta.cli.compare import Args
    from kdelta.model import Experiment

_NEWEST = 100  # experiments that are looked through


def begun(kernels: Sequence[str], *, each: bool, finished: bool = False) -> Experiment | None:
    """The newest comparison of these kernels that the same command line began, and that has boots left to do.

    ``finished``: also one that has none left. None where a name means another tree in another directory.
    """
    from kdelta.kernel.sources import parse_kernel
    from kdelta.store.store import Store

    specs = [parse_kernel(name) for name in kernels]
    if any(spec.kind == "src" and not spec.ref and not Path(spec.target).is_absolute() for spec in specs):
        return None
    if _stores.missing() is not None:
        return None
    with Store() as store:
        for row in store.experiments(kind="sweep" if each else "compare", limit=_NEWEST):
            if (
                row.status in (("partial", "complete") if finished else ("partial",))
                and row.command == common.command_line()
            ):
                try:
                    found = store.experiment(row.id)
                except UnreadableError:
                    continue  # it is made anew
                named = {kernel.spec.partition("#")[0] for kernel in found.kernels}
                if not found.imported and named == ({kernels[-1]} if each else set(kernels)):
                    return found
    return None


def conclude(experiment: Experiment, args: Args, budget: Budget) -> int:
    """Run what is left of it and show it, as compare does."""
    from kdelta.experiment import annotate

    gate = _gate.parsed(args.fail_on)
    with _session.opened(args.quiet) as session:
        with session.progress() as progress:
            progress.note(f"going on with {experiment.id}")
            experiment = annotate.finish_gate(session.store, experiment, progress)
            session.run(experiment, progress, budget.left_s())
        result = session.show(experiment, args)
    _gate.refuse(result, gate, args.fail_on)
    _output.refuse_lost(result)
    return 0

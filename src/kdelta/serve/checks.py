# SPDX-License-Identifier: GPL-2.0-or-later
"""What a trace or a check for leaks found: it has a layout of its own, because it has neither effects nor verdicts
on speed.
"""

from __future__ import annotations

from msgspec import Struct

from kdelta.errors import UserError
from kdelta.model import BESIDE_TAG, Experiment, plans
from kdelta.report import leaks as leak_layout
from kdelta.report import traces as trace_layout
from kdelta.report.scrub import clean
from kdelta.results import leaks, traces
from kdelta.store.rows import ExperimentRow
from kdelta.store.store import Store

KINDS = ("leaks", "trace")


class Told(Struct, frozen=True, kw_only=True):
    """One such experiment as ``kdelta report`` prints it, its sum in a line ("" of a trace), and as JSON."""

    text: str
    sum: str
    json: str


def told(store: Store, experiment: Experiment) -> Told | None:
    """What the page of a trace or a leak check tells; None of an experiment with figures and verdicts."""
    if experiment.kind == "leaks":
        found = leaks.findings(experiment, store)
        return Told(
            text=_cleaned(leak_layout.render(experiment, found)),
            sum=leak_layout.summed(found),
            json=leak_layout.to_json(experiment, found),
        )
    if experiment.kind != "trace":
        return None
    parts = [traces.results(store, name) for name in (experiment.id, *_traced_beside(store, experiment))]
    return Told(text=_cleaned(trace_layout.render(parts)), sum="", json=trace_layout.to_json(parts))


def _cleaned(text: str) -> str:
    """The text with all visible that names of strangers may hide in its lines."""
    return "".join(f"{clean(line)}\n" for line in text.split("\n")).rstrip("\n") + "\n"


def _traced_beside(store: Store, experiment: Experiment) -> tuple[str, ...]:
    """The exact holds that were asked for with a trace; none where they did not come with an imported one."""
    name = plans.traced_beside(experiment.plan)
    try:
        return (store.experiment(name).id,) if name else ()
    except UserError:
        return ()


def beside(store: Store, experiment: Experiment) -> list[ExperimentRow]:
    """The traces and checks for leaks that were made beside an experiment, the newest first."""
    return store.experiments(tag=f"{BESIDE_TAG}{experiment.id}")

# SPDX-License-Identifier: GPL-2.0-or-later
"""What traced boots found, made from all that the guests sent: again whenever it is asked for."""

from __future__ import annotations

from msgspec.structs import replace

from kdelta.attribution import holds, traces
from kdelta.attribution.traces import SetResult
from kdelta.errors import UserError
from kdelta.guest import protocol
from kdelta.model import Collector, Experiment, plans
from kdelta.spec import collectors
from kdelta.store.store import Store


def plan_of(experiment: Experiment) -> plans.Trace:
    """What a stored trace asks.

    Raises:
        UserError: the experiment is no trace.
    """
    if not isinstance(experiment.plan, plans.Trace):
        raise UserError(f"experiment {experiment.id} is not a trace; kdelta report shows it")
    return experiment.plan


def sets_of(experiment: Experiment) -> tuple[Collector, ...]:
    """The collector sets of a stored experiment, as they were when it was made; none where it counted lock holds."""
    plan = plan_of(experiment)
    if not plan.sets or plan.collectors:
        return plan.collectors if plan.sets else ()
    return collectors.choose(",".join(plan.sets), collectors.catalogue())  # a store before revision 0004


def _aliases(experiment: Experiment) -> dict[str, str]:
    """New names of functions that take locks, and what they were called before."""
    known = plan_of(experiment).collectors or (collectors.catalogue()[collectors.LOCKS],)
    return known[0].aliases


def _hold_results(store: Store, experiment: Experiment) -> tuple[SetResult, ...]:
    aliases = _aliases(experiment)
    found = []
    boots = {row.kernel: row for row in store.boots(experiment.id)}
    for case, named in enumerate(experiment.cases):
        for index, kernel in enumerate(experiment.kernels):
            if index not in boots:
                continue
            stored = store.boot(experiment.id, boots[index].block, boots[index].slot)
            run = next((run for run in stored.runs if run.case == case), None)
            state, why = (run.state, run.why) if run else (stored.state if stored.state != "ok" else "lost", stored.why)
            one = SetResult(
                collector=collectors.HOLD,
                title="Lock holds",
                kernel=kernel.label,
                case=named.name,
                state=state,
                why=why,
            )
            if run is not None and run.state == "ok":
                probe, warnings = holds.result(run.facts, aliases)
                one = replace(one, ops=int(run.facts["ops"]), probes=(probe,), warnings=tuple(warnings))
            found.append(one)
    return tuple(found)


def results(store: Store, name: str) -> tuple[Experiment, tuple[SetResult, ...]]:
    """Everything that the experiment ``name`` found, from the store alone: by case, set and kernel.

    Raises:
        UserError: no such experiment, or one of another kind.
    """
    experiment = store.experiment(name)
    sets = sets_of(experiment)
    if not sets:
        return experiment, _hold_results(store, experiment)
    found: dict[tuple[int, int], SetResult] = {}
    for plan in sorted(store.done(experiment.id)):
        stored = store.boot(experiment.id, *plan)
        kernel = experiment.kernels[stored.plan.kernel]
        records = protocol.parse(stored.stream).records
        for job in range(len(experiment.cases) * len(sets)):
            found[job, stored.plan.kernel] = traces.evaluate(
                sets[job % len(sets)],
                records,
                job,
                kernel=kernel.label,
                case=experiment.cases[job // len(sets)].name,
                config=kernel.config,
                boot=(stored.state, stored.why),
            )
    return experiment, tuple(found[key] for key in sorted(found))

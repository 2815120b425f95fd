# SPDX-License-Identifier: GPL-2.0-or-later
"""``kdelta scale --exact``: an exact experiment for each number of CPUs and length of turns, and one answer of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from kdelta.cli import _kernels, _output, _scaled, _session
from kdelta.cli._ending import THE_SAME
from kdelta.cli._say import say
from kdelta.errors import UserError

if TYPE_CHECKING:
    from kdelta.cli.scale import Args
    from kdelta.model import Case, Experiment, Kernel
    from kdelta.results.crossing import Step

CASES = ("thread_spawn", "contention/dup_threads", "contention/open_one")
_USUAL = "1,2,4,8"


def _cpus(text: str | None) -> tuple[int, ...]:
    from kdelta.experiment.templates import MOST_CPUS
    from kdelta.results import scaling

    found = scaling.numbers(text or _USUAL, "--cpus", "CPUs", MOST_CPUS)
    if max(found) == 1:
        raise UserError(f"--cpus {text}: on one CPU nothing crosses; give numbers such as {_USUAL}")
    return found


def _cases(args: Args) -> tuple[Case, ...]:
    found = args.chosen(default=CASES)
    given = [case.name for case in found if case.own_tasks]
    if given:
        raise UserError(f"case {given[0]}: with --exact each CPU has a task; leave tasks= out")
    return found


def _template(args: Args, cases: Sequence[Case], kernels: Sequence[Kernel], cpus: int, turn_ns: int) -> Experiment:
    from kdelta.experiment import templates

    asked = args.asked(cases, args.effort(seeds=args.seeds))
    machine = msgspec.structs.replace(asked.machine, smp=cpus, turn_ns=turn_ns)
    asked = msgspec.structs.replace(asked, machine=machine)
    if len(kernels) == 1:
        return templates.run(asked, kernels, "exact", args.seeds)
    return templates.compare(asked, kernels, "exact", templates.Stopping())


def run(kernels: tuple[str, ...], args: Args) -> int:
    """The command on typed arguments.

    Raises:
        UserError: options that belong to times, or numbers that are none.
    """
    from kdelta.report import crossing as layout
    from kdelta.report import crossing_page
    from kdelta.results import crossing

    if args.tasks is not None:
        raise UserError("--exact gives each CPU a task: say --cpus instead of --tasks")
    numbers, cases = _cpus(args.cpus), _cases(args)
    specs = _kernels.bootable(kernels, "scale boots guests: name a kernel, as in debian:7.0")
    with _session.opened(args.quiet) as session:
        made: list[str] = []
        with session.progress() as progress:
            fetched = _kernels.to_measure(specs, progress)
            sizes = [(cpus, turn) for cpus in numbers for turn in (args.turn if cpus > 1 else args.turn[:1])]
            templates = [_template(args, cases, fetched, cpus, turn_ns) for cpus, turn_ns in sizes]
            begun = _scaled.begun(session.store, templates)
            if begun:
                progress.note(f"going on with {', '.join(experiment.id for experiment in begun)}")
            for number, template in enumerate(templates):
                experiment = begun[number] if number < len(begun) else session.begin(template, args.seed)
                made.append(experiment.id)
                session.run(experiment, progress, again=THE_SAME)
        found = crossing.steps(session.store, made)
    grows, apart = crossing.growing(found), crossing.disagreeing(found)
    text = layout.text(found, grows, apart)
    if args.as_json:
        say(_json(made, found))
    else:
        head = f"kdelta scale: {', '.join(kernel.label for kernel in fetched)} (experiments {', '.join(made)})"
        say("\n".join([head, *text]))
    if args.output is not None:
        title = f"What crosses between CPUs: {', '.join(kernel.label for kernel in fetched)}"
        _output.write(crossing_page.render(title, "\n".join(text).strip("\n"), found, grows), args.output)
    return 0


def _json(experiments: Sequence[str], found: Sequence[Step]) -> str:
    import json

    document = {"schema": "kdelta-crossing/1", "experiments": list(experiments), "steps": msgspec.to_builtins(found)}
    return json.dumps(document, indent=2)

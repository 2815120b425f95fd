# SPDX-License-Identifier: GPL-2.0-or-later
"""What compare does around a measurement for kernels built from source: a series in steps, the gate, machine code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from kdelta.errors import KdeltaError, UserError

if TYPE_CHECKING:
    from kdelta.cli.progress import Reporter
    from kdelta.model import Experiment, Kernel
    from kdelta.spec.kernels import KernelSpec
    from kdelta.store.store import Store

_SOURCES = ("src", "src-debian")
KTAP = "ktap:"  # of extra facts: the selftests' output by kernel label
NOTE = "note:"  # of extra facts: sentences of a report, by warning code


def check(specs: Sequence[KernelSpec], selftests: str | None, each: bool) -> None:
    """Refuse what cannot work before anything is fetched or built.

    Raises:
        UserError: --each without a series, --selftests without source, or both at once.
    """
    if selftests is not None:
        from kdelta.experiment.selftests import refuse_unbuilt, suites

        suites(selftests)
        refuse_unbuilt([spec.text for spec in specs])
    if not each:
        return
    if selftests is not None:
        raise UserError("--each and --selftests exclude each other: gate the whole series without --each")
    last = specs[-1]
    if last.kind not in _SOURCES or not last.patches:
        raise UserError(f"--each: {last.text} is no source with a series; write src:TREE+series.mbox")
    first = specs[0]
    whole = first if len(specs) == 1 else msgspec.structs.replace(first, patches=last.patches)
    if len(specs) > 2 or first.patches != (last.patches if len(specs) == 1 else ()) or not _same_tree(whole, last):
        raise UserError(f"--each: name one source with its series, or before it the same source without: {last.text}")


def _same_tree(one: KernelSpec, other: KernelSpec) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in ("kind", "target", "ref", "config", "arch"))


def resolve_each(specs: Sequence[KernelSpec], reporter: Reporter) -> tuple[Kernel, ...]:
    """The kernels along the series of the last of ``specs``: without it, then with one more patch each."""
    from kdelta.kernel.resolve import unique
    from kdelta.kernel.source import resolve_each

    return unique(resolve_each(specs[-1], reporter))


def built(kernels: Sequence[Kernel]) -> bool:
    """Whether all kernels were built here from source."""
    return all(kernel.spec.partition("=")[2].startswith("src:") or kernel.spec.startswith("src:") for kernel in kernels)


def pending(selftests: str | None) -> dict[str, str]:
    """Extra facts of an experiment whose gate has not been run yet: an interrupted gate is no open one."""
    if selftests is None:
        return {}
    return {"selftests": selftests, "gate": f"not run: the selftests {selftests} were asked for, but did not finish"}


def run_gate(store: Store, experiment: Experiment, reporter: Reporter) -> Experiment:
    """Run the selftests that ``experiment`` asks for, and keep their judgement and KTAP with it."""
    names = experiment.extra.get("selftests")
    if names is None:
        return experiment
    from kdelta.experiment import selftests

    gate = selftests.gate(experiment.kernels, selftests.suites(names), experiment.machine, reporter)
    for note in gate.notes:
        reporter.note(note)
    if gate.failed:
        reporter.note(gate.failed)
    facts = {KTAP + label: text for label, text in gate.ktap.items()} | {"gate": gate.failed}
    return _kept(store, experiment, facts | {NOTE + "selftests": "\n".join(gate.notes)})


def note_code(store: Store, experiment: Experiment, reporter: Reporter) -> Experiment:
    """Keep a line on the machine code of each built kernel with ``experiment``: against the baseline, or its step."""
    if not built(experiment.kernels):
        return experiment
    from kdelta.attribution import stripped
    from kdelta.cli.code import compare_images, image_of

    lines = []
    try:
        images = [image_of(kernel) for kernel in experiment.kernels]
        for index, kernel in enumerate(experiment.kernels[1:], 1):
            reporter.step(f"comparing the machine code of {kernel.label}")
            before = images[index - 1 if experiment.kind == "sweep" else 0]
            lines.append(f"{kernel.label}: {stripped.sentence(compare_images(before, images[index])[0])}")
    except (KdeltaError, OSError) as error:  # two architectures, a stripped image: the comparison itself goes on
        lines.append(f"machine code was not compared: {error}")
    return _kept(store, experiment, {NOTE + "machine-code": "\n".join(lines)})


def _kept(store: Store, experiment: Experiment, facts: dict[str, str]) -> Experiment:
    grown = msgspec.structs.replace(experiment, extra=experiment.extra | facts)
    store.extend(grown)
    return grown

# SPDX-License-Identifier: GPL-2.0-or-later
"""Experiments as front ends ask for them: a function per kind, each of which makes its plan and schedule.

A template has no id yet: ``created`` gives it one, with a time, a seed and this host's identity. Pure but for that.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from kdelta import __version__
from kdelta.errors import UserError
from kdelta.kernel.resolve import refuse_architectures
from kdelta.machine import hardware, hostfacts, kept, settings
from kdelta.model import (
    Annotations,
    Case,
    Effort,
    Experiment,
    Gap,
    Kernel,
    Looked,
    MachineOptions,
    Mitigations,
    Mode,
    plans,
)
from kdelta.model.experiment import Search
from kdelta.paths import expanded
from kdelta.results import definitions
from kdelta.spec import collectors
from kdelta.spec.cases import on_every_cpu
from kdelta.stats import counts

MOST_CPUS = 64  # in exact mode: plugin/kdelta.h, CPUS_MAX
USUAL_LOOKS = (8, 12, 16, 20)  # blocks at which a sequential plan looks
_LONG_LOOKS = (8, 12, 16, 24, 40)


class Asked(Struct, frozen=True, kw_only=True):
    """What every kind of experiment takes from its front end."""

    cases: tuple[Case, ...]
    mitigations: tuple[Mitigations, ...] = ("default",)
    machine: MachineOptions = MachineOptions()
    effort: Effort = Effort()
    folders: tuple[Path, ...] = ()  # of user workloads
    command: str = ""

    def template(self, mode: Mode, kernels: Sequence[Kernel], blocks: int, plan: plans.Plan) -> Experiment:
        """An experiment of ``plan`` that looks once, at the end of its ``blocks``.

        Raises:
            UserError: counts of a guest with several CPUs, which nobody takes.
        """
        cases = self.cases
        if mode == "exact" and self.machine.smp > 1:
            _refuse_several(self.machine.smp, kernels, plan)
            if not isinstance(plan, plans.Check):  # a claim says how many tasks it has
                cases = on_every_cpu(cases, definitions.here(map(str, self.folders)), self.machine.smp)
        return Experiment(
            id="",
            mode=mode,
            kernels=tuple(kernels),
            cases=cases,
            mitigations=self.mitigations,
            blocks=blocks,
            machine=self.machine,
            effort=self.effort,
            folders=tuple(str(expanded(folder).resolve()) for folder in self.folders),
            command=self.command,
            plan=plan,
        )


def refuse_several(cpus: int, named: Iterable[tuple[str, str]]) -> None:
    """``named``: kernels by their names and architectures, as far as these are known.

    Raises:
        UserError: more CPUs than are counted, or several of a guest whose CPUs are counted one at a time.
    """
    if cpus > MOST_CPUS:
        raise UserError(f"--smp {cpus}: exact mode counts up to {MOST_CPUS} CPUs")
    for name, arch in named:
        if cpus > 1 and arch != "x86_64":
            raise UserError(
                f"--smp {cpus}: exact mode counts several CPUs of x86_64 guests alone, and {name} is {arch}"
            )


def _refuse_several(cpus: int, kernels: Sequence[Kernel], plan: plans.Plan) -> None:
    """Raises:
    UserError: several CPUs are not counted so.
    """
    if not isinstance(plan, plans.Run | plans.Compare | plans.Sweep | plans.Check):
        raise UserError(
            f"--smp {cpus}: exact mode counts several CPUs in run, compare, sweep and check alone; leave it out"
        )
    refuse_several(cpus, [(kernel.label, kernel.arch) for kernel in kernels])


class Stopping(Struct, frozen=True, kw_only=True):
    """When a timed experiment ends: after so many blocks, or at the look that decides every case."""

    blocks: int = USUAL_LOOKS[-1]
    looks: tuple[int, ...] = USUAL_LOOKS
    precision_percent: float | None = None


def stopping(blocks: int | None, max_blocks: int | None, precision_percent: float | None = None) -> Stopping:
    """A fixed plan of ``blocks``, else a group-sequential one of ``max_blocks`` at most.

    Raises:
        UserError: both are given, or a precision, which only looks could reach, beside a fixed plan.
    """
    if blocks is not None and precision_percent is not None:
        raise UserError("--precision would do nothing beside --blocks, a fixed plan: use --max-blocks")
    if blocks is not None and max_blocks is not None:
        raise UserError("--blocks (a fixed plan) and --max-blocks (a sequential one) cannot be combined")
    if blocks is not None:
        return Stopping(blocks=blocks, looks=(), precision_percent=precision_percent)
    most = max_blocks or USUAL_LOOKS[-1]
    usual = USUAL_LOOKS if most <= USUAL_LOOKS[-1] else _LONG_LOOKS
    looks = (*(look for look in usual if look < most), most)
    return Stopping(blocks=most, looks=looks, precision_percent=precision_percent)


def seed_looks(seeds: int) -> tuple[int, ...]:
    """The looks of an exact plan of ``seeds`` at most; fewer than any verdict needs are measured without a look."""
    if seeds < counts.FACT_SEEDS:
        return ()
    return (*(look for look in counts.LOOKS if look < seeds), seeds)


def _free(_experiment_id: str) -> bool:
    return False


def new_id(now: datetime, taken: Callable[[str], bool] = _free, token: Callable[[int], str] = secrets.token_hex) -> str:
    """An experiment's id: sortable by time, and not ``taken`` by one of the same second."""
    while True:
        made = f"{now:%Y%m%d-%H%M%S}-{token(2)}"
        if not taken(made):
            return made


def created(
    template: Experiment, rng_seed: int | None, now: Callable[[], datetime], taken: Callable[[str], bool] = _free
) -> Experiment:
    """``template`` with an id, a time, a seed, the identity of its host, and what its workloads are now.

    The host is this one, unless it is a machine of a lab, which the template has asked. ``taken`` says which ids are
    another experiment's: two of one second have the same random digits once in 65,536 times.

    Raises:
        UserError: the kernels are of several architectures.
    """
    refuse_architectures((kernel.label, kernel.arch) for kernel in template.kernels)
    stamp = now()
    seed = secrets.randbelow(1 << 31) if rng_seed is None else rng_seed
    if template.mode == "exact" and rng_seed is None:
        seed = 0
    known = definitions.here(template.folders)
    return msgspec.structs.replace(
        template,
        id=new_id(stamp, taken),
        definitions=definitions.booted_now(template, template.definitions) or definitions.define(template, known),
        created_at=stamp.astimezone(UTC).isoformat(timespec="seconds"),
        seed=seed,
        tool_version=__version__,
        host=template.host if template.machine.lab else _host(template),
    )


def _host(template: Experiment) -> dict[str, str]:
    """This machine; where no guest stands between, with how its hardware is, and how it is set for each boot."""
    native = hardware.state(kept.Here()) | settings.told(template.machine.hardware) if template.machine.native else {}
    return hostfacts.identity() | native


def compare(
    asked: Asked,
    kernels: Sequence[Kernel],
    mode: Mode,
    stop: Stopping,
    *,
    selftests: Sequence[str] = (),
    gated: bool = False,
    series: bool = False,
    gaps: tuple[Gap, ...] = (),
    looked: Looked | None = None,
) -> Experiment:
    """Kernels against the first one; with ``series`` each against the one before it; ``looked``: how cases were chosen.

    ``gaps``: what of a series does not build.

    An interrupted gate is no open one: until its ``selftests`` are done, the experiment says that they are not.
    """
    plan: plans.Plan = plans.Sweep() if series else plans.Compare(selftests=tuple(selftests), gated=gated)
    exact = mode == "exact"
    blocks = asked.effort.seeds if exact else stop.blocks
    return msgspec.structs.replace(
        asked.template(mode, kernels, blocks if asked.cases else 0, plan),
        looks=seed_looks(asked.effort.seeds) if exact else stop.looks,
        precision_percent=stop.precision_percent,
        annotations=Annotations(gate=unfinished(selftests), gaps=gaps, looked=looked),
    )


def unfinished(selftests: Sequence[str]) -> str:
    """What is said of a gate until its ``selftests`` are done."""
    return f"not run: the selftests {','.join(selftests)} were requested, but did not finish" if selftests else ""


def explained(timed: Experiment, counts: Experiment) -> Experiment:
    """``timed``, a comparison, with the stored experiment that counts the same to explain it."""
    if not isinstance(timed.plan, plans.Compare):
        raise ValueError(f"a {timed.kind} is not explained by counts")
    plan = msgspec.structs.replace(timed.plan, counted=counts.id)
    return msgspec.structs.replace(timed, cases=counts.cases, plan=plan)


def run(asked: Asked, kernels: Sequence[Kernel], mode: Mode, boots: int, *, reuse: bool = False) -> Experiment:
    """One kernel, compared with nothing."""
    return asked.template(mode, kernels, boots, plans.Run(reuse=reuse))


def sweep(asked: Asked, mode: Mode, blocks: int) -> Experiment:
    """Versions in order, ``blocks`` (seeds) at most; ``with_versions`` gives it the kernels."""
    return msgspec.structs.replace(asked.template(mode, (), blocks, plans.Sweep()), looks=_looks(mode, blocks))


def _looks(mode: Mode, blocks: int) -> tuple[int, ...]:
    return seed_looks(blocks) if mode == "exact" else ()


def with_versions(
    template: Experiment,
    kernels: Sequence[Kernel],
    gaps: Sequence[Gap],
    compilers: Sequence[str],
    *,
    command: str,
    reuse: bool,
) -> Experiment:
    """A new sweep on the plan of ``template``, an earlier one or a bare one, with its own versions."""
    return msgspec.structs.replace(
        template,
        kernels=tuple(kernels),
        command=command,
        plan=plans.Sweep(reuse=reuse),
        annotations=Annotations(gaps=tuple(gaps), compilers=tuple(compilers)),
    )


def calibrate(asked: Asked, kernel: Kernel, blocks: int) -> Experiment:
    """``kernel`` under two labels."""
    sides = [msgspec.structs.replace(kernel, label=f"{kernel.label}-{side}") for side in ("A", "B")]
    return asked.template("timed", sides, blocks, plans.Calibrate())


def leaks(asked: Asked, kernels: Sequence[Kernel], boots: int) -> Experiment:
    """Whole lives of the cases; ``asked.effort`` has the batches."""
    return asked.template("timed", kernels, boots, plans.Leaks())


def scale(asked: Asked, kernels: Sequence[Kernel], blocks: int, tasks: Sequence[int]) -> Experiment:
    """Cases at several numbers of ``tasks``, which ``asked.cases`` have already."""
    return asked.template("timed", kernels, blocks, plans.Scale(tasks=tuple(tasks)))


def check(
    asked: Asked, kernels: Sequence[Kernel], mode: Mode, blocks: int, recipe: str, *, reuse: bool = False
) -> Experiment:
    """The cases that the claims of ``recipe`` need."""
    template = asked.template(mode, kernels, blocks, plans.Check(recipe=recipe, reuse=reuse))
    return msgspec.structs.replace(template, looks=_looks(mode, blocks))


def bisect(asked: Asked, mode: Mode, plan: plans.Bisect) -> Experiment:
    """No kernels yet, and timed no schedule either: each boot decides the next."""
    plain = asked.template(mode, (), 0 if mode == "timed" else asked.effort.seeds, plan)
    return msgspec.structs.replace(plain, annotations=Annotations(search=Search(done=False)))


def confirming(searched: Experiment, kernels: tuple[Kernel, Kernel], blocks: int, looks: tuple[int, ...]) -> Experiment:
    """The commit that the bisection ``searched`` found against its parent; ``blocks`` and ``looks`` are of times."""
    plan = plans.Compare(confirms=searched.id)
    plain = msgspec.structs.replace(searched, kernels=kernels, command="", plan=plan, annotations=Annotations())
    return plain if searched.mode == "exact" else msgspec.structs.replace(plain, blocks=blocks, looks=looks)


def trace(asked: Asked, kernels: Sequence[Kernel], sets: Sequence[str], ops: int | None) -> Experiment:
    """One boot a kernel that collects ``sets``; without any, exact lock holds.

    Memory pressure is left out: it is for measuring, and would only be traced too.

    Raises:
        UserError: a set that is not known.
    """
    chosen = collectors.choose(",".join(sets or (collectors.LOCKS,)), collectors.catalogue())
    cases = tuple(msgspec.structs.replace(case, pressure="") for case in asked.cases)
    plain = msgspec.structs.replace(asked, cases=cases, mitigations=("default",))
    plan = plans.Trace(sets=tuple(sets), ops=ops, collectors=chosen)
    return plain.template("timed" if sets else "exact", kernels, 1, plan)


def with_beside(trace: Experiment, other: Experiment) -> Experiment:
    """``trace``, with the stored experiment that traces the rest of what was asked for."""
    if not isinstance(trace.plan, plans.Trace):
        raise ValueError(f"a {trace.kind} has nothing traced beside it")
    return msgspec.structs.replace(trace, plan=msgspec.structs.replace(trace.plan, beside=other.id))


def asked_in(experiment: Experiment) -> Asked:
    """What a stored experiment was asked with, for another of the same cases."""
    return Asked(
        cases=experiment.cases,
        mitigations=experiment.mitigations,
        machine=experiment.machine,
        effort=experiment.effort,
        folders=tuple(map(Path, experiment.folders)),
        command=experiment.command,
    )

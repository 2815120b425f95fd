# SPDX-License-Identifier: GPL-2.0-or-later
"""What two experiments have in common, and what differs in how they were measured. Pure.

A kernel is the same where image and command line are; a case where workload, parameters, cgroup and pressure are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import PurePath
from typing import NamedTuple

from msgspec import Struct

from kdelta.errors import UserError
from kdelta.model import Case, CellResult, Experiment, Kernel, Mitigations
from kdelta.results.agreement.types import Fact
from kdelta.results.explain import Seeds
from kdelta.spec.program import PACK
from kdelta.store.rows import BootRow, Number
from kdelta.units import counted

_LISTED = 4  # names in an error's one line


class Measured(Struct, frozen=True, kw_only=True):
    """One experiment as it is stored: ``argv`` of its first boot that was ok; ``rows`` timed, ``seeds`` exact only."""

    experiment: Experiment
    boots: Sequence[BootRow]
    numbers: Sequence[Number]
    complete: bool = True
    argv: tuple[str, ...] = ()
    seeds: Seeds = {}
    floors: Mapping[str, float] = {}  # percent, by CASE or CASE/METRIC; exact only
    rows: Sequence[CellResult] = ()


class Shared(NamedTuple):
    """Indexes (here, there) of what both experiments have, and words for what only one has."""

    kernels: Sequence[tuple[int, int]]
    cases: Sequence[tuple[int, int]]
    mitigations: Sequence[Mitigations]
    only_here: tuple[str, ...]
    only_there: tuple[str, ...]


def _kernel_keys(experiment: Experiment) -> list[tuple[str, str, int]]:
    """Image, command line, and which of several such kernels it is (an A/A experiment has two)."""
    keys: list[tuple[str, str, int]] = []
    for kernel in experiment.kernels:
        same = (kernel.image_sha256 or kernel.build_id or kernel.release, kernel.cmdline)
        keys.append((*same, sum(key[:2] == same for key in keys)))
    return keys


def case_key(case: Case) -> tuple[object, ...]:
    """What makes two cases the same one."""
    return case.workload, tuple(sorted(case.params.items())), case.cgroup, case.pressure


def _case_facts(case: Case) -> dict[str, str]:
    return {**case.params, "workload": case.workload, "cgroup": case.cgroup, "pressure": case.pressure}


def _case_words(case: Case, others: Sequence[Case]) -> str:
    """Its name; of one that ``others`` have under this name too, in what it is another."""
    namesake = next((other for other in others if other.name == case.name), None)
    if namesake is None or case_key(case) in map(case_key, others):
        return case.name
    mine, theirs = _case_facts(case), _case_facts(namesake)
    unlike = [key for key in sorted(mine.keys() | theirs.keys()) if mine.get(key) != theirs.get(key)]
    return f"{case.name} (with other {', '.join('files' if key == PACK else key for key in unlike)})"


def _kernel_words(kernel: Kernel) -> str:
    image = f"image {kernel.image_sha256[:12]}" if kernel.image_sha256 else kernel.release
    return f"{kernel.label} ({image}{f', cmdline {kernel.cmdline}' if kernel.cmdline else ''})"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def shared(a: Experiment, b: Experiment) -> Shared:
    """What ``a`` (here) and ``b`` (there) have in common.

    Raises:
        UserError: no kernel, no case or no mitigations.
    """
    kernels = _kernel_keys(a), _kernel_keys(b)
    cases = [case_key(case) for case in a.cases], [case_key(case) for case in b.cases]
    common = Shared(
        kernels=[(i, kernels[1].index(key)) for i, key in enumerate(kernels[0]) if key in kernels[1]],
        cases=[(i, cases[1].index(key)) for i, key in enumerate(cases[0]) if key in cases[1]],
        mitigations=[m for m in a.mitigations if m in b.mitigations],
        only_here=tuple(_only(a, b, kernels[1])),
        only_there=tuple(_only(b, a, kernels[0])),
    )
    for what, found, names in (
        ("kernel (image and command line)", common.kernels, [[_kernel_words(k) for k in e.kernels] for e in (a, b)]),
        ("case", common.cases, [[_case_words(c, o.cases) for c in e.cases] for e, o in ((a, b), (b, a))]),
        ("mitigations", common.mitigations, [list(e.mitigations) for e in (a, b)]),
    ):
        if not found:
            raise UserError(
                f"--against: no {what} in common: {a.id} has {_listed(names[0])}; {b.id} has {_listed(names[1])}"
            )
    return common


def _only(mine: Experiment, other: Experiment, other_kernels: Sequence[object]) -> Iterator[str]:
    for kernel, key in zip(mine.kernels, _kernel_keys(mine), strict=True):
        if key not in other_kernels:
            yield f"kernel {_kernel_words(kernel)}"
    cases = [case_key(case) for case in other.cases]
    yield from (f"case {_case_words(case, other.cases)}" for case in mine.cases if case_key(case) not in cases)
    yield from (f"mitigations={m}" for m in mine.mitigations if m not in other.mitigations)


def _after(argv: Sequence[str], option: str) -> str:
    return next((value for name, value in pairwise(argv) if name == option), "")


def _facts(measured: Measured) -> dict[str, str]:
    """What may move a figure, in the order of the report; "" where it is not known."""
    e, effort = measured.experiment, measured.experiment.effort

    def of_boots(key: str) -> str:
        return ", ".join(sorted({boot.machine[key] for boot in measured.boots if key in boot.machine}))

    with_rep = ", with REP features" if e.machine.rep_features else ""
    cold = ", booted cold" if e.machine.cold else ""
    guest = f"{counted(e.machine.smp, 'CPU')}, {e.machine.memory_mib} MiB{with_rep}{cold}"
    return {
        "QEMU": of_boots("qemu"),
        "accelerator": of_boots("accel"),
        "guest CPU": _after(measured.argv, "-cpu"),
        "machine": e.machine.lab_name,
        "guest": guest if e.machine.guests else "",
        "counting plugin": PurePath(_after(measured.argv, "-plugin").split(",")[0]).name,
        "kdelta": e.tool_version,
        "host CPU": e.host.get("cpu", ""),
        "CPUs of the host": e.host.get("cpus", ""),
        "host kernel": e.host.get("kernel", ""),
        "seed": str(e.seed),
        "seeds" if e.mode == "exact" else "blocks": str(e.blocks),
        "in each boot": f"{effort.repetitions} repetitions" if e.mode == "exact" else f"{effort.windows} windows",
        "cases of a boot": ", ".join(case.name for case in e.cases),
    }


def differences(here: Measured, there: Measured) -> tuple[Fact, ...]:
    """What is not the same in how they were measured."""
    a, b = _facts(here), _facts(there)
    return tuple(Fact(what=what, here=a[what], there=b[what]) for what in a if a[what] != b[what])

# SPDX-License-Identifier: GPL-2.0-or-later
"""The cases of suites that are programs (spec/counted.py), packed from what is installed here."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence

from kdelta.errors import UserError
from kdelta.guest import packing
from kdelta.model import Case
from kdelta.spec import counted, suites
from kdelta.spec.suites import Suite
from kdelta.spec.workloads import Workload


def missing(suite: Suite) -> tuple[str, ...]:
    """The programs of ``suite`` that are not on this machine's PATH."""
    names = dict.fromkeys(one.programs[0].argv[0] for one in suite.programs.values())
    return tuple(name for name in names if shutil.which(name) is None)


def _absent(known: Mapping[str, Suite]) -> dict[str, tuple[str, ...]]:
    return {name: missing(suite) for name, suite in known.items() if suite.programs}


def at_hand(cases: Sequence[Case], workloads: Mapping[str, Workload]) -> list[Case]:
    """``cases`` without those whose program is not on this machine."""
    absent = _absent(suites.suites())

    def there(case: Case) -> bool:
        one = workloads[case.workload].counted
        return one is None or one.programs[0].argv[0] not in absent[case.workload.partition("/")[0]]

    return [case for case in cases if there(case)]


def packed(cases: Sequence[Case], workloads: Mapping[str, Workload], native: bool = False) -> list[Case]:
    """``cases`` in their order; programs of suites with their packs.

    Raises:
        UserError: a program is not on this machine, with the way to have it; or its files cannot be packed.
    """
    known = suites.suites()
    absent = _absent(known)
    found = []
    for case in cases:
        one = workloads[case.workload].counted
        if one is not None:
            name = case.workload.partition("/")[0]
            if (program := one.programs[0].argv[0]) in absent[name]:
                raise UserError(f"{case.name}: {program} is not on this machine: {known[name].remedy}")
            case = counted.packed(case, *packing.pack_alike(one.programs, native))
        found.append(case)
    return found

# SPDX-License-Identifier: GPL-2.0-or-later
"""Cases in a memory cgroup of their own, in which changed functions run that no case executes in the root cgroup.

The map is of the root cgroup, where the kernel charges nothing: a patch to what it does for a group was told to be
executed by no case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec.structs import replace

from kdelta.attribution.changes import Change
from kdelta.attribution.reach import Reach, of_memcgs
from kdelta.errors import KdeltaError
from kdelta.experiment import knobs
from kdelta.experiment.knobs import Turned
from kdelta.experiment.reach import Setup
from kdelta.kernel import changed, touches
from kdelta.model import Case, Kernel, Progress
from kdelta.spec.kernels import KernelSpec

_TRIED = 4  # cases
_MOST = 2  # that are added
_EACH = 2  # tried for a function


def likely(
    unreached: Sequence[Change],
    reach: Reach,
    callers: Callable[[str], Iterable[str]],
    usual: Sequence[str],
    *,
    asked: bool,
) -> tuple[str, ...]:
    """The cases that may execute some of what is ``unreached`` where memory is charged to a group, the likeliest first.

    Those that execute its nearest caller most; of what nothing known calls, the ``usual`` ones. Pure.

    Args:
        asked: whether the user wants cases in a group; else only what functions' names say to be of groups counts.
    """
    found: dict[str, None] = {}
    for change in unreached:
        if change.boot_only:
            continue
        near = reach.near(change.name, callers, 1)
        if not asked and not of_memcgs(near[0].path if near else (change.name,)):
            continue
        rows = reach.executing(near[0].function) if near else ()
        found.update(dict.fromkeys([row.case for row in rows[:_EACH]] or usual[:_EACH]))
    return tuple(found)[:_TRIED]


def charged(specs: Sequence[KernelSpec]) -> tuple[str, ...]:
    """Flags by which what makes the last of ``specs`` differ has other memory charged: the root cgroup has no charges.

    Raises:
        HostError: git fails.
    """
    return tuple(dict.fromkeys(name for lines in changed.texts(specs) for name in touches.charges(lines)))


def beside(names: Sequence[str], cases: Mapping[str, Case]) -> tuple[Case, ...]:
    """The first of the cases ``names``, each in a group of its own."""
    return tuple(replace(cases[name], cgroup="child") for name in names if cases[name].cgroup == "root")[:_MOST]


def search(
    kernels: Sequence[Kernel],
    unreached: Sequence[Change],
    names: Sequence[str],
    cases: Mapping[str, Case],
    setup: Setup,
    progress: Progress,
) -> tuple[Turned, ...]:
    """Of the cases ``names``, each in a group of its own, those that run most of what is ``unreached`` there.

    () too where that cannot be told, which is noted.
    """
    inside = [replace(cases[name], cgroup="child") for name in names if name in cases]
    tried = {case.name: case for case in inside}
    if not tried:
        return ()
    try:
        missing = knobs.differing(kernels, unreached)
        if not missing:
            return ()
        watched = frozenset(missing.values())
        runs = knobs.count(watched, setup, progress, kernels[-1], inside, "cases in a memory cgroup")
        return tuple(knobs.covering(missing, {name: ran for name, ran in runs.items() if ran}, tried, _MOST))
    except (KdeltaError, OSError) as error:
        progress.note(f"cases in a memory cgroup were not tried: {error}")
        return ()

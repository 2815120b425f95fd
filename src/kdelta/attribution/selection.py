# SPDX-License-Identifier: GPL-2.0-or-later
"""From what a patch changed to the cases that execute it, and to what none of them does. Pure.

Every change that some case executes gets its most specific case, the one that spends the largest share of its
instructions there, unless a case chosen already is nearly as specific. What time is left goes to further cases, by the
share that they spend in all that changed: first those that take another way through it, as far as the instructions of a
call tell that. A function that copies is not looked at by its longest copies alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence

from msgspec import Struct

from kdelta.attribution.changes import Change
from kdelta.attribution.reach import Reach, Row

MOST = 12  # cases, where fewer do for every change
CONTROLS = 3
_NEARLY = 0.5  # of the most specific case's share
_STEADY = 0.1  # of it: a case of such a share, whose counts do not vary, stands for it
_ANOTHER_WAY = 1.25  # times as many instructions a call
_LEAST = 0.002  # of a case's instructions: of a smaller share no change of it would be seen

_Way = tuple[str, int]  # a function, and how many instructions a call of it takes, in steps


class Picked(Struct, frozen=True, kw_only=True):
    """A case chosen: the share of its kernel instructions in what changed, and what of it the case executes."""

    case: str
    share: float
    changes: tuple[str, ...]


class Selection(Struct, frozen=True, kw_only=True):
    """The cases to measure, most specific first, and what is not looked at.

    ``executing``: how many cases execute anything of it. ``left_out``: changes that cases execute for which there is no
    time. ``interrupting``: changes that are executed, as
    far as was seen, only in what interrupts the cases. ``controls``: cases that execute nothing that changed.
    """

    picked: tuple[Picked, ...]
    executing: int = 0
    unreached: tuple[Change, ...] = ()
    left_out: tuple[Change, ...] = ()
    interrupting: tuple[Change, ...] = ()
    controls: tuple[str, ...] = ()


def choose(
    changes: Sequence[Change],
    reach: Reach,
    cost_s: Callable[[Row], float],
    budget_s: float,
    *,
    given: Sequence[str] = (),
    varying: Collection[str] = (),
    controls: bool = False,
) -> Selection:
    """The cases for ``changes`` that ``budget_s`` allows, at least one where any executes them.

    ``cost_s`` is what measuring a case takes. ``given`` are measured anyhow, and picked where they execute something of
    it. Cases whose counts are ``varying`` are no further ones where others execute something of it, nor the first where
    another spends a tenth as much of its own there: they take the most boots, and mostly end undecided. ``controls``
    adds some that should not move.
    """
    hosts = {name for change in changes for name in change.hosts}
    weight = {row.case: row.share(hosts) for row in reach.rows}
    by_change = {change.name: _executing(change, reach) for change in changes}
    of_user = [row for row in reach.rows if row.case in given and weight[row.case]]
    budget_s -= sum(map(cost_s, of_user))
    wanted = [row for row in _cover(changes, by_change, varying) if row not in of_user]
    chosen = {row.case for row in (*wanted, *of_user)}
    rest = sorted((row for row in reach.rows if weight[row.case] and row.case not in chosen), key=_by(weight))
    if any(row.case not in varying for row in (*wanted, *rest)):
        rest = [row for row in rest if row.case not in varying]
    further = _other_ways_first(rest, [*of_user, *wanted], hosts)
    affordable = _affordable(sorted(wanted, key=_by(weight)), cost_s, budget_s, least=0 if of_user else 1)
    if len(affordable) == len(wanted):
        spent = sum(map(cost_s, affordable))
        more = _affordable(further[: max(0, MOST - len(wanted))], cost_s, budget_s - spent, least=0)
        affordable = sorted([*affordable, *more], key=_by(weight))
    affordable = [*of_user, *affordable]
    names = {row.case for row in affordable}
    return Selection(
        picked=tuple(_picked(row, changes, weight[row.case]) for row in affordable),
        executing=sum(map(bool, weight.values())),
        unreached=tuple(change for change in changes if not by_change[change.name]),
        left_out=tuple(
            change
            for change in changes
            if by_change[change.name] and not names & {row.case for row in by_change[change.name]}
        ),
        interrupting=tuple(
            change for change in changes if by_change[change.name] and reach.interrupting.issuperset(change.hosts)
        ),
        controls=_controls(reach, weight, cost_s) if controls else (),
    )


def other_ways(
    reach: Reach, hosts: Collection[str], chosen: Collection[str], among: Collection[str], most: int
) -> list[str]:
    """At most ``most`` cases ``among`` some that take a way through ``hosts`` which none of ``chosen`` takes.

    Ways are told apart by whole instructions a call: a branch taken otherwise is another number of them, mostly. Of the
    cases that take one the quickest stands for it; first those that spend the largest share in ``hosts``.
    """
    known = {way for row in reach.rows if row.case in chosen for way in _exact_ways(row, hosts)}
    found: dict[_Way, Row] = {}
    for row in sorted(reach.rows, key=lambda row: (row.elapsed_s, row.case)):
        for way in _exact_ways(row, hosts) - known if row.case in among else ():
            found.setdefault(way, row)
    rows = {row.case: row for row in found.values()}
    return sorted(rows, key=lambda case: (-rows[case].share(hosts), case))[:most]


def _exact_ways(row: Row, hosts: Collection[str]) -> set[_Way]:
    ran = [(name, row.functions[name]) for name in hosts if row.share((name,)) >= _LEAST]
    return {(name, round(one.instructions / one.calls)) for name, one in ran if one.calls}


def _by(weight: dict[str, float]) -> Callable[[Row], tuple[float, str]]:
    return lambda row: (-weight[row.case], row.case)


def _executing(change: Change, reach: Reach) -> list[Row]:
    """The cases that execute ``change``, the most specific first."""
    rows = {row.case: row for host in change.hosts for row in reach.executing(host)}
    return sorted(rows.values(), key=lambda row: (-row.share(change.hosts), row.case))


def _cover(changes: Sequence[Change], by_change: dict[str, list[Row]], varying: Collection[str]) -> list[Row]:
    """A specific case for every change, those first that few cases execute.

    A program that looks names up all the time was all that a patch of strncpy_from_user() was measured by, as it took
    the time of the eleven calls beside it.
    """
    chosen: dict[str, Row] = {}
    for change in sorted(changes, key=lambda one: (len(by_change[one.name]), one.name)):
        rows = by_change[change.name]
        enough = _STEADY * rows[0].share(change.hosts) if rows else 0.0
        steady = [row for row in rows if row.case not in varying and row.share(change.hosts) >= enough]
        if rows := steady or rows:
            least = _NEARLY * rows[0].share(change.hosts)
            if not any(row.case in chosen and row.share(change.hosts) >= least for row in rows):
                chosen[rows[0].case] = rows[0]
    return list(chosen.values())


def _other_ways_first(rows: Sequence[Row], chosen: Iterable[Row], hosts: Collection[str]) -> list[Row]:
    """``rows`` with those in front that take a way through ``hosts`` which none before them takes."""
    known = {way for row in chosen for way in _ways(row, hosts)}
    first: list[Row] = []
    others: list[Row] = []
    for row in rows:
        ways = _ways(row, hosts)
        (others if ways <= known else first).append(row)
        known |= ways
    return [*first, *others]


def _ways(row: Row, hosts: Collection[str]) -> set[_Way]:
    """The ways that a case takes through functions in which it spends enough to tell."""
    enough = [(name, row.functions[name]) for name in hosts if row.share((name,)) >= _LEAST]
    return {(name, round(math.log(ran.instructions / ran.calls, _ANOTHER_WAY))) for name, ran in enough if ran.calls}


def _affordable(rows: Sequence[Row], cost_s: Callable[[Row], float], budget_s: float, least: int = 1) -> list[Row]:
    kept: list[Row] = []
    spent = 0.0
    for row in rows:
        if len(kept) < least or spent + cost_s(row) <= budget_s:
            kept.append(row)
            spent += cost_s(row)
    return kept


def _picked(row: Row, changes: Sequence[Change], share: float) -> Picked:
    executed = tuple(change.name for change in changes if any(host in row.functions for host in change.hosts))
    return Picked(case=row.case, share=share, changes=executed)


def _controls(reach: Reach, weight: dict[str, float], cost_s: Callable[[Row], float]) -> tuple[str, ...]:
    """Cases far apart in the catalogue that execute nothing that changed; of three neighbours the cheapest."""
    still = [row for row in reach.rows if row.state == "ok" and not weight[row.case]]
    size = max(1, len(still) // CONTROLS)
    groups = [still[start : start + size] for start in range(0, size * CONTROLS, size)]
    return tuple(min(group, key=cost_s).case for group in groups if group)

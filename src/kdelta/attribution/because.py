# SPDX-License-Identifier: GPL-2.0-or-later
"""Which functions account for a difference between two profiles. Pure.

Counts are kernel instructions per operation. Instructions are a cost that adds up exactly, so the differences of all
functions together are the whole difference: nothing is sampled and nothing is left over.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from kdelta.attribution.inlining import Host, Side, hosts
from kdelta.attribution.once import once
from kdelta.attribution.profiles import USER, calls_of
from kdelta.attribution.taken import taken
from kdelta.model import Because, FunctionDelta, Profile

GONE = "gone"
NEW = "new"
# A function with less than this part of all movement is not worth a word in one line.
_WORTH_A_WORD = 0.02


@once
def _per_op(profile: Profile) -> dict[str, float]:
    return {name: counts[0] / profile.ops for name, counts in profile.functions.items() if name != USER and counts[0]}


def moved_per_op(profile: Profile) -> dict[str, float]:
    """Transfers per operation by line; several rows of one name are added up."""
    found: dict[str, float] = {}
    for line in profile.moved:
        found[line.name] = found.get(line.name, 0.0) + line.transfers / profile.ops
    return found


def unshared_per_op(profile: Profile) -> dict[str, float]:
    """As ``moved_per_op``, of these the false sharing."""
    found: dict[str, float] = {}
    for line in profile.moved:
        found[line.name] = found.get(line.name, 0.0) + line.unshared / profile.ops
    return found


def movers_per_op(profile: Profile) -> dict[str, dict[str, float]]:
    """By line: how often it moves for each function; several rows of one name are added up."""
    found: dict[str, dict[str, float]] = {}
    for line in profile.moved:
        mine = found.setdefault(line.name, {})
        for function, (reads, writes) in line.by.items():
            mine[function] = mine.get(function, 0.0) + (reads + writes) / profile.ops
    return found


def _where(before: Mapping[str, float], after: Mapping[str, float], delta: float) -> str:
    """The function that changed most the way that the line did; "" where it is told of none."""
    changes = {name: after.get(name, 0.0) - before.get(name, 0.0) for name in before.keys() | after.keys()}
    along = [name for name, change in changes.items() if change * delta > 0 and not name.startswith("[")]
    return min(along, key=lambda name: (-abs(changes[name]), name), default="")


@once
def _side(profile: Profile) -> Side:
    return Side(_per_op(profile), calls_of(profile))


def _place(word: str, how: str, host: Host) -> str:
    return f"{word}, {'' if host.sure else 'maybe '}{how} {host.name}{' among others' if host.others else ''}"


def differences(baseline: Profile, patched: Profile) -> tuple[FunctionDelta, ...]:
    """Every kernel function whose instructions per operation differ, largest |difference| first (then by name).

    ``note`` is empty for what ran in both; else "gone" or "new", with "inlined into X" or "split out of X" where the
    calls of both kernels show it ("maybe" where they merely allow it, "among others" where X is one of several). The
    deltas add up to the difference of the two profiles' kernel instructions per operation.
    """
    return placed(changes(baseline, patched), baseline, patched)


def changes(baseline: Profile, patched: Profile) -> tuple[FunctionDelta, ...]:
    """``differences`` whose notes do not say yet where code went, or is from: that takes the calls."""
    old, new = _per_op(baseline), _per_op(patched)
    deltas = [
        FunctionDelta(
            function=name,
            baseline=before,
            patched=after,
            delta=after - before,
            note=GONE if name not in new else "" if name in old else NEW,
        )
        for name in old.keys() | new.keys()
        if (before := old.get(name, 0.0)) != (after := new.get(name, 0.0))
    ]
    return tuple(sorted(deltas, key=lambda d: (-abs(d.delta), d.function)))


def placed(deltas: Sequence[FunctionDelta], baseline: Profile, patched: Profile) -> tuple[FunctionDelta, ...]:
    """Some ``changes`` of two profiles with where code went that is gone, and where new code is from."""
    notes = {d.note for d in deltas}
    into = hosts(_side(baseline), _side(patched)) if GONE in notes else {}
    out_of = hosts(_side(patched), _side(baseline)) if NEW in notes else {}

    def told(d: FunctionDelta) -> FunctionDelta:
        gone = d.note == GONE
        host = (into if gone else out_of).get(d.function) if d.note else None
        if host is None:
            return d
        return replace(d, note=_place(d.note, "inlined into" if gone else "split out of", host))

    return tuple(map(told, deltas))


def homes(baseline: Profile, patched: Profile) -> dict[str, Host]:
    """Functions that run on one of two kernels alone, with that of both which surely holds their code on the other."""
    sides = _side(baseline), _side(patched)
    both = {**hosts(*sides), **hosts(*reversed(sides))}
    return {name: host for name, host in both.items() if host.sure}


def line_differences(baseline: Profile, patched: Profile) -> tuple[FunctionDelta, ...]:
    """Every name of lines (``Profile.moved``) whose transfers per operation differ, largest |difference| first.

    The deltas add up to the difference of the two profiles' transfers per operation.
    """
    old, new = moved_per_op(baseline), moved_per_op(patched)
    before, after = movers_per_op(baseline), movers_per_op(patched)
    false, falsely = unshared_per_op(baseline), unshared_per_op(patched)
    deltas = [
        FunctionDelta(
            function=name,
            baseline=old.get(name, 0.0),
            patched=new.get(name, 0.0),
            delta=new.get(name, 0.0) - old.get(name, 0.0),
            note=GONE if name not in new else NEW if name not in old else "",
            where=_where(before.get(name, {}), after.get(name, {}), new.get(name, 0.0) - old.get(name, 0.0)),
            unshared=falsely.get(name, 0.0) - false.get(name, 0.0),
        )
        for name in old.keys() | new.keys()
        if old.get(name) != new.get(name)
    ]
    return tuple(sorted(deltas, key=lambda d: (-abs(d.delta), d.function)))


def significant_lines(
    deltas: Sequence[FunctionDelta], baseline: Sequence[Profile], patched: Sequence[Profile]
) -> tuple[FunctionDelta, ...]:
    """As ``significant``, of lines."""
    sides = [list(map(moved_per_op, side)) for side in _varying(baseline, patched)]
    return _kept(deltas, lambda name: ([lines.get(name, 0.0) for lines in side] for side in sides))


def significant(
    deltas: Sequence[FunctionDelta], baseline: Sequence[Profile], patched: Sequence[Profile]
) -> tuple[FunctionDelta, ...]:
    """The ``deltas`` that exceed how far the function's own count moves between the seeds of either side.

    ``baseline`` and ``patched`` are the profiles of all seeds, one each. What varies by more than it changed explains
    nothing: it would be named, up or down, by the chance of which seed is the median.
    """
    sides = [[(profile.functions, profile.ops) for profile in side] for side in _varying(baseline, patched)]

    def costs(name: str) -> Iterator[list[float]]:  # of few of a seed's functions, so that not all are worked out
        return ([found[name][0] / ops if name in found else 0.0 for found, ops in side] for side in sides)

    return _kept(deltas, costs)


def _kept(
    deltas: Sequence[FunctionDelta], figures: Callable[[str], Iterable[Sequence[float]]]
) -> tuple[FunctionDelta, ...]:
    """The ``deltas`` that exceed the range of their ``figures`` over the seeds of either side."""
    return tuple(
        d for d in deltas if d.delta and all(abs(d.delta) > max(one) - min(one) for one in figures(d.function))
    )


def _varying(*sides: Sequence[Profile]) -> list[list[Profile]]:
    """Each profile of a side once; seeds whose profile is one have no range."""
    unlike = (list({id(profile): profile for profile in side}.values()) for side in sides)
    return [side for side in unlike if len(side) > 1]


def cumulative_shares(deltas: Sequence[FunctionDelta]) -> tuple[float | None, ...]:
    """For each function the part of the net effect (the sum of all deltas) that it and those before it make up.

    Ends at 1.0. Passes beyond 1.0 on the way where later functions go the other way. None where the net effect is 0.
    """
    net = math.fsum(d.delta for d in deltas)
    if not net:
        return (None,) * len(deltas)
    return tuple(total / net for total in itertools.accumulate(d.delta for d in deltas))


def _renamed(deltas: Sequence[FunctionDelta]) -> list[FunctionDelta]:
    """The ``deltas``, where one that is gone or new and one of its name but for underscores are one, if they go apart.

    7.0 has mod_memcg_lruvec_state() for __mod_memcg_lruvec_state(): told as new, it was several times what changed.
    """
    named: dict[str, list[FunctionDelta]] = {}
    for one in deltas:
        named.setdefault(one.function.lstrip("_"), []).append(one)
    found = []
    for group in named.values():
        here = next((one for one in group if one.note in (GONE, NEW)), None)
        if len(group) != 2 or here is None or group[0].delta * group[1].delta >= 0:
            found += group
            continue
        other = group[0] if group[1] is here else group[1]
        last = other if other.patched >= here.patched else here
        before, after = (math.fsum(pair) for pair in ((here.baseline, other.baseline), (here.patched, other.patched)))
        if before != after:
            found.append(replace(last, baseline=before, patched=after, delta=after - before, note=""))
    return sorted(found, key=lambda d: (-abs(d.delta), d.function))


def line(deltas: Sequence[FunctionDelta], limit: int = 4) -> Because | None:
    """What one line tells of ``deltas``, ``limit`` functions of each kind at most; None where none is worth a word.

    What is gone or new is looked for further down the list than what merely changed: it says more.
    """
    deltas = _renamed(deltas)
    movement = math.fsum(abs(d.delta) for d in deltas)
    worth = [d for d in deltas[: 2 * limit] if abs(d.delta) >= _WORTH_A_WORD * movement]
    gone, new = ([d for d in worth if d.note.startswith(word)][:limit] for word in (GONE, NEW))
    changed = [d for d in worth[:limit] if not d.note]
    if not (gone or new or changed):
        return None
    return Because(
        gone=tuple(d.function for d in gone),
        gone_delta=math.fsum(d.delta for d in gone),
        new=tuple(d.function for d in new),
        new_delta=math.fsum(d.delta for d in new),
        changed=tuple((d.function, d.delta) for d in changed),
    )


def told_delta(told: Because) -> float:
    """What the functions that are named come to."""
    return told.gone_delta + told.new_delta + math.fsum(delta for _, delta in told.changed)


def beside(told: Because | None, deltas: Sequence[FunctionDelta]) -> Because | None:
    """``told`` of ``deltas``, with what all the others of them come to, also those that vary with the seed."""
    if told is None:
        return None
    named = {*told.gone, *told.new, *(name for name, _ in told.changed)}
    others = sum(d.delta != 0 for d in _renamed(deltas) if d.function not in named)
    return replace(told, others=others, others_delta=math.fsum(d.delta for d in deltas) - told_delta(told))


def held(told: Because | None, baseline: Profile, patched: Profile) -> Because | None:
    """``told`` of two profiles, with what of its changes is code that moved between callers and called."""
    return None if told is None else taken(told, _side(baseline), _side(patched))

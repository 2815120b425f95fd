# SPDX-License-Identifier: GPL-2.0-or-later
"""Two trees of calls as one: what each call stack cost on both kernels, per operation. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from kdelta.attribution import interrupts, stacks
from kdelta.attribution.inlining import Host
from kdelta.model import Profile

# Of two functions that may be one under two names: how much their calls may differ, and what part has to be the same.
_AS_OFTEN, _SAME = 0.02, 0.5


class Frame(Struct, kw_only=True):
    """A function under its callers: instructions per operation of its own and with all that it called; the baseline's
    first. ``calls``: how often it was entered there, per operation.
    """

    name: str
    was: str = ""  # its name on the baseline, where that is another
    own: list[float] = field(default_factory=lambda: [0.0, 0.0])
    whole: list[float] = field(default_factory=lambda: [0.0, 0.0])
    calls: list[float] = field(default_factory=lambda: [0.0, 0.0])
    children: dict[str, Frame] = field(default_factory=dict)
    width: float = 0.0  # that holds both kernels' stacks
    joined: list[str] = field(default_factory=list)  # functions of one kernel alone whose code is counted with its own


def compared(before: Profile, after: Profile, homes: Mapping[str, Host] | None = None) -> Frame:
    """The tree of both profiles' stacks; both have some.

    Where only one kernel has a function between two that both have, it was inlined, or no longer is: what it called
    then stands beside it, so that it is compared. So does what a function calls on one kernel and jumps to at its end
    on the other, see ``_unnest``. A function is compared with its namesake in all but name: see ``_renamed``. With
    ``homes`` (``because.homes``) what merely moved into another function or out of it is counted with that. Nobody
    calls an interrupt: below whom one came is chance, and each stands below the root.
    """
    root = Frame(name=stacks.ROOT)
    trees = _without_chance(stacks.parse(before.stacks)), _without_chance(stacks.parse(after.stacks))
    mine, theirs = (set(stacks.by_function(tree)) for tree in trees)
    _merge(root, trees, _Both(ops=(before.ops, after.ops), homes=homes or {}, shared=frozenset(mine & theirs)))
    return root


def _without_chance(root: stacks.Node) -> stacks.Node:
    """``root``, of one profile alone, with its interrupts taken from below those whom they interrupted."""
    found: list[tuple[str, stacks.Node]] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        for name in [name for name in node.children if interrupts.ANY.fullmatch(name)]:
            found.append((name, node.children.pop(name)))
            waiting.append(found[-1][1])  # one may come in another
        waiting += node.children.values()
    for name, node in found:
        root.children[name] = _both(root.children[name], node) if name in root.children else node
    return root


class _Both(Struct, frozen=True, kw_only=True):
    """What is known of both trees: their operations, where code moved, the functions that run in both."""

    ops: tuple[int, int]
    homes: Mapping[str, Host]
    shared: frozenset[str]


def _merge(frame: Frame, nodes: tuple[stacks.Node, stacks.Node], both: _Both) -> None:
    ops = both.ops
    for side, node in enumerate(nodes):
        frame.own[side], frame.calls[side] = node.instructions / ops[side], node.calls / ops[side]
    below = [dict(node.children) for node in nodes]
    joined = _settle(frame, below, both)
    one, other = below
    while _lift(one, other) or _lift(other, one) or _unnest(one, other, ops) or _unnest(other, one, (ops[1], ops[0])):
        pass
    was = _renamed(below[0], below[1], both)
    frame.whole, frame.width = list(frame.own), max(frame.own)
    for name in sorted({*below[0], *below[1]}):
        child = frame.children[name] = Frame(name=name, was=was.get(name, ""), joined=joined.get(name, []))
        _merge(child, (below[0].get(name, stacks.Node()), below[1].get(name, stacks.Node())), both)
        frame.whole = [total + part for total, part in zip(frame.whole, child.whole, strict=True)]
        frame.width += child.width


def _settle(frame: Frame, below: list[dict[str, stacks.Node]], both: _Both) -> dict[str, list[str]]:
    """Count what is ``below`` on one side alone with its home: that is ``frame``, or beside it on both sides, where a
    function is called by a jump at the end of another. Whom each home has got, by its name.
    """
    joined = {frame.name: frame.joined}
    for side in (0, 1):
        here, there = below[side], below[1 - side]
        for name in (waiting := sorted(here.keys() - there.keys())):  # it grows as it is read
            host = both.homes.get(name)
            if host is None or name in there or name not in here:
                continue
            home = host.name
            if home == frame.name:
                node = here.pop(name)
                frame.own[side] += node.instructions / both.ops[side]
                waiting += sorted(node.children)
                here.update(_both(stacks.Node(children=here), node).children)
            elif home in here and home in there and not host.others:
                here[home] = replace(_both(here[home], here.pop(name)), calls=here[home].calls)
            else:
                continue
            joined.setdefault(home, []).append(name)
    return joined


def _lift(here: dict[str, stacks.Node], there: dict[str, stacks.Node]) -> bool:
    """Put what a function that is only ``here`` calls beside it, where ``there`` has that; whether there was one."""
    for name in sorted(here.keys() - there.keys()):
        node = here[name]
        if not any(called in there for called in node.children):
            continue
        here[name] = stacks.Node(instructions=node.instructions, calls=node.calls)
        for called, child in node.children.items():
            here[called] = _both(here[called], child) if called in here else child
        return True
    return False


def _unnest(here: dict[str, stacks.Node], there: dict[str, stacks.Node], ops: tuple[int, int]) -> bool:
    """Put what a function of both calls only ``there`` beside it, where it is ``here``; whether there was one.

    A function that ends in a jump (a tail call) is left by then: its caller is seen to call the other one. Beside it
    and not below, because who of several jumped is not known. Where both kernels call it there anyhow, the calls
    decide: ``here`` has to have most of those more which ``there`` has below.
    """
    for above in sorted(here.keys() & there.keys()):
        for holder, name in _below(here[above], there[above]):
            if name == above or name not in here:
                continue
            called = holder.children[name]
            known = there.get(name, stacks.Node())
            if 2 * (here[name].calls / ops[0] - known.calls / ops[1]) < called.calls / ops[1]:
                continue
            del holder.children[name]
            there[name] = _both(known, called)
            return True
    return False


def _below(here: stacks.Node, there: stacks.Node) -> list[tuple[stacks.Node, str]]:
    """Whom a function calls only ``there``, itself or through others such, each with its caller; the nearest first."""
    found = [(there, name) for name in sorted(there.children.keys() - here.children.keys())]
    for holder, name in found:  # it grows as it is read
        called = holder.children[name].children
        found += [(holder.children[name], further) for further in sorted(called.keys() - here.children.keys())]
    return found


def _both(one: stacks.Node, other: stacks.Node) -> stacks.Node:
    children = dict(one.children)
    for name, child in other.children.items():
        children[name] = _both(children[name], child) if name in children else child
    return stacks.Node(
        instructions=one.instructions + other.instructions, calls=one.calls + other.calls, children=children
    )


def _renamed(before: dict[str, stacks.Node], after: dict[str, stacks.Node], both: _Both) -> dict[str, str]:
    """New name -> old one, of functions that are one under two names, or one instead of the other: they mostly call the
    same, cost by the same, or have most of a name in common. ``before`` has them by their new names.
    """
    found = {}
    for alike in (_calls_the_same, _costs_by_the_same, _named_alike):
        for old in sorted(before.keys() - after.keys()):
            ranked = {new: alike((old, before[old]), (new, after[new]), both) for new in after.keys() - before.keys()}
            new = max(sorted(ranked), key=ranked.__getitem__, default="")
            if ranked.get(new, 0.0) >= _SAME:
                before[new] = before.pop(old)
                found[new] = old
    return found


_Named = tuple[str, stacks.Node]


def _calls_the_same(before: _Named, after: _Named, _: _Both) -> float:
    """Which part of those whom either calls both do."""
    mine, theirs = before[1].children.keys(), after[1].children.keys()
    return len(mine & theirs) / max(len(mine), len(theirs), 1)


def _costs_by_the_same(before: _Named, after: _Named, both: _Both) -> float:
    """Which part of what they cost, of the side where it is less, is by functions that both call; 0 if not as often."""
    one, other = before[1], after[1]
    shared = one.children.keys() & other.children.keys()
    if not shared or not _as_often(one, other, both.ops):
        return 0.0
    return min(sum(_whole(node.children[name]) for name in shared) / max(_whole(node), 1) for node in (one, other))


def _named_alike(before: _Named, after: _Named, both: _Both) -> float:
    """Which part of the words of their names is in both, as of do_set_pte and set_pte_range; 0 if not as often called.

    One stands for the other then, whatever it is: their costs are told as one change. ``__foo`` is foo, however often.
    Who runs on the other kernel too, elsewhere, is somebody else.
    """
    if not both.shared.isdisjoint((before[0], after[0])):
        return 0.0
    if before[0].strip("_") == after[0].strip("_"):
        return 1.0
    if not _as_often(before[1], after[1], both.ops):
        return 0.0
    mine, theirs = ({word for word in name.split("_") if word} for name in (before[0], after[0]))
    return len(mine & theirs) / max(len(mine), len(theirs), 1)


def _as_often(before: stacks.Node, after: stacks.Node, ops: tuple[int, int]) -> bool:
    often = (before.calls / ops[0], after.calls / ops[1])
    return abs(often[0] - often[1]) <= _AS_OFTEN * max(often)


def _whole(node: stacks.Node) -> int:
    return sum(below.instructions for _, below in stacks.walk(node))


def at(root: Frame, path: Sequence[str]) -> list[Frame]:
    """The frames from the root along ``path``, as far as it leads."""
    found = [root]
    for name in path:
        below = found[-1].children.get(name)
        if below is None:
            break
        found.append(below)
    return found


def neighbours(root: Frame, function: str) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Who called ``function``, with what it cost for each, and whom it called, with what those cost.

    Where it called itself, only the outermost of its frames counts for callers.
    """
    callers: dict[str, list[float]] = {}
    callees: dict[str, list[float]] = {}
    waiting = [(root, False)]
    while waiting:
        frame, inside = waiting.pop()
        for child in frame.children.values():
            if child.name == function and not inside:
                _add(callers, frame.name, child.whole)
            if frame.name == function and child.name != function:
                _add(callees, child.name, child.whole)
            waiting.append((child, inside or child.name == function))
    return callers, callees


def _add(found: dict[str, list[float]], name: str, cost: Sequence[float]) -> None:
    found[name] = [total + part for total, part in zip(found.get(name, [0.0, 0.0]), cost, strict=True)]

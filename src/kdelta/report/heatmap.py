# SPDX-License-Identifier: GPL-2.0-or-later
"""Many cases over versions at a glance: a line for each case, a square for each version, steps marked.

No statistics.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct
from rich.cells import cell_len

from kdelta.model import UNBOOTED
from kdelta.report.text import PROSE, WIDTH, ends, fit, pad, rule, wrap
from kdelta.report.view import SweepRow, SweepTable
from kdelta.units import finite, size

MANY = 7  # sweeps from which a map stands for them; fewer are shown version by version
LARGEST = 10  # steps told with their functions beneath a map
LONG = 24  # lines from which on a map begins with the largest steps, and those without any are folded
_MOST = 40  # lines of a long map that plain text shows
_SQUARE = 5  # cells wide, with the space before it
_NAME_MOST = 22
_LEVELS = (1.0, 5.0, 20.0)  # percent: from here on a step is drawn stronger
_RELEASE = re.compile(r"^v?(\d+\.\d+)\b")
SIGNS = (
    (".", "as before"),
    ("+5 -5", "a step in percent (x12: times 12)"),
    ("?", "not decided"),
    ("new", "no figure before"),
    ("u", "unsupported"),
    ("x", "failed"),
    ("-", "left out"),
)
ALL = ("all", "the last version against the first")
KEY = ", ".join(f"{sign}{':' * (sign == 'new')} {told}" for sign, told in SIGNS) + f"; {ALL[0]}: {ALL[1]}"
_STATES = {"unsupported": "u", "left out": "-"}


class Square(Struct, frozen=True, kw_only=True):
    """A case on a version. ``level``: 0 no step, 1 to 3 by its size; ``told``: what a pointer or a reader is told."""

    text: str
    verdict: str
    level: int = 0
    told: str = ""


class Line(Struct, frozen=True, kw_only=True):
    """A case over the versions; ``number`` is its place among all sweeps."""

    name: str
    number: int
    squares: tuple[Square, ...]
    change: str
    largest: float = 0.0  # step, in percent
    weight: float = 0.0  # of the step that weighs most, a rise and its reverse alike: what the headline goes by, too

    @property
    def still(self) -> bool:
        """Whether it is as before on every version."""
        return all(square.text == "." for square in self.squares)


class HeatMap(Struct, frozen=True, kw_only=True):
    """The cases of one suite and metric. ``versions`` follow the ``first``; they are as short as can be told apart.

    ``lines`` are those with something to see, largest step first where there are many; ``still`` have none.
    """

    title: str
    first: str
    versions: tuple[str, ...]
    lines: tuple[Line, ...]
    still: tuple[Line, ...] = ()


def short(percent: float) -> str:
    """A change in at most four characters: ``+78``, ``-1.2``, ``+.04``, ``x12`` for a factor of ten or more."""
    size = abs(percent)
    if percent >= 900:
        factor = percent / 100 + 1
        return f"x{factor:.0f}" if factor < 999.5 else "x1k+"
    sign = "-" if percent < 0 else "+"
    if size < 0.095:
        return sign + f"{max(size, 0.01):.2f}"[1:]
    return sign + (f"{size:.1f}" if size < 9.95 else f"{size:.0f}")


def _square(row: SweepRow, percent: float | None) -> Square:
    told = ": ".join(filter(None, [f"{row.kernel} {row.value} {row.change} {row.mark}".rstrip(), row.sentence]))
    if row.sentence == UNBOOTED:
        return Square(text="", verdict=row.verdict, told=told)
    if not row.measured:
        return Square(text=_STATES.get(row.verdict, "x"), verdict=row.verdict, told=told)
    if row.verdict == "first":
        return Square(text="new", verdict=row.verdict, told=told)
    if not row.change:
        if row.verdict == "descriptive":
            return Square(text="?", verdict=row.verdict, told=f"{told}: {row.unseen}")
        return Square(text=".", verdict=row.verdict, told=told)
    size = finite(percent)
    level = 3 if size is None else 1 + sum(abs(size) >= at for at in _LEVELS[1:])
    return Square(text="x1k+" if size is None else short(size), verdict=row.verdict, level=level, told=told)


def _line(name: str, number: int, sweep: SweepTable) -> Line:
    steps = {step.first: step.effect_percent for step in sweep.source.steps}
    values = [v for point in sweep.source.points if point.state == "ok" and (v := finite(point.value)) is not None]
    change = short(100.0 * (values[-1] / values[0] - 1)) if len(values) > 1 and values[0] > 0 else ""
    if len(values) > 1 and values[0] == values[-1]:  # of two steps one may have taken the other back
        change = "."
    squares = tuple(_square(row, steps.get(row.kernel)) for row in sweep.rows[1:])
    if sweep.source.whole is not None:
        change = "?"
    elif not steps and change:  # nothing was decided on the way, or only that nothing changed
        moved = change not in (".", "+.01", "-.01")
        change = "?" if moved and any(square.text == "?" for square in squares) else "."
    return Line(
        name=name,
        number=number,
        squares=squares,
        change=change,
        largest=max(map(abs, steps.values()), default=0.0),
        weight=max(map(size, steps.values()), default=0.0),
    )


def _versions(labels: Sequence[str]) -> tuple[str, ...]:
    """Releases where they tell the versions apart, else their labels."""
    found = [match[1] for label in labels if (match := _RELEASE.match(label))]
    return tuple(found) if len(set(found)) == len(labels) else tuple(labels)


def heat_maps(sweeps: Sequence[SweepTable]) -> tuple[HeatMap, ...]:
    """A map for each suite and metric, in the order of the sweeps; none where there are only a few."""
    if len(sweeps) < MANY:
        return ()
    groups: dict[tuple[str, str, tuple[str, ...]], list[Line]] = {}
    for number, sweep in enumerate(sweeps):
        title, _, metric = sweep.title.rpartition(": ")
        suite, slash, name = title.partition("/")
        versions = tuple(row.kernel for row in sweep.rows)
        key = (suite if slash else "", metric, versions)
        groups.setdefault(key, []).append(_line(name if slash else title, number, sweep))
    return tuple(
        HeatMap(
            title=f"{suite}: {metric}" if suite else metric,
            first=short_names[0],
            versions=short_names[1:],
            lines=shown,
            still=still,
        )
        for (suite, metric, versions), lines in groups.items()
        if (short_names := _versions(versions))
        for shown, still in (_folded(lines),)
    )


def _folded(lines: Sequence[Line]) -> tuple[tuple[Line, ...], tuple[Line, ...]]:
    """What a reader sees first, and what of many lines has nothing to see."""
    if len(lines) < LONG:
        return tuple(lines), ()
    moved = sorted((line for line in lines if not line.still), key=lambda line: -line.weight)
    return tuple(moved), tuple(line for line in lines if line.still)


def largest(sweeps: Sequence[SweepTable]) -> list[tuple[str, SweepRow]]:
    """The steps that change most, largest first, each with the title of its sweep."""
    sizes = [
        (size(step.effect_percent), sweep.title, row)
        for sweep in sweeps
        for step in sweep.source.steps
        for row in sweep.rows
        if row.kernel == step.first and row.change
    ]
    sizes.sort(key=lambda one: -one[0])
    return [(title, row) for _, title, row in sizes[:LARGEST]]


def _panels(count: int, room: int) -> Iterable[slice]:
    each = max(1, room // _SQUARE)
    return (slice(start, start + each) for start in range(0, count, each))


def lines_of(one: HeatMap, width: int = WIDTH, whole: bool = False) -> list[str]:
    """A map as text: a line for each case; many versions wrap into panels. Of many lines, unless ``whole``, the rest
    are names."""
    long = bool(one.still) or len(one.lines) >= LONG
    shown = one.lines if whole or not long else one.lines[:_MOST]
    name = min(_name_most(width, len(one.versions)), max(map(cell_len, [one.title, *(line.name for line in shown)])))
    lines: list[str] = []
    fits = cell_len(one.title) <= name  # else it has a line of its own
    for panel in _panels(len(one.versions), width - name - _SQUARE):
        last = panel.stop >= len(one.versions)
        lines += [""] if lines else []
        lines += [] if fits or lines else [one.title]
        heads = [*one.versions[panel], *(["all"] if last else [])]
        lines.append(_name(one.title if fits else "", name) + "".join(_right(text) for text in heads))
        lines.append(rule(name + _SQUARE * len(heads), width))
        for line in shown:
            squares = [square.text for square in line.squares[panel]]
            body = "".join(_right(text) for text in [*squares, *([line.change] if last else [])])
            lines.append((_name(line.name, name) + body).rstrip())
    rest = one.lines[len(shown) :]
    if rest:
        most = max(line.largest for line in rest)
        sizes = f", with steps of at most {most:.2g} %" if finite(most) is not None else ""
        what = f"{len(rest)} more{sizes} (--causes shows their lines)"
        lines += ["", *_names(what, rest, width)]
    if one.still:
        lines += ["", *_names(f"As before on all versions ({len(one.still)})", one.still, width)]
    return lines


def _name_most(width: int, versions: int) -> int:
    """The longest name that is shown whole: what the squares leave, and no less than a third where they wrap."""
    return max(min(_NAME_MOST, width // 3), width - _SQUARE * (versions + 1))


def _names(what: str, lines: Sequence[Line], width: int) -> list[str]:
    return wrap(f"{what}: {', '.join(line.name for line in lines)}", min(width, PROSE), then="  ")


def _name(text: str, width: int) -> str:
    return pad(ends(text, width), width)


def _right(text: str) -> str:
    return pad(fit(text, _SQUARE - 1), _SQUARE, right=True)


def sweeps_as_text(sweeps: Sequence[SweepTable], width: int = WIDTH, whole: bool = False) -> list[str]:
    """All maps, what their squares mean, and the largest steps with their functions."""
    lines: list[str] = []
    for one in heat_maps(sweeps):
        lines += [
            *lines_of(one, width, whole),
            *([""] if one.still else []),
            *wrap(f"From {one.first} on: {KEY}.", min(width, PROSE)),
            "",
        ]
    width = min(width, PROSE)
    lines += [*wrap("The largest steps (--format html, markdown and json have all)", width), rule(0, width)]
    for title, row in largest(sweeps):
        lines += wrap(f"{title}, {row.kernel}: {row.change} {row.mark}".rstrip(), width, then="    ")
        lines += wrap(row.sentence, width, first="      ", then="        ") if row.sentence else []
    return [*lines, ""]

# SPDX-License-Identifier: GPL-2.0-or-later
"""What crosses between CPUs over their number, drawn: a curve for each kernel, and one for each line that grows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from kdelta.attribution.exact import TRANSFERS, WAITS
from kdelta.report import html, svg
from kdelta.report.charts import Figure, value_axis
from kdelta.report.scrub import clip
from kdelta.results.crossing import Growing, Step

_TITLES = {TRANSFERS: "transfers", WAITS: "locks found taken", "instructions": "instructions"}
_NAME = 40

Curve = tuple[str, list[tuple[int, float]]]  # its name, and (CPUs, figure)


def _figure(name: str, title: str, caption: str, curves: Sequence[Curve]) -> Figure | None:
    """Curves over the number of CPUs; None where none has a figure."""
    curves = [(label, points) for label, points in curves if points]
    if not curves:
        return None
    cpus = sorted({n for _, points in curves for n, _ in points})
    area = svg.canvas(name, title, f"{cpus[0]} to {cpus[-1]} CPUs: {', '.join(label for label, _ in curves)}.", 280)
    scale = value_axis(area, [value for _, points in curves for _, value in points], "", zero=True)
    last = cpus[-1] + (0 if cpus[-1] > cpus[0] else 1)
    across = svg.Scale(cpus[0], last, area.left + 14, area.right - 14, log=cpus[-1] > 8 * cpus[0])
    svg.axis_x(area, [(across(n), str(n)) for n in cpus], "CPUs")
    for index, (_, points) in enumerate(curves):
        svg.polyline(area, [(across(n), scale(value)) for n, value in points], index)
    known = [dict(points) for _, points in curves]
    labels = tuple(clip(label, _NAME) for label, _ in curves)
    cells = [tuple(f"{one[n]:.5g}" if n in one else "-" for one in known) for n in cpus]
    return Figure(
        name=name,
        title=title,
        caption=caption,
        markup=area.markup(),
        header=("CPUs", *labels),
        rows=tuple((str(n), *row) for n, row in zip(cpus, cells, strict=True)),
        series=labels,
    )


def _of_metric(case: str, metric: str, steps: Sequence[Step], number: int) -> Figure | None:
    kernels = list(dict.fromkeys(step.kernel for step in steps))
    curves = [
        (kernel, [(s.cpus, s.figures[metric]) for s in steps if s.kernel == kernel and metric in s.figures])
        for kernel in kernels
    ]
    title = f"{case}: {_TITLES[metric]} per operation"
    return _figure(f"m{number}", title, "The median of all seeds, for each number of CPUs.", curves)


def _of_lines(case: str, steps: Sequence[Step], grows: Sequence[Growing], number: int) -> list[Figure | None]:
    """The lines that grow, a figure for each kernel."""
    found: list[Figure | None] = []
    for kernel, mine in groupby(grows, key=lambda one: one.kernel):
        counted = [step for step in steps if step.kernel == kernel]
        curves = [(g.line, [(s.cpus, v) for s, v in zip(counted, g.transfers, strict=True)]) for g in mine]
        title = f"{case}: lines that grow, {kernel}"
        caption = "Transfers per operation of the lines that grow most with the number of CPUs."
        found.append(_figure(f"l{number}-{len(found)}", title, caption, curves))
    return found


def figures(found: Sequence[Step], grows: Sequence[Growing]) -> list[Figure]:
    """All that can be drawn of ``found``; of several lengths of turns the first that each number of CPUs has."""
    first = list({(s.case, s.kernel, s.cpus): s for s in reversed(found)}.values())[::-1]
    one_turn = len(first) == len(found)
    drawn: list[Figure | None] = []
    for number, case in enumerate(dict.fromkeys(step.case for step in first)):
        steps = [step for step in first if step.case == case]
        drawn += (_of_metric(case, metric, steps, 10 * number + at) for at, metric in enumerate(_TITLES))
        if one_turn:
            drawn += _of_lines(case, steps, [one for one in grows if one.case == case], number)
    return [figure for figure in drawn if figure is not None]


def render(title: str, text: str, found: Sequence[Step], grows: Sequence[Growing]) -> str:
    """The whole page: it needs nothing else, and runs no script."""
    template = html.environment().get_template("crossing.html")
    return template.render(title=title, text=text, figures=figures(found, grows))

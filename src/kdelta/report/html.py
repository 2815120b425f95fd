# SPDX-License-Identifier: GPL-2.0-or-later
"""The report as one HTML page that needs nothing else: no script, no network, charts inline, under 3 MB.

The page's policy forbids it to load or run anything, whatever a kernel is called. The template escapes every text.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from kdelta.report import flame_page, flow
from kdelta.report.charts import Figure, boots, intervals
from kdelta.report.curves import distribution, functions, scaling, sweep
from kdelta.report.heatmap import ALL, MANY, SIGNS, heat_maps, largest
from kdelta.report.registry import Format
from kdelta.report.view import View
from kdelta.results.types import CellPoints

if TYPE_CHECKING:
    from jinja2 import Environment

# A page stays small and quick whatever the store holds: boots beyond this are thinned, and the figure says so.
MAX_POINTS = 12_000
MAX_FIGURES = 80


def steps(view: View) -> list[Figure]:
    """The charts of its sweeps, which are the answer to one; [] where a map shows what hundreds of charts would."""
    drawn = [sweep(table, number) for number, table in enumerate(view.sweeps if len(view.sweeps) < MANY else ())]
    return [figure for figure in drawn if figure is not None]


def _figures(view: View) -> Iterator[Figure | None]:
    detail = view.detail
    for number, difference in enumerate(detail.functions):
        yield functions(difference, number)
    for number, stacks in enumerate(detail.stacks):
        yield flame_page.figure(stacks, number, flame_page.MOST_FRAMES // len(detail.stacks))
    for number, lines in enumerate(detail.moved):
        yield flow.figure(lines, number)
    shown = _shown_points(view)
    labels = [kernel.label for kernel in view.result.experiment.kernels]
    for number, cell in enumerate(shown):
        yield boots(cell, labels, number, MAX_POINTS // len(shown))
    for number, item in enumerate(detail.distributions):
        yield distribution(item, number)
    for number, curve in enumerate(detail.scaling):
        yield scaling(curve, number)


def _shown_points(view: View) -> list[CellPoints]:
    """Boots of the metrics that the tables show; of a sweep those in times, because exact counts repeat."""
    shown = {(c.case, c.cgroup, c.mitigations, c.metric) for c in (cell.source for _, _, cell in view.cells())}
    if view.result.experiment.mode == "timed":
        shown |= {(s.cell.case, s.cell.cgroup, s.cell.mitigations, s.cell.metric) for s in view.detail.sweeps}
    return [
        item
        for item in view.detail.points
        if view.options.all_metrics
        or (item.cell.case, item.cell.cgroup, item.cell.mitigations, item.cell.metric) in shown
    ]


@cache
def environment() -> Environment:
    """Of the pages: every text is escaped."""
    # Here, because the other formats and --help must not pay for the import.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("kdelta.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(view: View) -> str:
    """The whole page."""
    drawn = intervals(view)
    figures = [figure for figure in _figures(view) if figure is not None]
    left_out = max(0, len(figures) - MAX_FIGURES)
    template = environment().get_template("report.html")
    return template.render(
        view=view,
        drawn=drawn,
        charts=steps(view),
        maps=heat_maps(view.sweeps),
        largest=largest(view.sweeps),
        signs=(*SIGNS, ALL),
        figures=figures[:MAX_FIGURES],
        left_out=left_out,
    )


FORMAT = Format(name="html", suffix=".html", render=render, help="one self-contained page with charts")

# SPDX-License-Identifier: GPL-2.0-or-later
"""The differential flame graph of a page that is alone: it zooms by style rules, and the browser's search finds names.

A frame is a link to a hidden mark of its own. While that is the page's target, a rule gives the graph the frame's place
as ``--x`` and ``--k``, from which all frames have their edges: what lies beside it has no width then, its callers have
all of it. Browsers without ``:has()`` (before 2024) show the graph as it is at first.
"""

from __future__ import annotations

from xml.etree import ElementTree as ET

from kdelta.attribution import stack_diff
from kdelta.report import flame, parted
from kdelta.report.charts import Figure, full_name
from kdelta.report.figures import drawable, each
from kdelta.report.scrub import clean
from kdelta.results.types import StackDiff

MOST_FRAMES = 4000  # of all graphs of a page: some 1.6 MB
_LEAST = 0.0002  # of the width; twice as wide as that is seen where a fiftieth of the graph is enlarged


def _shown(root: stack_diff.Frame, most: int) -> tuple[list[flame.Place], int]:
    """(the widest frames row by row, each with all its callers, how many were left out)."""
    found = list(flame.places(root))
    ranked = sorted((place for place in found if place.wide >= _LEAST), key=lambda place: (-place.wide, place.row))
    shown = sorted(ranked[:most], key=lambda place: (place.row, place.left))
    return shown, len(found) - len(shown)


def _frame(into: ET.Element, place: flame.Place, mark: str, per: str) -> None:
    frame = place.frame
    percent = f"{100 * flame.strength(frame):.0f}%"
    edges = f"--l:{100 * place.left:.5g};--w:{100 * place.wide:.4g};--d:{place.row};--p:{percent}"
    link = ET.SubElement(into, "a", {"class": flame.way(frame), "href": f"#{mark}", "style": edges})
    link.set("title", flame.tells(frame, per))
    if figure := flame.change(frame):
        link.set("data-change", figure)
    if place.wide < flame.BY_KEYS:
        link.set("tabindex", "-1")
    link.text = clean(frame.name)


def figure(item: StackDiff, number: int, most: int = MOST_FRAMES) -> Figure | None:
    """The graph of one case on two kernels; None where nothing was counted. At most ``most`` frames."""
    root = stack_diff.compared(item.before, item.after)
    if not root.width or drawable(root.width) is None:
        return None
    shown, narrow = _shown(root, most)
    name, per = f"flame{number}", clean(each(item.unit))
    graph = ET.Element("div", {"class": "stacks", "id": f"{name}-graph", "role": "group"})
    title = f"Call stacks: {full_name(item.cell)}, {item.baseline_label} to {item.patched_label}"
    graph.set("aria-label", title)
    graph.set("style", f"--rows:{1 + max(place.row for place in shown)}")
    rules = []
    for place, mark in ((place, f"{name}-{index}") for index, place in enumerate(shown)):
        ET.SubElement(graph, "i", {"id": mark, "hidden": "hidden"})
        _frame(graph, place, mark, per)
        zoom = f"--x:{100 * place.left:.5g};--k:{1 / place.wide:.4g}"
        rules.append(f"#{name}-graph:has(#{mark}:target){{{zoom}}}")
    caption = (
        f"Kernel instructions per {per} by call stack, callers above. Red: costs more on {item.patched_label}; "
        "blue: costs less; grey: the same. The stronger the colour, the larger the part of it that changed; behind a "
        "name stands by how many instructions. Each call stack is as wide as on the kernel where it is dearer, a "
        "caller as wide as all of its stacks. A frame is a link that enlarges it; the uppermost shows all again. "
        f"The table: {parted.caption(per)}. "
        + (f"{flame.left_out(narrow)} " if narrow else "")
        + flame.lost(root, (item.baseline_label, item.patched_label), per)
    )
    return Figure(
        name=name,
        title=title,
        caption=caption,
        markup=ET.tostring(graph, encoding="unicode", method="html"),
        header=("Where the calls part", item.baseline_label, item.patched_label, "Change", "Calls", "Where"),
        rows=parted.rows(item.before, item.after),
        style="\n".join(rules[1:]),
        wide=True,
    )

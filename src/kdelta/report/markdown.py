# SPDX-License-Identifier: GPL-2.0-or-later
"""The report as GitHub-flavoured Markdown. Texts from outside are escaped: no HTML, links or markup of theirs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kdelta.report import effects
from kdelta.report.heatmap import KEY, HeatMap, heat_maps
from kdelta.report.registry import Format
from kdelta.report.text import note_numbers
from kdelta.report.view import Cell, SweepTable, Table, View

_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~$&])")


def escape(text: str) -> str:
    """``text`` as literal Markdown, also at the start of a line. Addresses and mentions do not become links."""
    escaped = re.sub(r"^(\s*)(\d+)([.)])", r"\1\2\\\3", _SPECIAL.sub(r"\\\1", text))
    escaped = re.sub(r"^(\s*)([-+=:])", r"\1\\\2", escaped)
    escaped = re.sub(r"(?<!\w)@", "@&#8203;", escaped)
    return re.sub(r"(?i)(https?|ftp|www)([:.])", r"\1&#8203;\2", escaped)


def _block(lines: Iterable[str]) -> list[str]:
    """A fenced block that nothing inside can close."""
    body = list(lines)
    longest = max((len(run) for line in body for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence, *body, fence]


def _grid(header: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    rule = ["---:" if index in right else "---" for index in range(len(header))]
    return [f"| {' | '.join(row)} |" for row in [header, rule, *rows]]


def _notes(numbers: Iterable[int]) -> str:
    """Numbers of notes, apart: two raised figures side by side are read as one."""
    shown = note_numbers(numbers)
    return f"<sup>{shown}</sup>" if shown else ""


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return ""
    mark = f" **{cell.mark}**" if cell.mark else ""
    return f"{escape(cell.figure)}{mark}{_notes(cell.notes)}"


def _table(table: Table, causes: bool) -> list[str]:
    rows: list[Sequence[str]] = []
    sentences: list[str] = []
    open_still: list[str] = []
    for group in table.groups:
        for row in group.rows:
            by_kernel = {cell.kernel: cell for cell in row.cells}
            cells = [_cell(by_kernel.get(kernel)) for kernel in table.kernels]
            rows.append([escape(group.title), escape(row.metric), escape(row.baseline), *cells])
            name = f"{escape(group.title)} {escape(row.metric)}"
            sentences += [f"- {name}: {escape(text)}" for text in row.aside]
            for cell in row.cells:
                if cell.sentence:
                    kernel = f" on {escape(cell.kernel)}" if cell.kernel else ""
                    (open_still if cell.open else sentences).append(f"- {name}{kernel}: {escape(cell.sentence)}")
    header = ["Case", "Metric", f"{escape(table.baseline)} (baseline)", *map(escape, table.kernels)]
    lines = _grid(header, rows, right=range(2, len(header)))
    lines += ["", *open_still] if open_still else []
    return [*lines, "", *_folded("Causes", sentences, causes), ""] if sentences else [*lines, ""]


def _folded(heading: str, lines: Sequence[str], unfolded: bool) -> list[str]:
    """Lines that a reader opens, or with ``unfolded`` the lines."""
    return [*lines] if unfolded else ["<details>", f"<summary>{heading}</summary>", "", *lines, "", "</details>"]


def _sweep(sweep: SweepTable) -> list[str]:
    rows = [
        [
            escape(row.kernel),
            escape(row.value),
            escape(row.change) + (f" **{row.mark}**" if row.mark else ""),
            escape(row.sentence),
        ]
        for row in sweep.rows
    ]
    return [f"### {escape(sweep.title)}", "", *_grid(["Kernel", "Value", "Step", "Because"], rows, right=(1, 2)), ""]


def _map(one: HeatMap) -> list[str]:
    header = [escape(one.title), *map(escape, one.versions), "all"]
    rows = [[escape(t) for t in (line.name, *(s.text for s in line.squares), line.change)] for line in one.lines]
    still = f"As before on all versions ({len(one.still)}): {', '.join(line.name for line in one.still)}"
    told = [*([escape(still), ""] if one.still else []), escape(f"From {one.first} on: {KEY}."), ""]
    return [*_grid(header, rows, right=range(1, len(header))), "", *told]


def _list(heading: str, texts: Sequence[str]) -> list[str]:
    return [f"## {heading}", "", *(f"- {escape(text)}" for text in texts), ""] if texts else []


def render(view: View) -> str:
    """Tables, then everything a reader must know beside them."""
    lines = [f"> **Gate:** {escape(view.gate)}", ""] if view.gate else []
    lines += [f"**{escape(view.headline.text)}**", ""] if view.headline.text else []
    lines += [f"# {escape(view.title)}", "", escape(view.summary) + _notes(view.general_notes), ""]
    lines += [*(f"- {escape(text)}" for text in view.looked), ""] if view.looked else []
    drawn = effects.figure(view)
    lines += [*_block(drawn), ""] if drawn else []
    for table in view.tables:
        lines += _table(table, view.options.causes)
    for one in heat_maps(view.sweeps):
        lines += _map(one)
    for sweep in view.sweeps:
        lines += _sweep(sweep)
    for calls in view.system_calls:
        rows = [[escape(cell) for cell in row] for row in calls.rows]
        lines += [
            f"### {escape(calls.title)}",
            "",
            *_grid([*map(escape, calls.header)], rows, right=range(1, len(calls.header))),
            "",
        ]
    lines += [escape(text) + "  " for text in view.legend] + [""]
    if view.footnotes:
        lines += ["## Notes", "", *(f"{n}. {escape(text)}" for n, text in enumerate(view.footnotes, 1)), ""]
    lines += _list("Kernels", [f"{label}: {text}" for label, text in view.kernels])
    lines += _list("How it was measured", view.measured)
    lines += ["## How to reproduce", ""] + ([*_block([view.command]), ""] if view.command else [])
    lines += [*(f"- {escape(text)}" for text in view.reproduce), ""]
    lines += _list("What was not measured", view.not_measured)
    lines += _list("Faulty boots", view.faulty)
    for name, told in view.legacy:
        lines += [f"## Legacy view {escape(name)} (does not decide)", "", *_block(told), ""]
    return "\n".join(lines).rstrip() + "\n"


FORMAT = Format(name="markdown", suffix=".md", render=render, help="GitHub-flavoured Markdown")

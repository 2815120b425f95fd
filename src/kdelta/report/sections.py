# SPDX-License-Identifier: GPL-2.0-or-later
"""The parts that plain-text reports share, in order: a heading and lines that fit the width."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from rich.cells import cell_len

from kdelta.model import CellResult
from kdelta.report import effects, heatmap, prose, system_calls
from kdelta.report.table import sweep_lines, table_lines
from kdelta.report.text import WIDTH, note_numbers, wrap, wrap_command
from kdelta.report.view import View, cell_title
from kdelta.units import counted
from kdelta.verdict import work

_EACH = 6  # results that are not decided, and named one by one where the same is said of them
_VERSIONS = 12  # lines on versions of a sweep that are not decided
_HIDES_LEAST = 0.01  # of the baseline's instructions


def bullets(texts: Iterable[str], width: int = WIDTH) -> list[str]:
    """Each text as ``- text``."""
    return [line for text in texts for line in wrap(text, width, first="- ")]


def opening(view: View, width: int = WIDTH) -> list[str]:
    """The gate above everything, the answer, the title, the counts, what of a patch is looked at, all effects drawn."""
    lines = [*wrap(f"GATE: {view.gate}", width), ""] if view.gate else []
    lines += [*wrap(view.headline.text, width), ""] if view.headline.text else []
    refs = f" [{note_numbers(view.general_notes)}]" if view.general_notes else ""
    looked = [line for text in view.looked for line in wrap(text, width)]
    drawn = effects.figure(view, width)
    lines += [*wrap(view.title, width), *wrap(view.summary + refs, width), ""]
    return [*lines, *looked, *([""] if looked else []), *drawn, *([""] if drawn else [])]


def tables(view: View, width: int = WIDTH) -> list[str]:
    """All tables and sweeps with an empty line after each."""
    lines: list[str] = []
    for table in view.tables:
        lines += [*table_lines(table, width, causes=view.options.causes), ""]
    if heatmap.heat_maps(view.sweeps):
        lines += heatmap.sweeps_as_text(view.sweeps, width, whole=view.options.causes)
    else:
        for sweep in view.sweeps:
            lines += [*sweep_lines(sweep, width, causes=view.options.causes), ""]
    for calls in view.system_calls:
        lines += [*system_calls.lines(calls, width), ""]
    said = view.headline.text.startswith("Nothing was measured")
    return lines or ([] if said else ["Nothing was measured.", ""])


def undecided(view: View) -> list[str]:
    """Of each cell that was measured and has no answer, why; what was not measured has a part of its own.

    What is the same of many is said once: of an experiment at its beginning, of every cell.
    """
    several = any(len(table.kernels) > 1 for table in view.tables)
    found: defaultdict[str, list[str]] = defaultdict(list)
    for group, row, cell in view.cells():
        if cell.open and cell.sentence and cell.kernel and cell.source.state == "ok":
            metric = f", {row.metric}" if len(group.rows) > 1 else ""
            found[cell.sentence].append(f"{group.title}{metric}" + (f" on {cell.kernel}" if several else ""))
    return _once(found)


def _once(found: Mapping[str, list[str]]) -> list[str]:
    """``WHERE: SENTENCE``, ``found`` by sentence."""
    lines = []
    for sentence, where in found.items():
        told = [f"{len(where)} results"] if len(where) > _EACH else where
        lines += [f"{one}: {sentence}" for one in told]
    return lines


def unseen(view: View) -> list[str]:
    """Of each version of a sweep at which it is not decided whether it is a step, why, where no table says so."""
    mapped = bool(heatmap.heat_maps(view.sweeps))  # has a sign alone
    metrics = {sweep.source.cell.metric for sweep in view.sweeps}
    found: defaultdict[str, list[str]] = defaultdict(list)
    for sweep in view.sweeps:
        metric = f", {sweep.source.cell.metric}" if len(metrics) > 1 else ""
        for row in sweep.rows:
            if row.unseen and not row.change and (mapped or not row.sentence):
                found[row.unseen].append(f"{cell_title(sweep.source.cell)}{metric} on {row.kernel}")
    lines = _once(found)
    if view.options.causes or len(lines) <= _VERSIONS:
        return lines
    return [*lines[: _VERSIONS - 1], f"{len(lines) - _VERSIONS + 1} more (--causes)"]


def _hides(cell: CellResult) -> bool:
    """Whether string instructions moved so much more or less that, as one for each 8 bytes, they change the count.

    Of one kernel alone, whether all that they moved is as much.
    """
    before, after = (cell.extra.get(f"rep_bytes_{side}") for side in ("baseline", "patched"))
    after = after if cell.patched_label else 0.0
    if before is None or after is None or not cell.baseline:
        return before != after
    return abs(after - before) / work.WORD_BYTES >= _HIDES_LEAST * cell.baseline


def beside_counts(view: View) -> list[str]:
    """What a count of instructions hides, where that is as much as counts, and the cases that met no contention."""
    alone, lines, less = [], [], set[str]()
    for group in (group for table in view.tables for group in table.groups):
        for row in group.rows:
            if prose.UNCONTENDED in row.aside:
                alone.append(group.title)
            told = [text for text in row.aside if text != prose.UNCONTENDED]
            if any(_hides(cell.source) for cell in row.cells):
                lines += [f"{group.title}: {text}" for text in told]
            elif told:
                less.add(group.title)
    if lines and less:
        others = counted(len(less), "other case")
        so = "are" if prose.single(view.result.experiment) else "changed by"
        lines.append(f"REP bytes of {others} {so} less than 1 % of the instructions (--causes)")
    return [*lines, *([f"{', '.join(dict.fromkeys(alone))}: {prose.UNCONTENDED}"] if alone else [])]


def notes(view: View, width: int = WIDTH) -> list[str]:
    """Numbered footnotes."""
    lines: list[str] = []
    for number, text in enumerate(view.footnotes, 1):
        lines += wrap(text, width, first=f"[{number}] ")
    return lines


def kernels(view: View, width: int = WIDTH) -> list[str]:
    """What each label stands for."""
    return [line for label, text in view.kernels for line in wrap(f"{label}: {text}", width, first="- ")]


def reproduce(view: View, width: int = WIDTH) -> list[str]:
    """The command, pasteable, and what stands beside it."""
    return [*(wrap_command(view.command, width) if view.command else []), *bullets(view.reproduce, width)]


def legacy(view: View, width: int = WIDTH) -> list[tuple[str, list[str]]]:
    """Other tools' views, each labelled as not deciding."""
    title = "Legacy view {} (does not decide)"
    return [
        (title.format(name), [line for text in texts for line in wrap_fixed(text, width)])
        for name, texts in view.legacy
    ]


def wrap_fixed(text: str, width: int) -> list[str]:
    """A line that was laid out elsewhere: kept as it is, broken only where it is too long."""
    return [text.rstrip()] if cell_len(text) <= width else wrap(text.strip(" "), width, then="    ")


def parts(view: View, width: int = WIDTH) -> list[tuple[str, list[str]]]:
    """(heading, lines) of everything after the tables; parts without lines are left out."""
    drawn = tuple(filter(None, (effects.legend(view, width),)))
    legend = view.legend if view.tables or view.sweeps else ()
    found = [
        ("Not decided", bullets([*([] if view.options.causes else undecided(view)), *unseen(view)], width)),
        ("Beside the counts", [] if view.options.causes else bullets(beside_counts(view), width)),
        ("Legend", [line for text in (*legend, *drawn) for line in wrap(text, width)]),
        ("Notes", notes(view, width)),
        ("Kernels", kernels(view, width)),
        ("How it was measured", bullets(view.measured, width)),
        ("How to reproduce", reproduce(view, width)),
        ("What was not measured", bullets(view.not_measured, width)),
        ("Faulty boots", bullets(view.faulty, width)),
        *legacy(view, width),
    ]
    return [(heading, lines) for heading, lines in found if lines]

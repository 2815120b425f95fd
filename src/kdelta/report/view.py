# SPDX-License-Identifier: GPL-2.0-or-later
"""The one view model: what every format shows, already in words. Formats only lay it out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kdelta.model import UNBOOTED, CellResult, ExperimentResult, State, Warn, Word
from kdelta.report import behind, called, ended, headline, looked, prose, system_calls, uncrossed
from kdelta.report.figures import absolute, change, interval
from kdelta.report.headline import Headline
from kdelta.report.legend import legend
from kdelta.report.scrub import Scrubber
from kdelta.report.sentences import sentence
from kdelta.report.system_calls import CallTable
from kdelta.results.types import CellName, Detail, LegacyLine, Sweep, SweepPoint, SweepStep, case_key, primary
from kdelta.units import finite
from kdelta.verdict import ended_alone
from kdelta.verdict.warnings import UNDECIDABLE
from kdelta.verdict.words import MOST_BOOTS

MARKS: dict[Word, str] = {"improved": "(I)", "regressed": "(R)", "same": "=", "inconclusive": "?"}


class Options(Struct, frozen=True, kw_only=True):
    """What the reader asked for."""

    all_metrics: bool = False
    origin: str = "kdelta"  # the CI system that submits to KCIDB
    causes: bool = False  # say of each row in place because of what; else where a reader asks


class Cell(Struct, frozen=True, kw_only=True):
    """One patched kernel against the baseline, in words."""

    kernel: str
    effect: str  # "+4.20 %"; the figure itself where the baseline has none, the state's name where there is none here
    interval: str
    mark: str
    sentence: str  # stands beneath the row: because, what was missing, what would decide
    notes: tuple[int, ...]
    source: CellResult

    @property
    def verdict(self) -> str:
        """The verdict's word, the state where there is none, or "descriptive"."""
        return ended.word(self.source)

    @property
    def open(self) -> bool:
        """Whether it has no answer: its sentence says what a reader must know, not what an answer is because of."""
        return self.source.state != "ok" or self.source.verdict in (None, "inconclusive")

    @property
    def figure(self) -> str:
        """Effect and interval as one text."""
        return f"{self.effect} {self.interval}".rstrip()


class Row(Struct, frozen=True, kw_only=True):
    """One metric: the baseline's figure and one cell per patched kernel."""

    metric: str
    baseline: str
    cells: tuple[Cell, ...]
    aside: tuple[str, ...] = ()
    explains: bool = False  # counts beside times, which decide nothing


class Group(Struct, frozen=True, kw_only=True):
    """One case with its rows."""

    title: str
    rows: tuple[Row, ...]


class Table(Struct, frozen=True, kw_only=True):
    """All cases against one baseline. ``kernels`` is ("",) when only one kernel was measured."""

    baseline: str
    kernels: tuple[str, ...]
    groups: tuple[Group, ...]


class SweepRow(Struct, frozen=True, kw_only=True):
    """One version; ``change`` is set where a step arrives.

    ``verdict`` is the step's word; without a step "first" or "as before", or "descriptive" where none was detectable;
    without a figure the state, or "left out" for a version that could not be built or fetched.
    """

    kernel: str
    value: str
    verdict: str
    measured: bool = True
    change: str = ""
    mark: str = ""
    sentence: str = ""
    unseen: str = ""  # why no step was detectable here; the report says it once for all versions


class SweepTable(Struct, frozen=True, kw_only=True):
    """One case and metric over versions, oldest first as given."""

    title: str
    rows: tuple[SweepRow, ...]
    source: Sweep


class View(Struct, frozen=True, kw_only=True):
    """Everything a report shows. Every text in it is clean (see scrub.py)."""

    title: str
    gate: str
    headline: Headline  # the answer; its text is "" where nothing was measured
    looked: tuple[str, ...]  # above the tables: what of a patch the cases execute, and what not
    summary: str
    tables: tuple[Table, ...]
    sweeps: tuple[SweepTable, ...]
    system_calls: tuple[CallTable, ...]
    kernels: tuple[tuple[str, str], ...]  # label, what it is
    legend: tuple[str, ...]
    measured: tuple[str, ...]
    command: str
    reproduce: tuple[str, ...]
    not_measured: tuple[str, ...]
    faulty: tuple[str, ...]
    footnotes: tuple[str, ...]  # number 1 first
    general_notes: tuple[int, ...]
    legacy: tuple[tuple[str, tuple[str, ...]], ...]  # name of the view, its lines
    result: ExperimentResult
    detail: Detail
    options: Options

    def cells(self, explaining: bool = False) -> Iterable[tuple[Group, Row, Cell]]:
        """All cells that answer, in the order of the tables; with ``explaining`` also counts that explain times."""
        for group in (group for table in self.tables for group in table.groups):
            for row in (row for row in group.rows if explaining or not row.explains):
                yield from ((group, row, cell) for cell in row.cells)


class _Notes:
    """Numbers footnotes in order of appearance, one per distinct text."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def refer(self, warnings: Iterable[Warn]) -> tuple[int, ...]:
        numbers = {self.numbers.setdefault(sentence(warning), len(self.numbers) + 1) for warning in warnings}
        return tuple(sorted(numbers))


def _because(item: CellResult | SweepStep, metric: str) -> str:
    text = behind.text(metric, item.because, item.because_line)  # the effect stands in the row already
    return f"because {text}" if text else ""


def _legacy(line: LegacyLine) -> str:
    return line.text + "".join(f" ({sentence(warning)})" for warning in line.warnings)


def _sentence(cell: CellResult) -> str:
    if cell.state != "ok":
        return ended.why(cell)
    if cell.verdict is None:
        reason = f": {cell.why}" if cell.why else ""
        if (alone := ended_alone(cell)) is not None:
            return f"{alone} in some boots of {cell.patched_label} alone: no verdict"
        if cell.patched_label:
            return f"descriptive only, no verdict{reason}"
        spread = finite(cell.extra.get("spread_percent"))
        told = f"spread over {cell.boots[0]} boots {spread:.2f} %" if spread is not None and cell.boots[0] > 1 else ""
        return "; ".join(filter(None, [cell.why, told]))
    open_still = _undecided(cell) if cell.verdict == "inconclusive" else []
    text = "; ".join(filter(None, [*open_still, cell.why, _because(cell, cell.metric)]))
    return f"{cell.verdict}: {text}" if text else ""


def _undecided(cell: CellResult) -> list[str]:
    """Why a cell is inconclusive and what would decide it: boots, or nothing that boots can tell."""
    mixed = [sentence(warning) for warning in cell.warnings if isinstance(warning, UNDECIDABLE)]
    if mixed:
        return mixed
    seen, boots = finite(cell.detectable_percent), cell.boots_needed
    parts = [f"minimum detectable effect {seen:.2f} %"] if seen is not None else []
    if boots and boots >= MOST_BOOTS:
        parts.append(f"{MOST_BOOTS} fresh boots per kernel would not decide")
    elif boots:
        parts.append(f"{boots} fresh boots per kernel would decide")
    return parts


def _checked(cell: CellResult) -> CellResult:
    """A cell that claims to be measured but holds no number is a failed one: null with a state, never a figure."""
    figures = [cell.baseline, cell.patched, cell.effect_percent, *(cell.interval_percent or ())]
    if cell.state == "ok" and any(value is not None and finite(value) is None for value in figures):
        return replace(cell, state="failed", verdict=None, why=cell.why or "the value is not a finite number")
    return cell


def _cell(cell: CellResult, exact: bool, notes: _Notes) -> Cell:
    measured = cell.state == "ok"
    decided = cell.verdict in ("improved", "regressed")
    told = change(cell.effect_percent, cell.baseline, cell.patched, called=decided)
    return Cell(
        kernel=cell.patched_label,
        effect=(told if cell.patched_label else "") if measured else ended.after(cell),  # one has nothing to compare
        interval=interval(cell.interval_percent, exact and bool(cell.extra.get("fact", True))) if measured else "",
        mark=MARKS[cell.verdict] if cell.verdict and measured else "",
        sentence=_sentence(cell),
        notes=notes.refer(w for w in cell.warnings if not (measured and isinstance(w, UNDECIDABLE))),
        source=cell,
    )


def cell_title(cell: CellResult | CellName) -> str:
    """The case with its cgroup and mitigations, where they are not the usual ones."""
    memcg = " (memcg)" if cell.cgroup == "child" and "(memcg)" not in cell.case else ""
    return cell.case + memcg + (" (mitigations=off)" if cell.mitigations == "off" else "")


def _titles(results: Iterable[CellResult]) -> dict[tuple[object, ...], str]:
    """One title per case; parameters tell apart the cases that would share one."""
    params: dict[str, list[dict[str, str]]] = {}
    for cell in results:
        seen = params.setdefault(cell_title(cell), [])
        if cell.params not in seen:
            seen.append(cell.params)
    titles = {}
    for cell in results:
        title = cell_title(cell)
        others = params[title]
        differing = sorted(k for k in cell.params if any(p.get(k) != cell.params[k] for p in others))
        suffix = "".join(f" {key}={cell.params[key]}" for key in differing)
        titles[case_key(cell)] = title + suffix
    return titles


def _row(cells: list[CellResult], exact: bool, cpus: int, notes: _Notes, explaining: frozenset[int]) -> Row:
    first, explains = cells[0], id(cells[0]) in explaining
    exact = exact or explains
    return Row(
        metric=first.metric,
        baseline=ended.before(cells),
        cells=tuple(_cell(cell, exact, notes) for cell in cells),
        aside=prose.asides(cells, exact, cpus),
        explains=explains,
    )


def _tables(
    results: list[CellResult], counts: Sequence[CellResult], exact: bool, cpus: int, notes: _Notes
) -> tuple[Table, ...]:
    """``counts`` stand below what they explain."""
    titles = _titles(results)
    explaining = frozenset(map(id, counts))
    tree: dict[str, dict[str, dict[str, list[CellResult]]]] = {}
    for cell in (*results, *(cell for cell in counts if case_key(cell) in titles)):
        metrics = tree.setdefault(cell.baseline_label, {}).setdefault(titles[case_key(cell)], {})
        metrics.setdefault(cell.metric, []).append(cell)
    tables = []
    for baseline, cases in tree.items():
        groups = [
            Group(title=title, rows=tuple(_row(cells, exact, cpus, notes, explaining) for cells in metrics.values()))
            for title, metrics in cases.items()
        ]
        seen = {c.kernel: None for g in groups for r in g.rows for c in r.cells}
        tables.append(Table(baseline=baseline, kernels=tuple(seen), groups=tuple(groups)))
    return tuple(tables)


def _point_state(point: SweepPoint) -> State:
    return "failed" if point.state == "ok" and finite(point.value) is None else point.state


def _gap_row(point: SweepPoint, is_kernel: bool) -> SweepRow:
    state = _point_state(point)
    why = point.why or ("the value is not a finite number" if point.state == "ok" else "")
    value = "not yet" if why == UNBOOTED else state
    verdict = state if is_kernel else "left out"
    return SweepRow(kernel=point.kernel, value=value, verdict=verdict, measured=False, sentence=why)


def _level_row(point: SweepPoint, sweep: Sweep, is_first: bool) -> SweepRow:
    unseen = None if is_first else point.unseen
    return SweepRow(
        kernel=point.kernel,
        value=absolute(point.value, sweep.unit, sweep.cell.metric),
        verdict="first" if is_first else "descriptive" if unseen else "as before",
        mark=MARKS["inconclusive"] if point.undecided and unseen else "",
        sentence=sentence(unseen) if isinstance(unseen, UNDECIDABLE) else "",
        unseen="" if unseen is None else sentence(unseen),
    )


def _step_row(point: SweepPoint, sweep: Sweep, step: SweepStep) -> SweepRow:
    told = _because(step, sweep.cell.metric) or prose.levels(step, sweep)
    return SweepRow(
        kernel=point.kernel,
        value=absolute(point.value, sweep.unit, sweep.cell.metric),
        verdict=step.verdict or "descriptive",
        change=change(finite(step.effect_percent), step.baseline, step.patched, called=step.verdict is not None),
        mark=MARKS[step.verdict] if step.verdict else "step",
        sentence="; ".join(filter(None, (told, prose.moved(step, sweep)))),
    )


def _sweep(sweep: Sweep, kernels: frozenset[str]) -> SweepTable:
    """``kernels``: the labels of those that were there to be measured; other versions are absent."""
    steps = {step.first: step for step in sweep.steps}
    rows: list[SweepRow] = []
    for point in sweep.points:
        step = steps.get(point.kernel)
        if _point_state(point) != "ok":
            rows.append(_gap_row(point, point.kernel in kernels))
        elif step is not None:
            rows.append(_step_row(point, sweep, step))
        else:
            rows.append(_level_row(point, sweep, is_first=not any(row.measured for row in rows)))
    return SweepTable(title=f"{cell_title(sweep.cell)}: {sweep.cell.metric}", rows=tuple(rows), source=sweep)


def _shown(result: ExperimentResult, detail: Detail, options: Options) -> list[CellResult]:
    """The cells that the tables show: primary metrics (all where a case has none), and no sweep twice."""
    swept = {(s.cell.case, s.cell.cgroup, s.cell.mitigations, s.cell.metric) for s in detail.sweeps}
    if not result.experiment.in_steps:
        swept = set()
    return [
        cell
        for cell in (result.results if options.all_metrics else primary(result.results))
        if (cell.case, cell.cgroup, cell.mitigations, cell.metric) not in swept
    ]


def _headline(result: ExperimentResult, tables: Iterable[Table], sweeps: Sequence[SweepTable]) -> Headline:
    exact, unfinished = result.experiment.mode == "exact", prose.missing(result) > 0
    said = ended.complaints(result.warnings)
    if sweeps:
        labels = [kernel.label for kernel in result.experiment.kernels]
        found = [(cell_title(s.source.cell), s.source) for s in sweeps]
        return headline.of_sweeps(found, labels, exact, unfinished, said)
    if prose.nothing(result):
        return Headline(nothing=looked.nothing(result.experiment.annotations.looked))
    groups = (group for table in tables for group in table.groups)
    rows = [(g.title, cell.source) for g in groups for row in g.rows if not row.explains for cell in row.cells]
    said = ended.panics([cell for _, cell in rows]) | said
    unseen, beside = looked.unseen(result.experiment.annotations.looked), (*result.counts, *result.results)
    return headline.of_cells(rows, exact, unfinished, said, unseen, [(cell_title(cell), cell) for cell in beside])


def build(result: ExperimentResult, detail: Detail | None = None, options: Options | None = None) -> View:
    """Turn a result, and what may be drawn beside it, into the view that all formats render. Pure.

    Texts are made harmless here, once; a cell whose figures are not finite becomes a failed one.
    """
    scrubber = Scrubber()
    result = scrubber.struct(result)
    result = replace(result, results=tuple(map(_checked, result.results)), counts=tuple(map(_checked, result.counts)))
    detail = scrubber.struct(detail or Detail())
    options = options or Options()
    exact = result.experiment.mode == "exact"
    notes = _Notes()
    shown = _shown(result, detail, options)
    tables = called.below(_tables(shown, result.counts, exact, result.experiment.machine.smp, notes), detail.stacks)
    general = notes.refer(w for w in result.warnings if not uncrossed.is_told(w))
    experiment = result.experiment
    labels = frozenset(kernel.label for kernel in experiment.kernels)
    sweeps = tuple(_sweep(sweep, labels) for sweep in detail.sweeps)
    return View(
        title=prose.title(result),
        gate=result.gate,
        headline=replace(
            _headline(result, tables, sweeps),
            unequal=headline.unequal(result.warnings),
            uncrossed=uncrossed.sentence(experiment),
            searched=headline.searched(result.culprit),
        ),
        looked=looked.above(experiment.annotations, experiment.machine.smp, uncrossed.can_be_counted(experiment)),
        summary=prose.summary(result, shown, detail.sweeps),
        tables=tables,
        sweeps=sweeps,
        system_calls=system_calls.tables(detail.system_calls),
        kernels=tuple((kernel.label, prose.kernel(kernel)) for kernel in result.experiment.kernels),
        legend=legend(exact, bool(sweeps), bool(notes.numbers), marks=not prose.single(result.experiment)),
        measured=prose.measured(result, detail.sweeps),
        command=result.experiment.command,
        reproduce=prose.reproduce(result),
        not_measured=prose.not_measured(result, shown),
        faulty=result.boots_faulty,
        footnotes=tuple(notes.numbers),
        general_notes=general,
        legacy=tuple((item.name, tuple(map(_legacy, item.lines))) for item in detail.legacy),
        result=result,
        detail=detail,
        options=options,
    )

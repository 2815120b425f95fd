# SPDX-License-Identifier: GPL-2.0-or-later
"""What traced boots found, side by side per operation: a table, and JSON (schema kdelta-trace/1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec
from msgspec import Struct
from rich.cells import cell_len

from kdelta.attribution.traces import ProbeResult, Row, SetResult
from kdelta.model import Experiment
from kdelta.report.scrub import clean
from kdelta.report.sentences import sentence
from kdelta.report.text import PROSE, WIDTH, ends, pad, wrap

_COLUMN = 13
_NAME_LEAST = 33  # columns of a name, beside which kernels stand; fewer in a narrow terminal
_EACH = ("ns", "instructions")  # shown for each time, other sums per operation
_RARE = 0.01  # times per operation: below in every kernel, a row is only counted


class Line(Struct, frozen=True, kw_only=True):
    """One call site, kind or lock over all kernels; ``rows[i]`` is of the i-th kernel, None where it is not there."""

    probe: str
    title: str
    lock: str
    site: str
    label: str
    rows: tuple[Row | None, ...]


def _probes(results: Sequence[SetResult]) -> list[tuple[ProbeResult | None, ...]]:
    names = list(dict.fromkeys(probe.probe for result in results for probe in result.probes))
    return [tuple(next((p for p in r.probes if p.probe == name), None) for r in results) for name in names]


def _by_key(probe: ProbeResult | None) -> dict[tuple[str, str, str], Row]:
    return {(row.lock, row.site, row.label): row for row in (probe.rows if probe else ())}


def lines(results: Sequence[SetResult]) -> list[Line]:
    """The rows of one case and set on several kernels, joined; those of the first kernel come first."""
    found = []
    for probes in _probes(results):
        tables = [_by_key(probe) for probe in probes]
        first = next(probe for probe in probes if probe is not None)
        for lock, site, label in dict.fromkeys(key for table in tables for key in table):
            rows = tuple(table.get((lock, site, label)) for table in tables)
            found.append(Line(probe=first.probe, title=first.title, lock=lock, site=site, label=label, rows=rows))
    return found


def _per_op(value: float, ops: int) -> float:
    return value / ops if ops else 0.0


def _short(value: float | None) -> str:
    """A count as it is, a figure per operation with four digits or so."""
    if value is None:
        return "-"
    if isinstance(value, int):
        return str(value)
    if value and abs(value) < 10:
        return f"{value:.3f}"
    return f"{value:.1f}" if abs(value) < 1000 and value != int(value) else f"{value:.0f}"


def _kernels(width: int) -> int:
    """How many kernels stand in one table of this ``width``; the first stands in each."""
    return max(2, (width - _NAME_LEAST) // _COLUMN)


def _wrapped(text: str, width: int) -> list[str]:
    return wrap(clean(text), min(width, PROSE), first="  ", then="    ")


def _rare(line: Line, results: Sequence[SetResult]) -> bool:
    pairs = zip(line.rows, results, strict=True)
    return all(row is None or _per_op(row.count, result.ops) < _RARE for row, result in pairs)


def _alike(line: Line, results: Sequence[SetResult]) -> bool:
    """Whether all kernels have the same figures, per operation."""
    told = {
        (row and (row.count, tuple(row.sums.items()), row.most), r.ops)
        for row, r in zip(line.rows, results, strict=True)
    }
    return len(told) == 1


Cells = tuple[str, Sequence[float | None]]  # a name and the figures beside it


def _laid_out(rows: Sequence[Cells | str], heads: Sequence[str], width: int) -> Iterator[str]:
    """The ``rows``, of which texts are lines already, below the names of the kernels; a long name has its own line."""
    kernels = "".join(pad(ends(head, _COLUMN - 1), _COLUMN, right=True) for head in heads)
    longest = max((cell_len(row[0]) for row in rows if not isinstance(row, str)), default=0)
    least = min(_NAME_LEAST, width - cell_len(kernels))
    name = max(least, min(longest, width - cell_len(kernels)))
    yield " " * name + kernels
    for row in rows:
        if isinstance(row, str):
            yield row
            continue
        told, values = row
        long = cell_len(told) > name
        yield from wrap(told, width, then="      ") if long else ()
        yield pad("" if long else told, name) + "".join(f"{_short(value):>{_COLUMN}}" for value in values)


def _figures(line: Line, results: Sequence[SetResult]) -> Iterator[Cells]:
    """The lines of one row: how often, then its sums (times each, bytes per operation) and its maximum."""
    name = ", ".join(part for part in (line.site, line.label) if part) or "all"
    ops = [result.ops for result in results]
    yield (
        f"  {clean(name)}",
        [None if r is None else _per_op(r.count, n) for r, n in zip(line.rows, ops, strict=True)],
    )
    for unit in dict.fromkeys(unit for row in line.rows if row for unit in row.sums):
        if unit in _EACH:
            each = [None if r is None or not r.count else r.sums.get(unit, 0) / r.count for r in line.rows]
            yield f"    {unit} each", each
        else:
            yield (
                f"    {unit}",
                [None if r is None else _per_op(r.sums.get(unit, 0), n) for r, n in zip(line.rows, ops, strict=True)],
            )
    if any(row is not None and row.most is not None for row in line.rows):
        unit = next((unit for row in line.rows if row for unit in row.sums), "")
        yield f"    {unit}, longest", [None if row is None else row.most for row in line.rows]


def _bucket_name(exponent: int, unit: str) -> str:
    if exponent <= 0:
        return f"up to {max(exponent, -1) + 1} {unit}" if exponent == 0 else f"0 {unit} or an error"
    low = (1 << exponent - 1) + 1
    return f"{low}..{1 << exponent} {unit}" if low < 1 << exponent else f"{low} {unit}"


def _histograms(probes: Sequence[ProbeResult | None], shown: set[str]) -> Iterator[Cells | str]:
    tables = [{(b.site, b.label): b for b in (probe.buckets if probe else ())} for probe in probes]
    for site, label in dict.fromkeys(key for table in tables for key in table):
        if shown and site not in shown:
            continue
        of = [table.get((site, label)) for table in tables]
        unit = next((one.unit for one in of if one), "")
        yield f"  {clean(', '.join(part for part in (site, label) if part) or 'all')}: calls by {unit}, in all"
        for exponent in sorted({e for one in of if one for e in one.counts}):
            counts = [one.counts.get(exponent, 0) if one else None for one in of]
            yield f"    {_bucket_name(exponent, unit)}", counts


def _probe_text(
    results: Sequence[SetResult],
    probes: Sequence[ProbeResult | None],
    mine: Sequence[Line],
    width: int,
    changed: bool,
) -> Iterator[Cells | str]:
    first = next(probe for probe in probes if probe is not None)
    yield ""
    yield f"{first.title} (per operation)"
    for result, probe in zip(results, probes, strict=True):
        if probe is not None and probe.state == "missing":
            yield from _wrapped(f"{result.kernel}: not observed: {probe.why}", width)
    often = [line for line in mine if not _rare(line, results)]
    kept = [line for line in often if not (changed and _alike(line, results))]
    for lock, of_lock in groupby(
        sorted(kept, key=lambda x: list(dict.fromkeys(k.lock for k in kept)).index(x.lock)), lambda x: x.lock
    ):
        if lock:
            yield f" lock {clean(lock)}"
        for line in of_lock:
            yield from _figures(line, results)
    if len(often) > len(kept):
        yield f"  and {len(often) - len(kept)} more, the same on all kernels"
    if len(mine) > len(often):
        yield f"  and {len(mine) - len(often)} more, each below {_RARE:g} per operation"
    if not mine and any(probe is not None and probe.state == "ok" for probe in probes):
        yield "  none"
    yield from () if changed else _histograms(probes, {line.site for line in kept})


def _block(results: Sequence[SetResult], width: int, changed: bool) -> Iterator[str]:
    """One case and set on no more kernels than stand in one table."""
    head = results[0]
    counts = list(dict.fromkeys(str(result.ops) for result in results if result.state == "ok"))
    operations = f", {' or '.join(counts)} operations" if counts else ""
    yield from wrap(f"{head.title}: {clean(head.case)}{operations}", width, then="  ")
    yield from _laid_out(list(_table(results, width, changed)), [clean(result.kernel) for result in results], width)


def _table(results: Sequence[SetResult], width: int, changed: bool) -> Iterator[Cells | str]:
    for result in results:
        if result.state != "ok":
            yield from _wrapped(f"{result.kernel}: {result.state}: {result.why}", width)
        for warning in result.warnings:
            yield from _wrapped(f"{result.kernel}: warning: {sentence(warning)}", width)
    joined = lines(results)
    for probes in _probes(results):
        first = next(probe for probe in probes if probe is not None)
        if all(probe is None or probe.state == "absent" for probe in probes):
            continue
        mine = [line for line in joined if line.probe == first.probe]
        yield from _probe_text(results, probes, mine, width, changed)
    yield ""


def _grouped(results: Sequence[SetResult]) -> list[Sequence[SetResult]]:
    names = dict.fromkeys((result.case, result.collector) for result in results)
    return [[r for r in results if (r.case, r.collector) == name] for name in names]


Part = tuple[Experiment, Sequence[SetResult]]


def _summed_up(groups: Sequence[Sequence[SetResult]], width: int) -> tuple[list[Sequence[SetResult]], list[str]]:
    """The cases in which something differs, and lines that say of which others nothing does."""
    shown: list[Sequence[SetResult]] = []
    left: dict[str, list[str]] = {}
    for group in groups:
        rows = lines(group)
        spoke = any(r.state != "ok" or r.warnings or any(p.state != "ok" for p in r.probes) for r in group)
        if spoke or not all(_alike(line, group) for line in rows):
            shown.append(group)
        else:
            what = "the same on all kernels" if rows else "nothing was seen"
            left.setdefault(f"{group[0].title}: {what}", []).append(clean(group[0].case))
    told = [f"{what}: {', '.join(cases)}" for what, cases in left.items()]
    return shown, [line for text in told for line in wrap(text, min(width, PROSE), then="  ")]


def render(parts: Sequence[Part], width: int = WIDTH, changed: bool = False) -> str:
    """The tables of one or more traces. Names from guests are shown with control characters replaced.

    Where only what is ``changed`` between the kernels is wanted, the rest is counted, or its cases named.
    """
    out, more = [], _kernels(width) - 1
    for experiment, results in parts:
        how = "counted, not traced" if experiment.mode == "exact" else "traced; times here are not speeds"
        out += [*wrap(f"kdelta trace {experiment.id}: {how}", width, then="  "), ""]
        groups, rest = _summed_up(_grouped(results), width) if changed else (_grouped(results), [])
        for group in groups:
            for at in range(1, max(len(group), 2), more):
                shown = [group[0], *group[at : at + more]]
                out += [line.rstrip() for line in _block(shown, width, changed)]
        out += [*rest, ""] if rest else []
    return "\n".join(out)


def _joined(group: Sequence[SetResult]) -> list[dict[str, object]]:
    """The rows of one case and set, per operation."""
    return [
        {
            "case": group[0].case,
            "collector": group[0].collector,
            "probe": line.probe,
            "lock": line.lock,
            "site": line.site,
            "label": line.label,
            "kernels": {
                result.kernel: None
                if row is None
                else {
                    "count": _per_op(row.count, result.ops),
                    "sums": {unit: _per_op(value, result.ops) for unit, value in row.sums.items()},
                    "most": row.most,
                }
                for result, row in zip(group, line.rows, strict=True)
            },
        }
        for line in lines(group)
    ]


def _plain(result: SetResult) -> dict[str, object]:
    """As it is, with each warning as its code and its sentence."""
    told = [{"code": warning.code, "text": sentence(warning)} for warning in result.warnings]
    fields = {name: getattr(result, name) for name in result.__struct_fields__}
    return fields | {"warnings": told}


def to_json(parts: Sequence[Part]) -> str:
    """All results as they are, and the rows joined per operation."""
    document = {
        "schema": "kdelta-trace/1",
        "traces": [
            {
                "experiment": experiment.id,
                "command": experiment.command,
                "results": [_plain(result) for result in results],
                "per_operation": [row for group in _grouped(results) for row in _joined(group)],
            }
            for experiment, results in parts
        ],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"

# SPDX-License-Identifier: GPL-2.0-or-later
"""The boots as Go benchmark format, one line per boot, so that ``benchstat -col kernel FILE`` can check us.

Format: https://golang.org/design/14313-benchmark-format (keys start lower case; names hold no space; a name's
``-N`` ending would be read as GOMAXPROCS; units with ``/op`` are per operation).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from kdelta.report.registry import Format
from kdelta.report.view import View
from kdelta.results.types import CellName, CellPoints
from kdelta.units import finite

_TAKEN = ("B/op", "allocs/op")  # what a Go benchmark allocated: benchstat names them so (testing.B.ReportAllocs)
_PROCS = re.compile(r"-(\d+)$")


def _word(text: str) -> str:
    """No white space of any kind, no part separator."""
    return "_".join(text.split()).replace("/", "_") or "_"


def bench_name(cell: CellName) -> str:
    """``BenchmarkPath_lookup/set=hits/cgroup=child``: the case, then what tells it from the plain one."""
    words = cell.case.removesuffix(" (memcg)").split() or ["_"]
    parts = [_word(word) for word in words]
    if cell.cgroup == "child" or cell.case.endswith(" (memcg)"):
        parts.append("cgroup=child")
    if cell.mitigations == "off":
        parts.append("mitigations=off")
    first = parts[0][:1].upper() + parts[0][1:]
    return "Benchmark" + _PROCS.sub(r"_\1", "/".join([first, *parts[1:]]))


def _plain_unit(unit: str, metric: str) -> str:
    unit = _word(unit) if unit else _word(metric)
    return unit if unit.endswith(("_s", "_op")) else f"{unit}_op"


def bench_unit(unit: str, metric: str, shared: bool) -> str:
    """``ns/op``, ``MB/s``; ``latency_p99-ns/op`` where several metrics of a case have the same unit."""
    plain = re.sub(r"_(s|op)$", r"/\1", _plain_unit(unit, metric))
    shared = shared or plain in _TAKEN
    return f"{_word(metric)}-{plain}" if shared and unit and unit != metric else plain


Key = tuple[int, int, int]


def _boots(cells: list[tuple[CellPoints, str]]) -> Iterator[tuple[Key, str]]:
    """(kernel, block, slot) and the figures of one case in that boot."""
    boots: dict[Key, list[str]] = {}
    for cell, unit in cells:
        for point in cell.points:
            if finite(point.value) is not None:
                boots.setdefault((point.kernel, point.block, point.slot), []).append(f"{point.value!r} {unit}")
    for key in sorted(boots):
        yield key, " ".join(boots[key])


def _units(cells: list[CellPoints]) -> list[tuple[CellPoints, str]]:
    """Each metric with its unit's name; the first of a unit keeps the plain one."""
    seen: set[str] = set()
    named = []
    for cell in cells:
        unit = bench_unit(cell.unit, cell.cell.metric, cell.unit in seen)
        seen.add(cell.unit)
        named.append((cell, unit))
    return named


def _repeat(cell: CellPoints) -> bool:
    """Whether each kernel's boots all gave the same figure."""
    seen: dict[int, float] = {}
    return all(seen.setdefault(point.kernel, point.value) == point.value for point in cell.points)


def _assumptions(cases: Iterable[list[tuple[CellPoints, str]]]) -> dict[str, str]:
    """What benchstat assumes of each unit: ``exact`` takes one line for all, so no cell of the unit may vary."""
    found: dict[str, tuple[str, bool]] = {}
    for cell, unit in (pair for pairs in cases for pair in pairs):
        _, repeats = found.get(unit, ("", True))
        found[unit] = (cell.better, repeats and _repeat(cell))
    return {unit: f"better={better}" + (" assume=exact" if same else "") for unit, (better, same) in found.items()}


def render(view: View) -> str:
    """All boots of all metrics that ``Detail.points`` holds; without it a comment says that there are none."""
    exact = view.result.experiment.mode == "exact"
    cases: dict[str, list[CellPoints]] = {}
    for cell in view.detail.points:
        cases.setdefault(bench_name(cell.cell), []).append(cell)
    named = {name: _units(cells) for name, cells in cases.items()}
    lines = [f"# {view.title}", "# One line per boot; read with: benchstat -col kernel FILE"]
    if not cases:
        lines.append("# No boots to show.")
    for unit, assumed in sorted(_assumptions(named.values()).items()):
        lines.append(f"Unit {unit} {assumed if exact else assumed.removesuffix(' assume=exact')}")
    labels = [kernel.label for kernel in view.result.experiment.kernels]
    for index in sorted({point.kernel for cell in view.detail.points for point in cell.points}):
        label = labels[index] if index < len(labels) else str(index)
        lines.append(f"kernel: {label}")
        for name, pairs in named.items():
            for (kernel, block, slot), figures in _boots(pairs):
                if kernel == index:
                    lines += [f"# block {block} slot {slot}", f"{name} 1 {figures}"]
    return "\n".join(lines) + "\n"


FORMAT = Format(name="benchfmt", suffix=".bench", render=render, help="Go benchmark format, one line per boot")

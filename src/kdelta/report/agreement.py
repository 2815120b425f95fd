# SPDX-License-Identifier: GPL-2.0-or-later
"""Two measurements of the same kernels and cases side by side (``kdelta report --against``), as text and as JSON
(schema ``kdelta-agreement/1``).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from rich.cells import cell_len

from kdelta.report.figures import absolute, effect, interval
from kdelta.report.scrub import Scrubber
from kdelta.report.text import PROSE, WIDTH, pad, rule, wrap
from kdelta.report.view import MARKS
from kdelta.results.agreement.types import (
    Agreement,
    Count,
    CountCall,
    CountPair,
    Effect,
    EffectPair,
    Fact,
    FunctionPair,
    Side,
)
from kdelta.units import counted

_LABEL, _FIGURE, _DIFFERENCE = 22, 14, 16  # columns
_FIGURE_LEAST = 11  # in a narrow terminal, where a label has its own line
_FUNCTIONS = 3  # named in a line of text; JSON has all

_SUMMARY: dict[CountCall, str] = {
    "exact": "agree exactly",
    "within": "within the spread across seeds",
    "within-floor": "within the floor",
    "differs": "differ",
    "same-boots": "are the same boots",
    "not-comparable": "not comparable",
}


def to_json(found: Agreement) -> str:
    """Schema kdelta-agreement/1: ASCII, two spaces of indent."""
    body: dict[str, Any] = msgspec.to_builtins(Scrubber().struct(found))
    document = {"schema": "kdelta-agreement/1", **body, "summary": summary(found)}
    return json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def summary(found: Agreement) -> str:
    """``4 agree exactly, 2 within the spread across seeds, 0 differ``"""
    if found.mode == "timed":
        calls = Counter(pair.call for pair in found.effects)
        with_interval = calls["overlap"] + calls["apart"]
        text = f"{calls['overlap']} of {with_interval} intervals overlap" if with_interval else ""
        alone = f"{calls['descriptive']} without an interval on both sides" if calls["descriptive"] else ""
        return ", ".join(filter(None, [text, alone]))
    called = Counter(pair.call for pair in found.counts)
    total = len(found.counts)
    if called["exact"] == total:
        return f"{total} of {total} counts agree exactly"
    always: tuple[CountCall, ...] = ("exact", "within", "differs")
    return ", ".join(f"{called[call]} {text}" for call, text in _SUMMARY.items() if call in always or called[call])


def render(found: Agreement, width: int = WIDTH) -> str:
    """For people: what differs in the measuring, each figure side by side, what is only in one, the summary."""
    found, width = Scrubber().struct(found), min(width, PROSE)
    title = f"agreement: {found.here.experiment} (here) and {found.there.experiment} (there), {found.mode}"
    lines = wrap(title, width)
    for name, side in (("here", found.here), ("there", found.there)):
        lines += _unfinished(name, side, width)
    if found.mode == "timed":
        lines += wrap("There is no verdict between two experiments, because their boots share no block.", width)
    lines += ["", *_facts(found.differences, width), ""]
    lines += _counts(found.counts, width) if found.mode == "exact" else _effects(found.effects, width)
    for where, names in (("here", found.only_here), ("there", found.only_there)):
        told = [line for name in names for line in wrap(name, width, first="- ")]
        lines += [f"Only {where}", *told, ""] if names else []
    return "\n".join([*lines, *wrap(summary(found), width)]) + "\n"


def _unfinished(name: str, side: Side, width: int) -> list[str]:
    if side.complete:
        return []
    return wrap(f"{name}: {side.boots_done} of {side.boots_planned} boots are done", width)


def _facts(facts: Sequence[Fact], width: int) -> list[str]:
    if not facts:
        return wrap("Measured the same way: QEMU, guest, kdelta, host and seeds are the same.", width)
    return ["Measured differently", *(line for fact in facts for line in wrap(_fact(fact), width, first="- "))]


def _fact(fact: Fact) -> str:
    """Of long lists only the items that the other one does not have."""
    here, there = ([item.strip() for item in text.split(",")] for text in (fact.here, fact.there))
    if min(len(here), len(there)) > 2:
        only = [("here", [i for i in here if i not in there]), ("there", [i for i in there if i not in here])]
        if any(items for _, items in only):
            return f"{fact.what}: " + "; ".join(f"only {name} {', '.join(items)}" for name, items in only if items)
    return f"{fact.what}: {fact.here or 'not known'} here, {fact.there or 'not known'} there"


def _title(pair: CountPair | EffectPair, among: Iterable[CountPair | EffectPair]) -> str:
    """The case, its metric, and what tells it apart from others of the same name."""
    others = [
        p.params for p in among if (p.case, p.cgroup, p.mitigations) == (pair.case, pair.cgroup, pair.mitigations)
    ]
    differing = sorted(key for key in pair.params if any(p.get(key) != pair.params[key] for p in others))
    suffix = "".join(f" {key}={pair.params[key]}" for key in differing)
    off = " (mitigations=off)" if pair.mitigations == "off" else ""
    metric = pair.unit if pair.unit.startswith(f"{pair.metric}/") else f"{pair.metric}, {pair.unit}"
    return f"{pair.case}{suffix}{off}: {metric.removesuffix(', ')}"


def _counts(pairs: Sequence[CountPair], width: int) -> list[str]:
    columns = _columns(pairs, width)
    heads = pad("here", columns[1], True) + pad("there", columns[1], True) + "  difference"
    lines = [pad("", columns[0]) + heads, rule(0, width)]
    title = ""
    for pair in pairs:
        if (here := _title(pair, pairs)) != title:
            title = here
            lines += wrap(title, width, then="  ")
        lines += _count_lines(pair, columns, width)
    return [*lines, ""]


def _columns(pairs: Sequence[CountPair], width: int) -> tuple[int, int]:
    """Those of a kernel's label and of a figure; on a narrow terminal no label stands beside its figures."""
    room = width - 2 * _FIGURE - _DIFFERENCE
    if room < _LABEL:
        return 0, max(_FIGURE_LEAST, min(_FIGURE, (width - _DIFFERENCE) // 2))
    return min(room, max([_LABEL, *(3 + cell_len(pair.kernel) for pair in pairs)])), _FIGURE


def _figure(count: Count) -> str:
    if count.count is None:
        return "-"
    return f"{count.count:.2f}".removesuffix(".00") if count.count < 1e12 else f"{count.count:.6e}"


def _small(percent: float | None) -> str:
    """A percentage that is not 0 never reads as 0."""
    if percent == 0:
        return "0 %"
    if percent is None or abs(percent) >= 0.005:
        return effect(percent)
    return f"{percent:+.1g} %"


def _count_lines(pair: CountPair, columns: tuple[int, int], width: int) -> list[str]:
    alike = {"exact": "exactly"} | ({"same-boots": "the same boots"} if pair.percent == 0 else {})
    word = alike.get(pair.call, _small(pair.percent))
    label, (room, size) = f"  {pair.kernel}", columns
    figures = pad(_figure(pair.here), size, True) + pad(_figure(pair.there), size, True) + f"  {word}"
    if cell_len(label) <= room:
        lines = [pad(label, room) + figures]
    else:
        lines = [*wrap(label.strip(), width, first="  ", then="    "), pad("", room) + figures]
    return [*lines, *(line for text in remarks(pair) for line in wrap(text, width, first="      ", then="        "))]


def remarks(pair: CountPair) -> list[str]:
    """What stands beneath a row: why it cannot be compared, or how far it differs and by which functions."""
    texts = [f"there: {pair.kernel_there}"] if pair.kernel_there != pair.kernel else []
    if pair.call == "not-comparable":
        return [*texts, pair.why]
    if pair.call == "same-boots" and pair.percent != 0:
        texts.append(f"the same boots, and more of them {'here' if pair.here.seeds > pair.there.seeds else 'there'}")
    if pair.shared_boots and pair.call != "same-boots":
        texts.append(f"{counted(pair.shared_boots, 'boot')} in both: only the others say anything")
    if pair.call in ("within", "within-floor", "differs"):
        where = "within" if pair.call == "within" else "beyond"
        spreads = f"{_spread(pair.here)} here, {_spread(pair.there)} there"
        functions = functions_text(pair.functions)
        text = f"{where} the spread across seeds ({spreads})"
        if pair.call == "within-floor":
            text += f", within the floor of {pair.floor_percent:g} % (the layout of memory)"
        texts.append(text + (f": {functions}" if functions else ""))
        if pair.same_identity:
            texts.append("image, jobs, seeds, QEMU and plugin are the same, so these counts should be identical: a bug")
    return texts


def _spread(count: Count) -> str:
    return "0 to some" if count.spread_percent is None else _small(count.spread_percent).removeprefix("+")


def _delta(value: float) -> str:
    return f"{value:+.0f}" if abs(value) >= 100 else f"{value:+.1f}" if abs(value) >= 1 else f"{value:+.1g}"


def functions_text(functions: Sequence[FunctionPair], limit: int = _FUNCTIONS) -> str:
    """``___slab_alloc +0.77, __d_lookup_rcu -0.01, 3 more``"""
    more = sum(item.functions for item in functions[limit:])
    named = [f"{item.function} {_delta(item.delta)}" for item in functions[:limit]]
    return ", ".join([*named, *([f"{more} more"] if more else [])])


def _effects(pairs: Sequence[EffectPair], width: int) -> list[str]:
    lines = []
    for pair in pairs:
        lines += wrap(_title(pair, pairs), width, then="  ")
        kernels = f"{pair.baseline_kernel} -> {pair.patched_kernel}" if pair.patched_kernel else pair.baseline_kernel
        lines += wrap(kernels + (" (reversed there)" if pair.reversed else ""), width, first="  ")
        for name, side in (("here", pair.here), ("there", pair.there)):
            lines += wrap(_effect(side, pair), width, first=f"    {name:7}")
        texts = {"overlap": "the intervals overlap", "apart": "the intervals do not overlap"}
        lines += [f"    {texts[pair.call]}"] if pair.call in texts else []
    return [*lines, ""]


def _effect(side: Effect, pair: EffectPair) -> str:
    if side.state != "ok":
        return f"{side.state}: {side.why}" if side.why else side.state
    boots = f"{side.boots[0]} boots" if side.boots[0] != 1 else "1 boot"
    if not pair.patched_kernel:
        return f"{absolute(side.baseline, pair.unit, pair.metric)}  ({boots})"
    mark = MARKS[side.verdict] if side.verdict else "descriptive"
    parts = [effect(side.effect_percent), interval(side.interval_percent, exact=False), mark, f"({boots} a kernel)"]
    return "  ".join(filter(None, parts))

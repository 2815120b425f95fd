# SPDX-License-Identifier: GPL-2.0-or-later
"""Results whose every free text is hostile, as hypothesis strategies."""

from __future__ import annotations

import math

from hypothesis import strategies as st
from msgspec.structs import replace

from kdelta.model import Because, CellResult, ExperimentResult, Remark, plans
from kdelta.results.types import (
    CellName,
    CellPoints,
    Curve,
    Detail,
    Distribution,
    FunctionDiff,
    LegacyLine,
    LegacyView,
    Point,
    Scaling,
    ScalingLine,
    Sweep,
    SweepPoint,
    SweepStep,
)
from unit.report.report_samples import cell, experiment, functions, kernel

NASTY = (
    "<script>alert(1)</script>",
    "]]><!--",
    '"><img src=x onerror=alert(1)>',
    "../../etc/passwd",
    "two\nlines",
    "\r\nKTAP version 1\r\nok 1 forged",
    "not ok 1 forged # SKIP",
    "\x1b[2J\x1b]0;title\x07",
    "\u202egnp.exe\u200f",
    "=cmd|' /C calc'!A0",
    "@SUM(1)",
    "| a | b |",
    "[x](javascript:alert(1))",
    "```\nfence",
    "From the start",
    "---",
    "{{ 7 * 7 }}",
    "{% raw %}",
    "\x00\x85\u2028\ufffe\ud800",
    "宽" * 60,
    "x" * 10_240,
    "",
)

texts = st.one_of(st.sampled_from(NASTY), st.text(max_size=60))
numbers = st.one_of(st.floats(width=64), st.sampled_from([0.0, math.nan, math.inf, 489.0]), st.none())
WORDS = ("improved", "regressed", "same", "inconclusive", None)
STATES = ("ok", "lost", "panicked", "hung", "unsupported", "failed")


PLANS: tuple[plans.Plan, ...] = (plans.Compare(), plans.Sweep(), plans.Run())
remarks = st.builds(Remark, st.just("code"), texts)


@st.composite
def lines(draw: st.DrawFn) -> Because | None:
    names = st.lists(texts, max_size=2).map(tuple)
    return Because(
        gone=draw(names),
        gone_delta=draw(st.floats()),
        new=draw(names),
        new_delta=draw(st.floats()),
        changed=((draw(texts), draw(st.floats())),) if draw(st.booleans()) else (),
    )


@st.composite
def cells(draw: st.DrawFn, labels: list[str]) -> CellResult:
    bounds = draw(st.one_of(st.none(), st.tuples(st.floats(), st.floats())))
    return cell(
        draw(texts),
        draw(texts),
        unit=draw(st.sampled_from(["ns", "B", "ops/s", "instructions", ""])),
        params=draw(st.dictionaries(texts, texts, max_size=2)),
        primary=draw(st.booleans()),
        baseline_label=labels[0],
        patched_label=draw(st.sampled_from(labels[1:])),
        baseline=draw(numbers),
        patched=draw(numbers),
        effect_percent=draw(numbers),
        interval_percent=bounds,
        verdict=draw(st.sampled_from(WORDS)),
        state=draw(st.sampled_from(STATES)),
        why=draw(texts),
        because_line=draw(lines()),
        because=tuple(replace(item, function=draw(texts), note=draw(texts)) for item in functions()[:2]),
        warnings=(draw(remarks),),
        extra={draw(texts): draw(st.floats()), "rep_bytes_patched": draw(st.floats()), "tasks": draw(st.floats())},
    )


@st.composite
def sweeps(draw: st.DrawFn, labels: list[str]) -> Sweep:
    """Versions in every state, some absent (a label that is no kernel's), and a step of any word."""
    versions = [*labels, *draw(st.lists(texts.filter(lambda text: text not in labels), max_size=2, unique=True))]
    step = SweepStep(
        last=labels[0],
        first=labels[1],
        baseline=draw(st.floats()),
        patched=draw(st.floats()),
        effect_percent=draw(st.floats()),
        verdict=draw(st.sampled_from(WORDS)),
        p_value=draw(st.one_of(st.none(), st.floats())),
        because_line=draw(lines()),
    )
    return Sweep(
        cell=CellName(case=draw(texts), metric=draw(texts)),
        unit=draw(texts),
        better="higher",
        points=tuple(
            SweepPoint(
                kernel=label,
                value=draw(numbers),
                state=draw(st.sampled_from(STATES)),
                why=draw(texts),
                unseen=draw(st.none() | remarks),
            )
            for label in versions
        ),
        steps=(step,) if draw(st.booleans()) else (),
    )


@st.composite
def details(draw: st.DrawFn, labels: list[str]) -> Detail:
    name = CellName(case=draw(texts), metric=draw(texts))
    value = st.floats()
    points = tuple(Point(block, slot, slot, draw(value)) for block in range(3) for slot in (0, 1))
    curve = tuple((percent, draw(value)) for percent in (0.0, 50.0, 99.0, 100.0))
    return Detail(
        points=(CellPoints(cell=name, unit=draw(texts), better="lower", points=points),),
        distributions=(Distribution(cell=name, unit="ns", curves=(Curve(kernel=labels[0], points=curve),)),),
        functions=(
            FunctionDiff(
                cell=name,
                baseline_label=labels[0],
                patched_label=labels[1],
                functions=tuple(replace(item, function=draw(texts), delta=draw(value)) for item in functions()),
            ),
        ),
        sweeps=tuple(draw(st.lists(sweeps(labels), max_size=3))),
        scaling=(
            Scaling(
                cell=name, unit="ops/s", lines=(ScalingLine(kernel=labels[1], points=((1, draw(value)), (4, 2.0))),)
            ),
        ),
        legacy=(LegacyView(name="lkp", lines=(LegacyLine(draw(texts)), LegacyLine(draw(texts), (draw(remarks),)))),),
    )


@st.composite
def inputs(draw: st.DrawFn) -> tuple[ExperimentResult, Detail]:
    labels = draw(st.lists(texts, min_size=2, max_size=4, unique=True))
    kernels = tuple(replace(kernel("x", cmdline=draw(texts)), label=label, spec=draw(texts)) for label in labels)
    result = ExperimentResult(
        experiment=experiment(
            mode=draw(st.sampled_from(["timed", "exact"])),
            plan=draw(st.sampled_from(PLANS)),
            kernels=kernels,
            command=draw(texts),
            created_at=draw(texts),
            tool_version=draw(texts),
            host={draw(texts): draw(texts)},
        ),
        results=tuple(draw(st.lists(cells(labels), max_size=4))),
        boots_faulty=(draw(texts),),
        warnings=(draw(remarks),),
        gate=draw(texts),
    )
    return result, draw(details(labels))

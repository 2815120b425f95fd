# SPDX-License-Identifier: GPL-2.0-or-later
"""Warnings and causes as sentences: every kind has one, and nothing that was found is lost on the way."""

from __future__ import annotations

import importlib
import math
import pkgutil

import msgspec
import pytest

import kdelta
from kdelta.attribution.warnings import HoldUnclear, TraceDropped, TraceShortened
from kdelta.model import Because, ExperimentResult, FunctionDelta, Remark, Warn
from kdelta.report import behind, registry
from kdelta.report.causes import because
from kdelta.report.sentences import sentence
from kdelta.report.view import build
from kdelta.results.warnings import (
    FewerCpus,
    FolderLacking,
    IsolatedCpus,
    KernelComplained,
    LeftOut,
    NoNames,
    Pressure,
    ProgramVaries,
    Reclaim,
    SameKernel,
    UnknownParameters,
)
from kdelta.stats.warnings import Bistable, Drift, LayoutMoves, TooFewBlocks
from kdelta.verdict.warnings import (
    Dropped,
    Fault,
    MediansHide,
    MixedAccounts,
    MixedCalls,
    Noisy,
    OtherCalls,
    SeedsMissing,
    SeedsVary,
    Strings,
    TailOfFew,
    Withdrawn,
    WithinFloor,
)
from unit.report.report_samples import cell, experiment

FAULT = Fault(3, "7.0", "hung")
TOLD = [
    (TooFewBlocks(4, 6), "a verdict needs 6 complete blocks, only 4 available"),
    (Drift(-2.04), "both kernels drifted by -2.0 % over the experiment; blocking cancels it"),
    (Bistable(7.6, (5, 3)), "bimodal: two clusters of boots 7.6 % apart (5 and 3 boots)"),
    (SeedsMissing(0, 0), "no seed was measured on both kernels: no verdict"),
    (SeedsMissing(2, 3, 1), "2 of 3 planned seeds were measured: no verdict; kdelta resume measures the rest"),
    (
        SeedsMissing(9, 10),
        "9 of 10 planned seeds were measured: no verdict; the same command all anew, with --seed N under other seeds",
    ),
    (
        SeedsMissing(7, 10, 2),
        "7 of 10 planned seeds were measured: no verdict; kdelta resume measures 2 more, the same command all anew,"
        " with --seed N under other seeds",
    ),
    (SeedsVary(5, 8, at_least=False), "varies across 5 seeds: no verdict before 8 seeds"),
    (SeedsVary(5, 6, at_least=True), "varies across 5 seeds: no verdict before 6 seeds or more"),
    (TailOfFew(99.9, 40, 1000), "p99.9 needs 1000 samples per boot, only 40 available: no verdict"),
    (TailOfFew(100.0, 40, None), "a maximum does not estimate a percentile: shown, but never given a verdict"),
    (Dropped(1, 8, (FAULT,)), "1 of 8 blocks dropped: block 3: 7.0 hung"),
    (Dropped(1, 8, (Fault(3, "7.0", "ok", 12.34),)), "1 of 8 blocks dropped: block 3: 7.0 lost 12.3 % to steal"),
    (
        Dropped(2, 8, (FAULT, Fault(4, "7.0", "failed", why="no room"))),
        "2 of 8 blocks dropped: block 3: 7.0 hung; block 4: 7.0 failed; 7.0: no room",
    ),
    (Dropped(1, 8, (Fault(3, "7.0", "ok"),)), "1 of 8 blocks dropped: block 3: no value"),
    (Dropped(6, 8, (FAULT,) * 5), f"6 of 8 blocks dropped: {'; '.join(['block 3: 7.0 hung'] * 4)}; ..."),
    (Withdrawn(9, 0.06, None), "not significant after Benjamini-Hochberg (9 cells, adjusted p = 0.060)"),
    (Noisy(1.5, 8, ("slab", "lru"), 2), "varies by 1.50 % across seeds (slab, lru, 2 more); judged by the interval"),
    (WithinFloor(0.3), "within the noise floor of this case (0.3 %): where the allocator"),
    (WithinFloor(10.0, reaches=True), "its interval reaches into the noise floor of this case (10 %)"),
    (
        MixedAccounts(-0.5, 1.7),
        "REP counted once: -0.50 %; counted per 8 bytes moved: +1.70 %; the two accounts disagree",
    ),
    (MixedAccounts(0.3, 1.7), "REP counted once: +0.30 %; counted per 8 bytes moved: +1.70 %; only one of them is a"),
    (Strings(70.2), "string instructions count once, whatever they move; with one for each 8 bytes: +70.20 %"),
    (MediansHide(), "its counts lie at several levels"),
    (Noisy(0.004, 5), "varies by less than 0.01 % across seeds (allocator order, random numbers or timer ticks); "),
    (Noisy(None, None), "varies from 0 across seeds (allocator order, random numbers or timer ticks)"),
    (
        ProgramVaries("7.0", 4.6, 23.6, (("futex", 5.0, 7.0), ("yield", 0.0, 1.0)), 3, ("__schedule",), 9),
        "the program does not do the same in every run: on 7.0 the kernel's instructions vary by 4.60 %, its own by "
        "23.60 %; calls: futex 5 to 7, yield 0 to 1, 3 more; functions: __schedule, 9 more; threads, time and random",
    ),
    (
        ProgramVaries("7.0", 4.6, None, (("futex", 5.0, 7.0),), 0, (), 0),
        "the program does not do the same in every run: on 7.0 the kernel's instructions vary by 4.60 %; calls: futex "
        "5 to 7; threads, time",
    ),
    (
        OtherCalls(12.4, 3.0, (("futex", 0.0, 2.5),), 1, "kernel"),
        "the program made other calls (futex 0 -> 2.5, 1 more per operation): with as many as on the baseline "
        "+12.40 % would be +3.00 %; they are the same under all seeds",
    ),
    (
        MixedCalls(-60.2, -2.1, (("sendto", 2.978, 1.021),), 0, "seed"),
        "the program made other calls (sendto 2.978 -> 1.021 per operation, the mean of all seeds): with as many",
    ),
    (NoNames(()), "no function names; totals only"),
    (NoNames((("7.0", "stripped"),)), "7.0: no function names: stripped; totals only"),
    (Pressure((Reclaim("7.0", 9, 8, 0),)), "reclaim during a run: 7.0: 9 pages scanned, 8 reclaimed, 0 stalls"),
    (LeftOut(("6.6", "6.9"), "not built"), "6.6, 6.9 left out: not built"),
    (LeftOut(("2/3 x",), "not built", "3/3 y"), "2/3 x left out: not built; its change counts with 3/3 y"),
    (TraceDropped("waits", 7, 10, 128, "sched_switch", "locks"), "waits: 7 of 10 events did not fit into the 128"),
    (TraceShortened(300, 1000), "300 of 1000 operations: more do not fit into half of the time limit when traced"),
    (
        HoldUnclear("fdget_pos", 3, elsewhere=True),
        "fdget_pos: 3 holds ended in a function that is not known, and are not counted",
    ),
    (HoldUnclear("pipe_write", 2), "pipe_write: 2 holds began before the last one had ended, and are not counted"),
    (
        FolderLacking("ls /usr", "/usr"),
        "ls /usr found of /usr only what it runs with, because that is too large to be ",
    ),
    (SameKernel("b", "a"), "b is a again, the same image and command line: under the same seeds its counts are "),
    (UnknownParameters("7.0", "x=1"), "7.0: Unknown kernel parameters: x=1 (misspelled,"),
    (FewerCpus("7.0", 1, 4, 8, 8), "7.0 came up with 1 of 4 CPUs: by its command line (maxcpus="),
    (FewerCpus("7.0", 3, 4, 1, 8), "7.0 came up with 3 of 4 CPUs in 1 of 8 boots: by its"),
    (IsolatedCpus("7.0", "isolcpus=1"), "7.0 moves no task to CPUs of its command line's isolcpus=1: a case"),
    (KernelComplained("7.0", 2, 3, ("BUG: b",), 1), "7.0 complained on its console in 2 of 3 boots: BUG: b; 1 more"),
    (Remark("few", "as <it> is: %: 3"), "as <it> is: %: 3"),
]


@pytest.mark.parametrize(("warning", "text"), TOLD, ids=lambda value: type(value).__name__)
def test_a_warning_as_a_sentence(warning: Warn, text: str) -> None:
    assert sentence(warning).startswith(text)


def _kinds() -> list[type[Warn]]:
    for module in pkgutil.walk_packages(kdelta.__path__, "kdelta."):
        if module.name.endswith(".warnings"):
            importlib.import_module(module.name)
    return Warn.__subclasses__()


def test_every_kind_of_warning_has_a_sentence_and_a_code() -> None:
    kinds = [kind for kind in _kinds() if kind.__module__.startswith("kdelta.")]
    assert len(kinds) > 30
    without = sentence.dispatch(Warn)
    assert [kind.__name__ for kind in kinds if sentence.dispatch(kind) is without] == []
    assert [kind.__name__ for kind in kinds if kind is not Remark and not kind.code] == []


def test_a_kind_without_a_sentence_is_named() -> None:
    class Unheard(Warn, frozen=True):
        pass

    with pytest.raises(TypeError, match=r"report/sentences\.py has no sentence for Unheard"):
        sentence(Unheard())


def test_a_remark_is_stored_as_older_versions_did() -> None:
    stored = b'{"code":"selftests","text":"pidfd: 3 skipped"}'
    remark = msgspec.json.decode(stored, type=Remark)
    assert (remark.code, sentence(remark)) == ("selftests", "pidfd: 3 skipped")
    assert msgspec.json.encode(remark) == stored


def test_a_cause_names_what_weighs_most_first() -> None:
    told = Because(gone=("a",), gone_delta=-9.4, new=("b", "c", "d"), new_delta=365, changed=(("e", -0.3), ("f", 12.4)))
    assert because(told) == "b, c and d new (+365), f +12, a gone (-9.4), e -0.3"


def test_the_effect_stands_in_front_where_it_is_known() -> None:
    def told(effect: float | None) -> str:
        return behind.text("instructions", (), Because(changed=(("f", -3.0),)), effect)

    assert told(-0.31) == "-0.3 %: f -3"
    assert told(370.0) == "+370 %: f -3"
    assert told(None) == told(math.nan) == "f -3"
    assert behind.text("instructions", (), None, 3.0) == because(None) == ""


def test_a_cache_line_that_begins_to_move_is_new_in_no_format() -> None:
    line = FunctionDelta(function="pidmap_lock", baseline=0.0, patched=3.0, delta=3.0, note="new", where="alloc_pid")
    told = Because(new=("pidmap_lock",), new_delta=3.0)
    row = cell("fork", "transfers", effect_percent=41.68, verdict="regressed", because=(line,), because_line=told)
    view = build(ExperimentResult(experiment=experiment("6.12", "7.0", mode="exact"), results=(row,)))
    found = [str(registry.formats()[name].render(view)) for name in ("json", "csv", "ktap", "markdown")]
    assert all("now moves" in text.replace("\\", "") for text in found)
    assert not any(" new (" in text for text in found)


def test_what_layouts_do_is_told_without_powers_of_ten() -> None:
    """Two layouts of a busy host: "at most 4.6e+02 %"."""
    told = [sentence(LayoutMoves(2, 19.59, most)) for most in (462.3, 46.23, 0.462)]
    assert [text.partition("at most ")[2] for text in told] == ["462.3 %)", "46.2 %)", "0.5 %)"]

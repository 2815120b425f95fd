# SPDX-License-Identifier: GPL-2.0-or-later
"""What the view says, whatever the format."""

from __future__ import annotations

import math
from typing import Any

import pytest
from msgspec.structs import replace

from kdelta.model import UNBOOTED, Because, Case, ExperimentResult, MachineOptions, Remark, plans
from kdelta.report import behind, functions, mail, markdown, prose, registry, sections, terminal
from kdelta.report import html as page
from kdelta.report.terminal import render
from kdelta.report.view import Options, View, build
from kdelta.results.types import SweepPoint
from kdelta.results.warnings import StepUnseen
from kdelta.spec.counted import START
from kdelta.verdict.warnings import Dropped, Fault, MixedAccounts, TooFewSeeds
from unit.report.report_samples import cell, exact, experiment, gaps, several, timed
from unit.report.sweep_samples import sweep

EXACT_CELL: dict[str, Any] = {"unit": "instructions/op"}


def only(**fields: Any) -> View:
    result = ExperimentResult(experiment=experiment("6.12", "7.0"), results=(cell("pipe", **fields),))
    return build(result)


def test_a_kernel_on_which_no_case_was_measured_is_told_once() -> None:
    cells = [cell(name, verdict=None, state="panicked", why="7.0: panicked: no init") for name in "abc"]
    cells += [cell(name, patched_label="7.1") for name in "ab"]
    cells += [cell("c", patched_label="7.1", verdict=None, state="hung")]
    told = build(ExperimentResult(experiment=experiment("6.12", "7.0", "7.1"), results=tuple(cells))).not_measured
    assert told[:2] == ("all 3 cases on 7.0 (panicked: no init).", "c on 7.1 (hung).")


def test_what_the_baseline_alone_did_not_run_stands_below_the_baseline() -> None:
    fields: dict[str, Any] = {"baseline": None, "verdict": None, "state": "failed", "why": "6.12: failed: status 7"}
    view = only(**fields, sides=("failed", "ok"))
    (row,) = view.tables[0].groups[0].rows
    assert (row.baseline, row.cells[0].effect) == ("failed", "349.0 ns")
    assert view.not_measured[0] == "pipe on 6.12 (failed: status 7)."
    neither = only(**fields | {"state": "hung", "patched": None}, sides=("failed", "hung"))
    (row,) = neither.tables[0].groups[0].rows
    assert (row.baseline, row.cells[0].effect) == ("failed", "hung")


def test_a_baseline_that_ran_no_case_is_told_once_too() -> None:
    fields: dict[str, Any] = {"baseline": None, "verdict": None, "state": "hung", "why": "6.12: hung: 60 s"}
    cells = tuple(cell(name, **fields, sides=("hung", "ok")) for name in "abc")
    told = build(ExperimentResult(experiment=experiment("6.12", "7.0"), results=cells)).not_measured
    assert told[0] == "all 3 cases on 6.12 (hung: 60 s)."


def test_what_was_not_booted_yet_is_not_lost() -> None:
    waiting = only(patched=None, effect_percent=None, verdict=None, state="lost", why=f"7.0: {UNBOOTED}")
    (row,) = waiting.tables[0].groups[0].rows
    assert row.cells[0].effect == "not yet" and waiting.summary.startswith("1 not booted yet; ")
    assert "lost" not in render(waiting)


def test_a_guest_that_hung_in_some_boots_is_told_by_the_text_as_by_the_tests() -> None:
    fault = Fault(2, "7.0", "hung")
    view = only(verdict=None, interval_percent=None, warnings=(Dropped(1, 8, (fault,)),))
    told = "hung in some boots of 7.0 alone: no verdict"
    texts = [str(registry.formats()[name].render(view)) for name in ("terminal", "mail", "ktap", "junit", "html")]
    assert all(told in " ".join(text.split()) for text in texts)
    assert "7.0 hung in some boots of pipe, 6.12 in none." in view.headline.text
    both = only(verdict=None, warnings=(Dropped(1, 8, (fault, Fault(3, "6.12", "hung"))),))
    assert "in some boots" not in both.headline.text


def test_one_footnote_per_distinct_text() -> None:
    view = build(*timed())
    assert len(view.footnotes) == 3
    notes = {group.title: cell.notes for group, _, cell in view.cells()}
    assert notes["path_lookup syscall=stat"] == (1, 2)
    assert notes["thread_spawn"] == (1,)
    assert view.general_notes == (3,)


def test_only_primary_metrics_unless_asked_and_the_rest_is_counted() -> None:
    result, detail = timed()
    few, many = build(result, detail), build(result, detail, Options(all_metrics=True))
    assert len(list(many.cells())) == len(list(few.cells())) + 1
    assert any("other metrics (1 figure, none of them changed)" in text for text in few.not_measured)
    assert not any("other metrics" in text for text in many.not_measured)
    alone = replace(result, results=tuple(replace(cell, patched_label="") for cell in result.results))
    assert any("other metrics (1 figure)" in text for text in build(alone, detail).not_measured)


@pytest.mark.parametrize(("cpus", "said"), [(1, False), (2, True)])
def test_on_several_cpus_no_table_by_system_call_is_missed(cpus: int, said: bool) -> None:
    asked = replace(experiment("6.12", "7.0"), mode="exact", machine=MachineOptions(smp=cpus))
    view = build(ExperimentResult(experiment=asked, results=(cell("pipe"),)))
    assert any(text.startswith("Instructions by system call") for text in view.not_measured) == said


def test_a_kernel_alone_is_told_nothing_of_comparisons() -> None:
    asked = replace(experiment("6.12"), blocks=1)
    view = build(ExperimentResult(experiment=asked, results=(cell("pipe", patched_label="", verdict=None),)))
    first = "Timed: 1 boot planned; one boot counts as one observation (the median of its samples)."
    assert view.measured[0] == first and not any("floor" in text or "Effect" in text for text in view.measured)
    assert view.legend == () and not any("order" in text for text in view.reproduce)


def test_that_no_lines_of_a_suites_program_are_known_is_said() -> None:
    result, detail = exact()
    two = replace(
        result.experiment,
        machine=replace(result.experiment.machine, smp=2),
        cases=(Case(workload="perf/pipe", params={"pack": "a", START: "b"}), Case(workload="pipe")),
    )
    told = "Transfers, waits and retries of perf/pipe: "
    assert any(text.startswith(told) for text in build(replace(result, experiment=two), detail).not_measured)
    assert not any(text.startswith("Transfers, waits") for text in build(result, detail).not_measured)


def test_a_case_without_a_primary_metric_shows_what_it_has() -> None:
    assert len(list(only(primary=False).cells())) == 1


def test_inconclusive_says_what_it_could_have_seen_and_what_would_decide() -> None:
    view = only(verdict="inconclusive", detectable_percent=3.1, boots_needed=6)
    sentence = next(iter(view.cells()))[2].sentence
    assert sentence == "inconclusive: minimum detectable effect 3.10 %; 6 fresh boots per kernel would decide"
    hopeless = only(verdict="inconclusive", detectable_percent=300.0, boots_needed=100_000)
    assert "; 100000 fresh boots per kernel would not decide" in next(iter(hopeless.cells()))[2].sentence


def test_a_cell_whose_two_accounts_disagree_says_so_and_asks_for_no_boots() -> None:
    view = only(verdict="inconclusive", warnings=(MixedAccounts(-0.44, -2.05),))
    item = next(iter(view.cells()))[2]
    assert item.sentence.startswith("inconclusive: REP counted once: -0.44 %; counted per 8 bytes moved: -2.05 %")
    assert "boots do not change that" in item.sentence and "unknown" not in item.sentence
    assert not item.notes, "said once"


def test_what_has_a_verdict_never_reads_as_no_difference() -> None:
    """One instruction more of 100,000 of a case without a noise floor was "0.00 %  (R)", and so the answer."""
    figures = {"baseline": 100_000.0, "patched": 100_001.0, "effect_percent": 0.001, "interval_percent": (0.001, 0.001)}
    functions = Because(changed=(("vfs_read", 1.0), ("fput", -0.04)))
    row = cell("mine", "instructions", unit="instructions/op", verdict="regressed", because_line=functions, **figures)
    called, same = (replace(exact()[0], results=(one,)) for one in (row, replace(row, verdict="same")))
    text = " ".join(terminal.render(build(called, options=Options(causes=True))).split())
    assert "+0.001 % exact (R)" in text and "mine: +0.001 %, because of vfs_read (+1)" in text
    assert "vfs_read +1, fput -0.04" in text
    assert behind.text("instructions", (), functions, 0.001).startswith("+0.001 %: vfs_read")
    assert " 0.00 % exact =" in " ".join(terminal.render(build(same)).split())


def test_counts_that_vary_are_not_called_exact() -> None:
    """One seed of twenty with 30 % more: the bounds of its interval are both 0."""
    row = cell("mine", "instructions", verdict="same", effect_percent=0.0, interval_percent=(0.0, 0.0), **EXACT_CELL)
    for fact, told in ((1.0, "exact"), (0.0, "[0.00, 0.00]")):
        (found,) = build(replace(exact()[0], results=(replace(row, extra={"fact": fact}),))).cells()
        assert found[2].interval == told


def test_a_state_is_a_word_and_never_a_number() -> None:
    cells = [item for _, _, item in build(*gaps()).cells()]
    for item in cells:
        if item.source.state != "ok":
            assert item.effect == item.source.state
            assert item.interval == item.mark == ""
    assert "unsupported: needs CONFIG_ANON_VMA_NAME" in render(build(*gaps()))


def test_a_figure_that_is_not_finite_is_a_failure_not_a_verdict() -> None:
    item = next(iter(only(patched=math.nan, verdict="same").cells()))[2]
    assert (item.verdict, item.mark, item.effect) == ("failed", "", "failed")


def test_the_answer_has_what_a_kernel_said_when_it_panicked() -> None:
    """A patch that no kernel boots with "panics in getpid", and why stood behind all figures."""
    found = exact()[0]
    why = "7.0: panicked: Kernel panic - not syncing: pid: pid_max is 32768"
    dead = replace(found.results[0], state="panicked", verdict=None, patched=None, why=why)
    told = build(replace(found, results=(dead,))).headline.text
    assert told.endswith("On its console: Kernel panic - not syncing: pid: pid_max is 32768.")


def test_exact_rows_show_rep_bytes_and_say_when_tasks_did_not_contend() -> None:
    rows = {group.title: row for group, row, _ in build(*exact()).cells()}
    assert rows["pidfd_open"].aside == ("REP bytes: 6.12 0 B, 7.0 512.0 B",)
    alike = replace(exact()[0].results[0], extra={"rep_bytes_baseline": 232.0, "rep_bytes_patched": 232.01})
    assert prose.asides([alike], True, 4) == (), "what prints alike hides nothing"
    less = replace(alike, extra={"rep_bytes_baseline": 179.5, "rep_bytes_patched": 179.6})
    assert prose.asides([less], True, 4) == (), "a tenth of a byte an operation is what seeds vary by"
    few = replace(alike, extra={"rep_bytes_baseline": 0.0364, "rep_bytes_patched": 0.0456})
    assert prose.asides([few], True, 4) == (), "nor does less than a byte"
    alone = replace(alike, patched_label="")
    assert prose.asides([alone], True, 4) == ("REP bytes: 6.12 232.0 B",)
    failed = replace(alike, patched_label="6.18", state="hung", extra={})
    unlike = replace(alike, extra={"rep_bytes_baseline": 232.0, "rep_bytes_patched": 240.0})
    assert prose.asides([failed, unlike], True, 4) == ("REP bytes: 6.12 232.0 B, 7.0 240.0 B",)
    assert rows["path_lookup"].aside == ()
    assert rows["pipe (memcg)"].aside == ("uncontended path length (several tasks, one CPU)",)
    timed_result = replace(exact()[0], experiment=experiment("6.12", "7.0"))
    assert not any(row.aside for _, row, _ in build(timed_result).cells())


def test_what_is_said_of_many_undecided_results_is_said_once() -> None:
    """Five kernels after two seeds had 25 lines of one sentence, in text and on the page."""
    plain: dict[str, Any] = {"verdict": None, "interval_percent": None, "p_value": None}
    found = tuple(cell(f"case{n}", patched_label=label, **plain) for n in range(4) for label in ("6.18", "7.0"))
    made = build(ExperimentResult(experiment=experiment("6.12", "6.18", "7.0"), results=found))
    assert sections.undecided(made) == ["8 results: descriptive only, no verdict"]
    few = build(ExperimentResult(experiment=experiment("6.12", "6.18", "7.0"), results=found[:2]))
    assert sections.undecided(few) == [f"case0 on {label}: descriptive only, no verdict" for label in ("6.18", "7.0")]
    assert "<p><b>6.18, 7.0</b> descriptive only, no verdict</p>" in page.render(few)


def test_only_rep_bytes_that_are_as_much_as_counts_stand_beside_a_table() -> None:
    """163 system calls had 85 lines of them, most of 8 bytes more or less among thousands of instructions."""
    found = exact()[0]
    little = replace(found.results[1], extra={"rep_bytes_baseline": 232.0, "rep_bytes_patched": 240.0})
    told = sections.beside_counts(build(replace(found, results=(found.results[0], little))))
    assert told == [
        "pidfd_open: REP bytes: 6.12 0 B, 7.0 512.0 B",
        "REP bytes of 1 other case changed by less than 1 % of the instructions (--causes)",
    ]
    assert sections.beside_counts(build(replace(found, results=(little,)))) == []


def test_cases_that_share_a_name_are_told_apart_by_their_parameters() -> None:
    cells = tuple(cell("pipe", params={"writers": n, "bytes": "64"}) for n in ("1", "5"))
    view = build(ExperimentResult(experiment=experiment("6.12", "7.0"), results=cells))
    assert [group.title for group, _, _ in view.cells()] == ["pipe writers=1", "pipe writers=5"]


def test_a_sweep_shows_versions_and_steps_instead_of_a_wide_table() -> None:
    view = build(*sweep())
    assert view.tables == ()
    rows = {row.kernel: row for row in view.sweeps[0].rows}
    assert (rows["6.12"].change, rows["6.12"].mark) == ("+68.04 %", "(R)")
    assert rows["6.16"].value == "unsupported"
    assert rows["7.3"].change == ""
    assert "2 steps" in view.summary


def test_one_kernel_alone_has_figures_and_no_verdict() -> None:
    fields: dict[str, Any] = {"patched": None, "effect_percent": None, "interval_percent": None, "verdict": None}
    lonely = cell("pipe", patched_label="", warnings=(Remark("few", "few boots"),), **fields)
    text = render(build(ExperimentResult(experiment=experiment("6.12", plan=plans.Run()), results=(lonely,))))
    assert "489.0 ns" in text
    assert "[1] few boots" in text
    assert "descriptive only" not in text


def test_many_kernels_keep_the_base_column_absolute_in_each_panel() -> None:
    text = render(build(*several()))
    assert text.count("489.0 ns") == 4
    assert "path_lookup syscall=access on 7.0 (unsupported: syscall missing)" in text


def test_the_gate_stands_on_top() -> None:
    assert render(build(*exact())).startswith("GATE: failed the gate")


def test_nothing_measured_is_said() -> None:
    assert "Nothing was measured." in render(build(ExperimentResult(experiment=experiment("6.12"), results=())))


def test_colour_is_only_there_when_asked() -> None:
    view = build(*timed())
    assert "\x1b" not in render(view)
    assert "\x1b[32m(I)" in render(view, colour=True)


def test_boots_that_were_not_needed_are_not_missing() -> None:
    result, detail = exact()
    done = replace(result, boots_done=92, boots_planned=120, boots_spared=28)
    view = build(done, detail)
    assert "92 boots done; stopped early where decided: 28 were not needed" in view.summary
    assert not any("not done" in text for text in view.not_measured)
    view = build(replace(done, boots_done=90), detail)
    assert "90 of 120 boots done" in view.summary and any(
        "Planned boots not done: 2; kdelta resume " in one for one in view.not_measured
    )


def test_boots_that_were_left_out_were_not_done() -> None:
    result, detail = exact()
    hung = replace(result, boots_done=45, boots_planned=45, boots_left_out=3)
    view = build(hung, detail)
    assert view.summary.endswith("42 of 45 boots done, 3 left out: earlier ones had no figure")
    assert not any("not done" in text for text in view.not_measured)
    early = build(replace(hung, boots_done=10, boots_planned=40, boots_left_out=7, decided=True), detail)
    assert "decided after 3 boots, 7 left out" in early.summary
    failed = tuple(replace(cell, verdict=None, state="failed") for cell in result.results)
    none = build(replace(hung, results=failed, boots_done=10, boots_planned=40, boots_left_out=0, decided=True), detail)
    assert none.summary.endswith("failed; stopped early, after 10 boots")
    doubtful = tuple(replace(cell, verdict="inconclusive") for cell in result.results)
    undecided = replace(hung, results=doubtful, boots_done=10, boots_planned=40, boots_left_out=0, decided=True)
    assert build(undecided, detail).summary.endswith("inconclusive; stopped early, after 10 boots")


def test_of_what_is_not_shown_nothing_is_told_unchanged_that_was_not_decided() -> None:
    words = ("regressed", "same", "inconclusive", None)
    hidden = [cell("pipe", f"m{n}", primary=False, verdict=word) for n, word in enumerate(words)]
    view = build(ExperimentResult(experiment=experiment("6.12", "7.0"), results=(cell("pipe"), *hidden)))
    assert (
        "Measured but not shown here: other metrics (4 figures, 1 of them changed, 2 undecided)." in view.not_measured
    )


def test_a_version_without_a_verdict_is_told_in_its_sweep_and_in_the_answer() -> None:
    result, detail = sweep()
    mixed = replace(detail.sweeps[0].points[-1], unseen=MixedAccounts(0.3, 1.7))
    few = replace(detail.sweeps[0].points[1], unseen=StepUnseen(2, 8))  # true of the whole sweep, and told of it
    points = (detail.sweeps[0].points[0], few, *detail.sweeps[0].points[2:-1], mixed)
    swept = replace(detail.sweeps[0], points=points, steps=detail.sweeps[0].steps[1:])
    view = build(result, replace(detail, sweeps=(swept,)))
    rows = {row.kernel: row for row in view.sweeps[0].rows}
    assert (rows["7.3"].mark, rows["6.12"].mark) == ("?", "")
    assert "; 1 undecided" in view.headline.text
    for form in (terminal, markdown, mail, page):
        assert "only one of them is a change" in " ".join(str(form.render(view)).split())


def test_floors_of_what_crosses_are_told_once_and_of_many_cases_the_first() -> None:
    """A sweep of 28 cases on several CPUs had a hundred lines of them."""
    cells = [cell(f"c{n}", "instructions", **EXACT_CELL, floor_percent=0.5 if n else 0.1) for n in range(9)]
    cells += [cell("c1", "transfers", **EXACT_CELL, floor_percent=floor) for floor in (10.0, 365.71, 34.59)]
    cells += [cell("c1", "waits", **EXACT_CELL, floor_percent=10.0)]
    asked = replace(experiment("6.12", "7.0"), mode="exact", machine=MachineOptions(smp=4))
    told = build(ExperimentResult(experiment=asked, results=tuple(cells))).measured
    (floors,) = [text for text in told if text.startswith("Noise floor")]
    assert floors == (
        "Noise floor: 0.10 % (c0); 0.50 % (c1, c2, c3, c4, c5, c6, 2 more); "
        "10.00 % of transfers and waits, or 0.05 an operation where that is more."
    )


@pytest.mark.parametrize(
    ("floors", "told"),
    [
        ((10.0, 640.0), "10.00 % of transfers and waits, or 0.05 an operation where that is more"),
        ((250.0, 640.0), "0.05 an operation of transfers and waits"),
    ],
)
def test_a_floor_that_is_the_least_difference_is_no_percentage(floors: tuple[float, float], told: str) -> None:
    """Waits that are few in the only case stood as "640.00 % of waits"."""
    figures = {10.0: 1.0, 250.0: 0.02, 640.0: 0.0078125}
    cells = [
        cell("a", metric, **EXACT_CELL | {"baseline": figures[floor], "patched": 0.0, "floor_percent": floor})
        for metric, floor in zip(("transfers", "waits"), floors, strict=True)
    ]
    asked = replace(experiment("6.12", "7.0"), mode="exact", machine=MachineOptions(smp=4))
    measured = build(ExperimentResult(experiment=asked, results=tuple(cells))).measured
    assert f"Noise floor: {told}." in measured


def test_that_transfers_are_not_those_of_a_programs_own_memory_is_told() -> None:
    """Two counters in one line and two apart counted alike, and nothing said why."""
    asked = replace(experiment("6.12", "7.0"), mode="exact", machine=MachineOptions(smp=4))
    told = build(ExperimentResult(experiment=asked, results=())).measured
    assert any("What programs share among themselves, as threads a counter, is not in them." in text for text in told)


def test_why_of_a_sweep_has_each_step_with_its_cause() -> None:
    told = functions.causes(build(*sweep())).splitlines()
    steps = [step for one in sweep()[1].sweeps for step in one.steps]
    assert steps and sum(line.endswith(("(I)", "(R)")) and line[:1] != " " for line in told) == len(steps)


def test_why_of_a_sweep_takes_what_is_not_decided_for_no_level() -> None:
    """kdelta why, of a sweep that was ended after three boots, said "no step" of each case."""
    result, detail = sweep()
    old, *_, new = detail.sweeps[0].points
    lost = SweepPoint(kernel="6.18", value=None, state="lost", why="the guest wrote no records")
    open_ = replace(new, unseen=TooFewSeeds(1, 5))
    swept = replace(detail.sweeps[0], points=(old, lost, open_), steps=())
    told = " ".join(functions.causes(build(result, replace(detail, sweeps=(swept,)))).split())
    assert "no step" not in told
    assert "6.18: not measured: the guest wrote no records" in told
    assert f"{new.kernel}: not decided: a verdict needs 5 seeds, only 1 available" in told


def test_why_of_what_measured_nothing_says_so() -> None:
    """kdelta why, of a patch that no case executes: a title, and nothing below it."""
    told = functions.causes(build(ExperimentResult(experiment=experiment("6.12", "7.0"), results=())))
    assert told.endswith("\n\nNothing was measured.\n")


@pytest.mark.parametrize(
    ("patched", "effect", "told"), [(5569.0, 68.04, False), (5568.9, 68.04, False), (5572.0, 68.13, True)]
)
def test_a_step_that_is_not_what_the_figures_beside_it_differ_by_is_explained(
    patched: float, effect: float, told: bool
) -> None:
    result, detail = sweep()
    first = replace(detail.sweeps[0].steps[0], patched=patched, effect_percent=effect)
    one = replace(detail.sweeps[0], steps=(first, *detail.sweeps[0].steps[1:]))
    view = build(result, replace(detail, sweeps=(one,)))
    assert any("over all its seeds" in line for line in view.measured) == told

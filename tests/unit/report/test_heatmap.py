# SPDX-License-Identifier: GPL-2.0-or-later
"""A sweep over many cases is one map: a line for each case, steps marked, the largest told."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace
from rich.cells import cell_len

from kdelta.model import UNBOOTED, Because, ExperimentResult, Remark, plans
from kdelta.report import heatmap, html, mail, markdown, terminal
from kdelta.report.view import Options, View, build
from kdelta.results.types import CellName, Detail, Sweep, SweepPoint, SweepStep
from kdelta.verdict.warnings import MixedCalls
from unit.report.report_samples import experiment

LABELS = ("6.1.192", "6.12.117", "7.0.13", "7.3.4")
Values = tuple[float | None, ...]


def swept(case: str, values: Values, unseen: str = "") -> Sweep:
    """A step wherever the figure changes; ``None`` is a kernel without the case."""
    points, steps, last = [], [], None
    for label, value in zip(LABELS, values, strict=True):
        if value is None:
            points.append(SweepPoint(kernel=label, value=None, state="unsupported", why="needs CONFIG_X"))
            continue
        points.append(SweepPoint(kernel=label, value=value, unseen=Remark("u", "5 %") if label == unseen else None))
        if last is not None and value != last[1]:
            steps.append(
                SweepStep(
                    last=last[0],
                    first=label,
                    baseline=last[1],
                    patched=value,
                    effect_percent=100 * (value / last[1] - 1),
                    verdict="regressed" if value > last[1] else "improved",
                    because_line=Because(changed=(("vfs_read", 9.0),)),
                )
            )
        last = (label, value)
    cell = CellName(case=case, metric="instructions")
    return Sweep(cell=cell, unit="instructions/op", better="lower", points=tuple(points), steps=tuple(steps))


def view(*more: Sweep, others: int = 6) -> View:
    plain = [swept(f"syscalls/plain-{n}", (100.0,) * 4) for n in range(others)]
    result = ExperimentResult(
        experiment=experiment(*LABELS, mode="exact", plan=plans.Sweep()), results=(), boots_done=20, boots_planned=48
    )
    return build(result, Detail(sweeps=(*plain, *more)))


def row(text: str, name: str) -> list[str]:
    return next(line.split()[1:] for line in text.splitlines() if line.startswith(name))


def test_a_last_version_that_tells_nothing_against_the_first_has_no_figure() -> None:
    calls = swept("syscalls/stat", (1000.0, 780.0, 780.0, 8580.0))
    told = replace(calls, whole=MixedCalls(758.0, 1.0, (("access", 1.0, 9.0),), 0, "seed"))
    assert row(terminal.render(view(calls)), "stat")[-1] == "+758"
    assert row(terminal.render(view(told)), "stat")[-1] == "?"


def test_what_is_zero_on_every_version_is_as_before() -> None:
    """Transfers of lseek(2) on several CPUs: ". ." and no sign in the last column, which the key does not have."""
    assert row(terminal.render(view(swept("syscalls/lseek", (0.0,) * 4))), "lseek")[-4:] == ["."] * 4


def test_a_figure_that_is_back_where_it_was_is_as_before() -> None:
    """Up and back to the very same count was "+.01", the last version against the first."""
    assert row(terminal.render(view(swept("syscalls/stat", (100.0, 150.0, 150.0, 100.0)))), "stat")[-1] == "."


def from_zero() -> Sweep:
    """Transfers that are none on the first two versions."""
    moved = swept("syscalls/stat", (0.1, 0.1, 3.0, 3.1))
    points = tuple(replace(one, value=0.0) for one in moved.points[:2]) + moved.points[2:]
    first = replace(moved.steps[0], baseline=0.0, effect_percent=math.inf)
    return replace(moved, points=points, steps=(first, *moved.steps[1:]))


def test_a_step_from_zero_says_what_it_is_now_and_may_be_the_largest() -> None:
    """It was "-  (R)", and the headline's largest step the one of 3.3 % behind it."""
    text = terminal.render(view(from_zero()))
    assert "Largest: syscalls/stat on 7.0.13 now 3" in " ".join(text.split())
    assert "syscalls/stat: instructions, 7.0.13: now 3 (R)" in text
    alone = terminal.render(view(from_zero(), others=0))
    assert "now 3  (R)" in alone and " -  (R)" not in alone


def test_a_version_that_was_not_booted_yet_is_no_failed_one() -> None:
    begun = swept("syscalls/stat", (1000.0, 780.0, 780.0, None))
    last = replace(begun.points[-1], state="lost", why=UNBOOTED)
    shown = view(replace(begun, points=(*begun.points[:-1], last)))
    assert row(terminal.render(shown), "stat") == ["-22", ".", "-22"]


def test_each_case_is_one_line_with_its_steps_and_states() -> None:
    shown = view(
        swept("syscalls/stat", (1000.0, 780.0, 780.0, 8580.0)),
        swept("syscalls/late", (None, None, 50.0, 51.0)),
        swept("syscalls/gone", (50.0, 50.0, None, None)),
        swept("syscalls/open", (50.0, 50.0, 50.0, 50.0), unseen="7.0.13"),
    )
    text = terminal.render(shown)
    assert row(text, "syscalls:") == ["instructions", "6.12", "7.0", "7.3", "all"]
    assert row(text, "stat") == ["-22", ".", "x11", "+758"]
    assert row(text, "late") == ["u", "new", "+2.0", "+2.0"]
    assert row(text, "gone") == [".", "u", "u", "."]
    assert row(text, "open") == [".", "?", ".", "."]
    undecided = view(swept("syscalls/stat", (1000.0,) * 4, unseen="7.0.13"))
    (told,) = [one for one in undecided.sweeps if one.title.startswith("syscalls/stat")]
    points = (*told.source.points[:-1], replace(told.source.points[-1], value=1220.0))
    moved = view(replace(told.source, points=points))
    assert row(terminal.render(moved), "stat")[1:] == ["?", ".", "?"], "+22, and no step was decided"
    assert row(text, "plain-0") == [".", ".", ".", "."]
    assert all(cell_len(line) <= 72 for line in text.splitlines())
    largest = text.index("The largest steps")
    assert largest < text.index("syscalls/stat: instructions, 7.3.4: +1000.00 % (R)") < text.index("because vfs_read")
    assert text.count("6.12.117 ") < 5  # no list of versions for each case


def test_a_few_cases_are_shown_version_by_version() -> None:
    few = view(swept("syscalls/stat", (1000.0, 780.0, 780.0, 800.0)), others=5)
    assert heatmap.heat_maps(few.sweeps) == ()
    assert "The largest steps" not in terminal.render(few)
    assert "6.12.117" in terminal.render(few)


def test_suites_and_metrics_have_maps_of_their_own() -> None:
    maps = heatmap.heat_maps(view(swept("pipe", (1.0, 2.0, 2.0, 2.0)), swept("wis/pipe1", (1.0,) * 4)).sweeps)
    assert [(one.title, len(one.lines)) for one in maps] == [
        ("syscalls: instructions", 6),
        ("instructions", 1),
        ("wis: instructions", 1),
    ]


def test_the_page_colours_steps_by_size_and_leads_to_each_case() -> None:
    page = html.render(view(swept("syscalls/stat", (1000.0, 999.0, 900.0, 1800.0))))
    assert 'class="v-improved l1"' in page
    assert 'class="v-improved l2"' in page
    assert 'class="v-regressed l3" title="7.3.4 1800/op +100.00 % (R): because vfs_read +9"' in page
    assert '<a href="#sweep-7">stat</a>' in page
    assert 'id="sweep-7"' in page


def test_mail_and_markdown_have_the_map_too() -> None:
    shown = view(swept("syscalls/stat", (1000.0, 780.0, 780.0, 800.0)))
    assert row(mail.render(shown), "stat") == ["-22", ".", "+2.6", "-20"]
    assert r"| stat | \-22 | . | \+2.6 | \-20 |" in markdown.render(shown)


@pytest.mark.parametrize(
    ("percent", "text"),
    [(78.0, "+78"), (-12.34, "-12"), (9.96, "+10"), (-0.094, "-.09"), (0.004, "+.01"), (1150, "x12"), (1e9, "x1k+")],
)
def test_a_change_fits_four_characters(percent: float, text: str) -> None:
    assert heatmap.short(percent) == text
    assert len(text) <= 4


def test_many_versions_wrap_and_versions_of_one_release_stay_apart() -> None:
    labels = tuple(f"6.12.{n}" for n in range(30))
    points = tuple(SweepPoint(kernel=label, value=1.0) for label in labels)
    cell = CellName(case="pipe", metric="instructions")
    one = Sweep(cell=cell, unit="instructions", better="lower", points=points, steps=())
    result = ExperimentResult(experiment=experiment(*labels, mode="exact", plan=plans.Sweep()), results=())
    shown = build(result, Detail(sweeps=(one,) * 7))
    (found,) = heatmap.heat_maps(shown.sweeps)
    assert found.versions == labels[1:]
    lines = heatmap.lines_of(found)
    assert all(cell_len(line) <= 72 for line in lines)
    assert sum(line.count(".") for line in lines if line.startswith("pipe")) >= 29 * 7


def many() -> View:
    """Thirty cases: 26 as before, and four with something to see, the largest step last."""
    return view(
        swept("syscalls/a_case_whose_name_is_long-4096", (100.0, 101.0, 101.0, 101.0)),
        swept("syscalls/a_case_whose_name_is_long-65536", (100.0, 100.0, 98.0, 98.0)),
        swept("syscalls/late", (None, None, 50.0, 50.0)),
        swept("syscalls/stat", (1000.0, 780.0, 780.0, 8580.0)),
        others=26,
    )


def test_of_many_cases_the_largest_steps_come_first_and_what_has_none_is_folded() -> None:
    (found,) = heatmap.heat_maps(many().sweeps)
    assert [line.name.rpartition("-")[2] for line in found.lines] == ["stat", "65536", "4096", "late"]
    assert len(found.still) == 26
    text = terminal.render(many())
    assert text.index("\nstat ") < text.index("long-65536 ") < text.index("long-4096 ")
    assert "As before on all versions (26): plain-0, plain-1," in text and "\nplain-0" not in text
    page = html.render(many())
    assert page.count('<tr><th scope="row" title=') == 4
    assert "As before on all versions (26)" in page and '<li><a href="#sweep-1">plain-0</a></li>' in page
    assert "As before on all versions (26)" in markdown.render(many())


def test_names_are_whole_where_the_squares_leave_room_for_them() -> None:
    """Of five kernels a map was headed "contention:…structions", beside 20 empty columns."""
    found = heatmap.heat_maps(
        view(*(swept(f"contention/fault_threads-{n}", (1.0, 2.0, 2.0, 2.0)) for n in range(3))).sweeps
    )
    (one,) = (one for one in found if one.title.startswith("contention"))
    lines = heatmap.lines_of(one)
    assert lines[0].startswith("contention: instructions ") and not any("…" in line for line in lines)
    assert heatmap.lines_of(one, 40)[0] == "contention: instructions"


def test_the_first_line_has_the_step_that_the_headline_names() -> None:
    shown = view(
        swept("syscalls/dearer", (1000.0, 1450.0, 1450.0, 1450.0)),
        swept("syscalls/cheaper", (1000.0, 630.0, 630.0, 630.0)),
        others=26,
    )
    (found,) = heatmap.heat_maps(shown.sweeps)
    assert [line.name for line in found.lines] == ["cheaper", "dearer"]
    assert "Largest: syscalls/cheaper" in shown.headline.text


def test_plain_text_shows_the_first_lines_of_a_long_map_and_all_when_asked_for_causes() -> None:
    moved = [swept(f"syscalls/moved-{n}", (1000.0, 1000.0 + n, 1000.0 + n, 1000.0 + n)) for n in range(1, 61)]
    shown = view(*moved)
    text = terminal.render(shown)
    assert sum(line.startswith("moved-") for line in text.splitlines()) == 40
    assert "20 more, with steps of at most 2 % (--causes shows their lines): moved-20, moved-19," in " ".join(
        text.split()
    )
    whole = terminal.render(build(shown.result, shown.detail, Options(causes=True)))
    assert sum(line.startswith("moved-") for line in whole.splitlines()) == 60


def test_a_page_with_a_map_tells_the_largest_steps_and_folds_the_versions_of_each_case() -> None:
    page = html.render(many())
    assert (
        page.index("The largest steps")
        < page.index("+1000.00 % (R)</span> because vfs_read")
        < page.index('<details class="each">')
    )
    assert page.index('<details class="each">') < page.index('id="sweep-1"')
    assert "<svg" not in page, "the map shows what a chart for each case would"
    assert '<details class="each">' not in html.render(view(others=3))


def test_a_title_that_is_wider_than_names_may_be_has_a_line_of_its_own() -> None:
    (one,) = heatmap.heat_maps(view(swept("syscalls/dup", (100.0, 110.0, 110.0, 120.0))).sweeps)
    head, versions, *_ = heatmap.lines_of(one, width=40)
    assert head == "syscalls: instructions" and versions.split() == ["6.12", "7.0", "7.3", "all"]
    assert heatmap.lines_of(one, width=100)[0].split() == ["syscalls:", "instructions", "6.12", "7.0", "7.3", "all"]


@pytest.mark.parametrize("others", [6, 2])
def test_plain_text_says_why_a_version_is_not_decided(others: int) -> None:
    """A map, and a table without a sentence, had a question mark for it; JSON and pages knew why."""
    undecided = [swept(f"syscalls/{name}", (100.0,) * 4, unseen="7.0.13") for name in ("stat", "dup")]
    shown = view(*undecided, others=others)
    for form in (terminal, mail):
        text = " ".join(str(form.render(shown)).split())
        assert "- syscalls/stat on 7.0.13: 5 % - syscalls/dup on 7.0.13: 5 %" in text
    assert "Not decided" not in terminal.render(view(others=others))


def test_what_is_said_of_many_versions_is_said_once() -> None:
    shown = view(*(swept(f"syscalls/{n}", (100.0,) * 4, unseen="7.0.13") for n in range(7)))
    assert "- 7 results: 5 %" in terminal.render(shown)

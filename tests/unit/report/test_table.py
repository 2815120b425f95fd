# SPDX-License-Identifier: GPL-2.0-or-later
"""The verdict table as text: whatever is wide, its marks stay."""

from __future__ import annotations

import pytest

from kdelta.report.table import table_lines
from kdelta.report.view import Cell, Group, Row, Table
from unit.report.report_samples import cell

WIDE = ("+2640.70 %", "[+1276.92, +6589.47]")
PLAIN = ("-26.11 %", "[-26.96, -25.27]")


def table(*figures: tuple[str, str]) -> Table:
    rows = tuple(
        Row(
            metric=f"metric {place}",
            baseline="0.01196 transfers/op",
            cells=(
                Cell(
                    kernel="7.0.13-cloud",
                    effect=effect,
                    interval=interval,
                    mark="(R)",
                    sentence="",
                    notes=(1, place + 2),
                    source=cell("contention/access_one"),
                ),
            ),
        )
        for place, (effect, interval) in enumerate(figures)
    )
    groups = (Group(title="contention/access_one", rows=rows),)
    return Table(baseline="6.12.117-cloud", kernels=("7.0.13-cloud",), groups=groups)


@pytest.mark.parametrize("figures", [(PLAIN, WIDE), (WIDE,), (PLAIN, PLAIN)])
@pytest.mark.parametrize("width", [72, 80, 100])
def test_no_mark_is_cut_and_no_line_is_too_long(figures: tuple[tuple[str, str], ...], width: int) -> None:
    lines = table_lines(table(*figures), width)
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    assert "…" not in text
    for place, (effect, interval) in enumerate(figures):
        assert effect in text and interval in text
        assert f"(R) [1,{place + 2}]" in text


def test_an_interval_is_beside_its_effect_where_there_is_room() -> None:
    assert any(f"{PLAIN[0]} {PLAIN[1]}  (R)" in line for line in table_lines(table(PLAIN), 100))


def test_a_line_that_moves_on_one_kernel_is_no_row_of_the_others() -> None:
    def row(metric: str, *kernels: str) -> Row:
        shown = (
            Cell(kernel=k, effect=WIDE[0], interval=WIDE[1], mark="(R)", sentence="", notes=(), source=cell("a"))
            for k in kernels
        )
        return Row(metric=metric, baseline="0/op", cells=tuple(shown))

    groups = (
        Group(title="a", rows=(row("transfers", "one", "two"), row("transfers of its_lock", "one"))),
        Group(title="b", rows=(row("transfers of its_lock", "one"),)),
    )
    lines = table_lines(Table(baseline="base", kernels=("one", "two"), groups=groups), 72)
    second = lines[lines.index("") :]
    assert sum("its_lock" in line for line in lines) == 2
    assert second[1].split() == ["transfers", "base", "two"]
    assert [line.split()[0] for line in second[3:] if not line.startswith(" ")] == ["a"]
    assert not any("its_lock" in line for line in second)


def test_how_a_kernel_ended_is_told_once_where_that_takes_lines() -> None:
    """A kernel that panics at boot had the three lines of its panic below each of twelve cases."""
    why = "panicked: while it booted: Kernel panic - not syncing: No working init found. Try passing init= option"
    ends = (
        (why, "panicked"),
        (why, "panicked"),
        ("failed: open: ENOENT", "failed"),
        ("failed: open: ENOENT", "failed"),
    )
    groups = tuple(
        Group(
            title=f"case{place}",
            rows=(
                Row(
                    metric="instructions",
                    baseline="9/op",
                    cells=(
                        Cell(
                            kernel="7.0", effect=state, interval="", mark="", sentence=said, notes=(),
                            source=cell(f"case{place}", state=state, verdict=None),
                        ),
                    ),
                ),
            ),
        )
        for place, (said, state) in enumerate(ends)
    )  # fmt: skip
    lines = table_lines(Table(baseline="6.12", kernels=("7.0",), groups=groups), 72, causes=True)
    below = [line.strip() for line in lines if line.startswith("      ")]
    assert below[0].startswith("panicked: while it booted") and below.count("panicked, as above") == 1
    assert below[-3:] == ["panicked, as above", "failed: open: ENOENT", "failed: open: ENOENT"]

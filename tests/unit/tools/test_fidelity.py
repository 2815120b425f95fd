# SPDX-License-Identifier: GPL-2.0-or-later
"""make fidelity: which kernel is nearest, what is put side by side, and where the table goes."""

from __future__ import annotations

import pytest

import fidelity
import marked
from kdelta.spec.workloads import catalogue

SERIES = ["5.10", "6.1", "6.12", "6.18", "7.0"]


@pytest.mark.parametrize(
    ("release", "wanted"),
    [("6.18.44-fc", "6.18"), ("6.1.0-56-amd64", "6.1"), ("6.11.2-arch1", "6.12"), ("5.4.0-1", "5.10"), ("7.9", "7.0")],
)  # fmt: skip
def test_the_nearest_series_is_counted(release: str, wanted: str) -> None:
    assert fidelity.nearest(release, SERIES) == wanted


def test_a_release_without_numbers_is_refused() -> None:
    with pytest.raises(ValueError, match="no release"):
        fidelity.nearest("next", SERIES)


def row(case: str, metric: str, value: float | None, state: str = "ok") -> dict[str, object]:
    return {
        "case": case,
        "metric": metric,
        "baseline": value,
        "state": state,
        "why": "",
        "primary": metric == "ns_per_op",
    }


def document(*rows: dict[str, object]) -> dict[str, object]:
    return {"results": list(rows)}


def counted(case: str, instructions: float, rep_bytes: float = 0.0) -> list[dict[str, object]]:
    figures = {"instructions": instructions, "user_instructions": 10.0, "rep_bytes": rep_bytes, "locked": 1.0}
    figures["rep_executions"] = 1.0 if rep_bytes else 0.0
    return [row(case, name, value) for name, value in figures.items()]


def test_what_was_measured_both_ways_stands_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    times = [row(f"syscalls/{name}", "ns_per_op", value) for name, value in (("b", 400.0), ("a", 250.0))]
    busy = row("syscalls/b", "p50", 900.0), row("syscalls/a", "p50", 100.0)
    native = document(*times, *busy, row("syscalls/c", "ns_per_op", None, "lost"))
    exact = document(*counted("syscalls/a", 90.0), *counted("syscalls/b", 90.0, 4096.0), *counted("syscalls/c", 5.0))
    found = fidelity.operations(native, exact)
    assert [(one.name, one.time_ns, one.instructions, one.per_word) for one in found] == [
        ("a", 100.0, 100.0, 100.0), ("b", 400.0, 100.0, 100.0 - 1 + 512),
    ]  # fmt: skip
    assert "syscalls/c is left out: lost" in capsys.readouterr().err


def test_the_table_replaces_the_one_before_and_nothing_else() -> None:
    found = [
        fidelity.Operation(
            name=f"op{n}", time_ns=50.0 * n, instructions=100.0 * n, rep_executions=0.0, rep_bytes=0.0, locked=0.0
        )
        for n in range(1, 9)
    ]
    made = fidelity.table(found, "Here.")
    assert "| instructions, REP once | 1.000 [1.000, 1.000] | 1.00 | 0.500 |" in made
    assert made.count("\n| op") == 8 + 1, "and the head"
    begin, end = marked.marks("fidelity")
    old = f"before\n{begin}\nold\n{end}\nafter"
    assert marked.written(old, made, "fidelity") == f"before\n{begin}\n{made}\n{end}\nafter"
    with pytest.raises(ValueError, match="no marks"):
        marked.written("nothing here", made, "fidelity")


def test_the_usual_operations_are_thirty_or_more_known_cases() -> None:
    known = catalogue(())
    assert len(set(fidelity.OPERATIONS)) >= 30
    assert [name for name in fidelity.OPERATIONS if name not in known] == []

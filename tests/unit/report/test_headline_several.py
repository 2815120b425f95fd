# SPDX-License-Identifier: GPL-2.0-or-later
"""The answer where several kernels are compared with one, and where one stands alone."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from kdelta.attribution.line_table import NAMELESS
from kdelta.model import UNBOOTED, CellResult
from kdelta.report.headline import of_cells, of_sweeps
from unit.report.report_samples import cell

EXACT: dict[str, Any] = {"metric": "instructions", "unit": "instructions/op"}


def test_of_several_kernels_it_says_whose_console_it_was() -> None:
    failed = replace(cell("a", verdict=None, state="panicked"), patched_label="early")
    rows = [("a", cell("a", **EXACT)), ("a", failed)]
    told = of_cells(rows, True, False, {"early": "Kernel panic - not syncing: VFS"}).text
    assert told.endswith("On the console of early: Kernel panic - not syncing: VFS."), told


def test_a_kernel_that_went_on_and_complained_is_told_of_unless_the_baseline_did_so_too() -> None:
    """Fewer rounds of ChaCha made getrandom(2) "+1885 %, because report_bug is new": its WARN was in a note alone."""
    warned = "WARNING: CPU: 0 PID: 0 at lib/crypto/chacha.c:21 chacha_permute+0x2a0/0x2b0"
    rows = [("a", cell("a", **EXACT)), ("a", replace(cell("a", **EXACT), patched_label="7.1"))]
    told = of_cells(rows, True, False, {"7.0": warned}).text
    assert told.endswith(f"The kernel of 7.0 complains on its console, 6.12 does not: {warned}."), told
    told = of_cells(rows, True, False, {"7.0": warned, "7.1": "UBSAN: x"}).text
    assert "The kernel of 7.0 and 1 more complains" not in told and "The kernels of 7.0 and 1 more complain" in told
    elsewhere = warned.replace(":21", ":23").replace("0x2a0", "0x3a1").replace("PID: 0", "PID: 12")
    assert "complain" not in of_cells(rows, True, False, {"6.12": warned, "7.0": elsewhere}).text
    assert "complain" in of_cells(rows, True, False, {"6.12": "UBSAN: x", "7.0": elsewhere}).text
    assert "complain" not in of_cells(rows, True, False, {"6.12": warned}).text


def test_a_case_that_is_not_in_the_kernel_is_no_answer() -> None:
    """An own case whose operation does nothing executed "as many instructions", 0, without a word."""
    empty = replace(cell("a", **EXACT), baseline=0.0, patched=0.0)
    said = "Nothing of the kernel is executed: figures are 0 whatever changes."
    assert of_cells([("a", empty)], True, False).text.endswith(said)
    assert said not in of_cells([("a", empty), ("b", cell("b", **EXACT))], True, False).text


def test_of_a_series_too_a_kernel_that_complains_is_told_of() -> None:
    kernels = ("0/2 before the series", "1/2 a", "2/2 b")
    told = of_sweeps([], kernels, True, False, {"1/2 a": "WARNING: x", "2/2 b": "WARNING: x"}).text
    assert told.endswith(
        "The kernels of 1/2 a and 1 more complain on their consoles, 0/2 before the series does not: WARNING: x."
    )


def test_a_line_that_moves_now_for_one_that_no_longer_does_is_told_with_it() -> None:
    """16 threads of a mutex: futexes of a process are in a page of its own, which "moved more often: from 0"."""
    rows = [("threads", cell("threads", metric="transfers", unit="transfers/run", verdict="inconclusive"))]

    def line(name: str, before: float, after: float) -> tuple[str, CellResult]:
        verdict = "regressed" if after > before else "improved"
        row = cell("threads", metric=f"transfers of {name}", unit="transfers/op", verdict=verdict)
        return "threads", replace(row, baseline=before, patched=after)

    lines = [
        line("kmalloc-cg-2k", 0.0, 12706.0),
        line(f"{NAMELESS}futex_wake", 10040.0, 0.0),
        line("rq", 1781.0, 660.0),
    ]
    told = of_cells(rows, True, False, beside=lines).text
    assert told.endswith(
        "Of single lines kmalloc-cg-2k moves more often: from 0 to 12706 an operation, and the memory of futex_wake "
        "less often: from 10040 to 0; 1 more changed."
    ), told
    little = of_cells(rows, True, False, beside=[lines[0], line("rq", 900.0, 0.0)]).text
    assert little.endswith("kmalloc-cg-2k moves more often: from 0 to 12706 an operation; 1 more changed."), little


def test_of_a_kernel_alone_on_which_all_failed_there_are_no_figures() -> None:
    """kdelta run -- PROGRAM, which ends by a signal: "Figures of 6.18 alone"."""
    failed = replace(cell("a", patched_label="", verdict=None, state="failed"), baseline=None)
    assert of_cells([("a", failed)], False, False).text == "Nothing could be measured on 6.12: failed."
    some = [("a", failed), ("b", cell("b", patched_label="", verdict=None))]
    assert of_cells(some, False, False).text.startswith("Figures of 6.12 alone")
    assert of_cells([("a", failed)], False, True).text == "So far: nothing could be measured on 6.12: failed."
    unsupported = replace(failed, state="unsupported")
    assert of_cells([("a", unsupported)], True, False).text == "Nothing could be measured on 6.12: unsupported."
    waiting = replace(failed, state="lost", why=UNBOOTED)
    assert of_cells([("a", failed), ("b", waiting)], True, True).text == "So far: nothing is measured yet on 6.12."

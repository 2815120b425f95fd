# SPDX-License-Identifier: GPL-2.0-or-later
"""The report as a page of its own, opened as a file: its flame graph enlarges a frame without a script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from browser.reading import seen
from kdelta.model import ExperimentResult
from kdelta.report import html, view
from kdelta.results import answer
from unit.report.report_samples import cell, experiment
from unit.serve.serve_store import filled


def width(browser: Any, name: str) -> float:
    """How wide the frame of a function is, of the whole graph 1."""
    script = """const frames = [...document.querySelectorAll(".stacks a")];
        const one = frames.find(frame => frame.textContent == arguments[0]);
        return one.offsetWidth / document.querySelector(".stacks").offsetWidth;"""
    found: float = browser.execute_script(script, name)
    return found


@pytest.mark.parametrize("scheme", [pytest.param("light", marks=pytest.mark.full), "dark"])
def test_a_frame_is_enlarged_by_a_click_and_the_uppermost_shows_all(browser: Any, tmp_path: Path, scheme: str) -> None:
    with filled(tmp_path) as store:
        row = next(row for row in store.profiles("first", 0) if row.kernel)
        store.keep_stacks("first", (row.block, row.slot), 0, "0 0 0 [kernel]\n1 9 1 vfs\n2 40 1 memset\n1 49 1 audit")
        page = tmp_path / "report.html"
        page.write_text(html.render(view.build(*answer.result(store, "first"))), encoding="utf-8")
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    browser.get(page.as_uri())
    seen(browser, f"{scheme}-report", "compare:")
    before = width(browser, "memset")
    assert 0.3 < before < 0.5
    browser.find_element("link text", "memset").send_keys("\n")
    assert width(browser, "memset") > 0.99 and width(browser, "audit") < 0.01 and width(browser, "vfs") > 0.99
    seen(browser, f"{scheme}-report-enlarged", "compare:")
    browser.find_element("link text", "[kernel]").click()
    assert width(browser, "memset") == before


def test_a_figure_without_room_beside_its_name_is_left_out_not_cut(browser: Any, tmp_path: Path) -> None:
    """-157 behind dput read -1 where the frame ended."""
    with filled(tmp_path) as store:
        row = next(row for row in store.profiles("first", 0) if row.kernel)
        stacks = "0 0 0 [kernel]\n1 90 1 dput\n1 800 1 link_path_walk"
        store.keep_stacks("first", (row.block, row.slot), 0, stacks)
        page = tmp_path / "report.html"
        page.write_text(html.render(view.build(*answer.result(store, "first"))), encoding="utf-8")
    browser.get(page.as_uri())
    widths = range(30, 120, 3)
    fits = """const one = [...document.querySelectorAll(".stacks a")].find(a => a.textContent == "dput");
        one.style.right = "auto"; one.style.left = "0"; one.style.width = arguments[0] + "px";
        return one.scrollHeight > one.clientHeight || one.scrollWidth <= one.clientWidth"""
    assert all(browser.execute_script(fits, wide) for wide in widths)


def test_on_a_phone_the_verdicts_of_lines_with_long_names_are_in_sight(browser: Any, tmp_path: Path) -> None:
    """A field is one word: the table was 488 pixels wide in 358, and every verdict behind its edge."""
    named = ("transfers of task_struct.scx.tasks_node", "transfers of memory: _copy_from_iter, _copy_to_iter")
    rows = tuple(
        cell("thread_spawn:tasks=4", metric, effect_percent=42.2, interval_percent=(35.2, 47.2), verdict="regressed")
        for metric in named
    )
    page = tmp_path / "report.html"
    made = ExperimentResult(experiment=experiment("6.12.118", "7.0.13"), results=rows)
    page.write_text(html.render(view.build(made, options=view.Options(all_metrics=True))), encoding="utf-8")
    phone = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    browser.get(page.as_uri())
    sizes = (
        "const one = document.querySelector('table.results'); return [one.scrollWidth, one.parentElement.clientWidth]"
    )
    wide, room = browser.execute_script(sizes)
    assert wide <= room

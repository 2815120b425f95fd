# SPDX-License-Identifier: GPL-2.0-or-later
"""How pages look where there is little room, on paper, and to a reader without a mouse."""

from __future__ import annotations

import os
from typing import Any

import pytest

from browser.reading import seen
from kdelta.report.heatmap import LONG

pytestmark = pytest.mark.skipif("KDELTA_SHOTS_STORE" in os.environ, reason="screenshots are taken of another store")
FLAME = "/experiments/first/flame?case=0&from=0&to=1"
WIDER = "return [...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth).length"

SIZES = "return [...document.querySelectorAll('.scroll:has(table.results)')].map(e => [e.scrollWidth, e.clientWidth])"

TICK = """const tick = document.querySelector('.chart .tick'), chart = tick.ownerSVGElement;
    const scale = chart.getBoundingClientRect().width / chart.viewBox.baseVal.width;
    return scale * parseFloat(getComputedStyle(tick).fontSize)"""


def window(browser: Any, width: int, media: str = "screen") -> None:
    """A window of this width, or paper."""
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media})


@pytest.mark.parametrize(("width", "hinted"), [(390, True), (1280, False)])
def test_a_graph_that_is_wider_than_its_window_says_so(browser: Any, address: str, width: int, hinted: bool) -> None:
    window(browser, width)
    browser.get(address + FLAME)
    assert browser.find_element("class name", "hint").is_displayed() is hinted
    assert bool(browser.execute_script(WIDER)) is hinted


@pytest.mark.parametrize("page", ["/history?case=case0", "/experiments/first/functions"])
def test_a_telephone_shows_all_columns(browser: Any, address: str, page: str) -> None:
    window(browser, 390)
    browser.get(address + page)
    assert browser.find_elements("css selector", "table.figures")
    assert browser.execute_script(WIDER.replace("'.scroll'", "'.scroll:has(table)'")) == 0


@pytest.mark.parametrize("width", [390, pytest.param(800, marks=pytest.mark.full)])
@pytest.mark.parametrize(
    "page",
    (
        *("/experiments/decided", "/experiments/patched", "/experiments/patched/report", "/history?case=pidfd_open"),
        "/compare?a=6.12.118&ax=patched&b=6.12.118%2B0005-file-clear-a-scratch-page-in-dup",
    ),
)
def test_verdicts_and_differences_are_seen_without_scrolling(browser: Any, address: str, page: str, width: int) -> None:
    window(browser, width)
    browser.get(address + page)
    assert browser.find_elements("css selector", "table.results")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    sizes = browser.execute_script(SIZES)
    assert [size for size in sizes if size[0] > size[1]] == [], "content wider than its frame, in px"


def test_a_version_above_a_table_is_not_broken(browser: Any, address: str) -> None:
    window(browser, 1280)
    browser.get(address + "/experiments/patched")
    heads = browser.find_elements("css selector", ".results thead th.number:not(.kernel)")
    assert [one.text for one in heads] == ["6.12.118"]
    lines = """const range = document.createRange();
        range.selectNodeContents(arguments[0]);
        return range.getClientRects().length"""
    assert browser.execute_script(lines, heads[0]) == 1


@pytest.mark.parametrize(("width", "hinted"), [(390, True), (640, False)])
def test_the_words_of_a_chart_are_large_enough_on_a_telephone(
    browser: Any, address: str, width: int, hinted: bool
) -> None:
    window(browser, width)
    browser.get(address + "/history?case=case0")
    height = browser.execute_script(TICK)
    assert height >= 11
    assert browser.find_element("class name", "chart-hint").is_displayed() is hinted


def test_paper_has_the_causes_and_nothing_to_click(browser: Any, address: str) -> None:
    window(browser, 718, "print")
    browser.get(address + "/experiments/decided")
    shown = "return [...document.querySelectorAll(arguments[0])].map(e => e.checkVisibility())"
    assert set(browser.execute_script(shown, ".why p")) == {True}
    assert set(browser.execute_script(shown, "summary, nav, form, .drill")) == {False}
    browser.get(address + FLAME)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 718
    assert not browser.find_element("class name", "hint").is_displayed()


def test_a_long_map_says_that_it_scrolls_and_explains_each_sign(browser: Any, address: str) -> None:
    window(browser, 1280)
    browser.get(address + "/experiments/long")
    text = seen(browser, "long-map", "sweep:")
    assert f"largest steps first; the {LONG + 16} lines scroll" in text
    assert [one.text for one in browser.find_elements("css selector", ".signs li")][2:4] == [
        "? not decided",
        "new no figure before",
    ]


def test_a_telephone_does_not_break_a_version_above_functions(browser: Any, address: str) -> None:
    """6.12.118 stood there as 6.12.1 and 18."""
    window(browser, 390)
    browser.get(address + "/experiments/patched/functions?case=0&from=0&to=1")
    lines = """return [...document.querySelectorAll('.figures thead th.number')].map(one => {
        const range = document.createRange(); range.selectNodeContents(one);
        return [one.textContent, range.getClientRects().length]; })"""
    assert ["6.12.118", 1] in browser.execute_script(lines)

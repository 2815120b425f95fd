# SPDX-License-Identifier: GPL-2.0-or-later
"""A reader's way through the pages in a real Chromium: list, experiment, functions, console, comparison, sweep."""

from __future__ import annotations

import os
from typing import Any

import pytest

from browser.reading import click, press, seen


def walk(browser: Any, address: str, name: str) -> None:
    """List -> experiment -> functions -> experiment -> boots -> console -> history -> comparison."""
    browser.get(address + "/")
    seen(browser, f"{name}-list", "Experiments")
    if os.environ.get("KDELTA_SHOTS_STORE"):
        browser.get(address + "/?kind=compare")
    click(browser, "a[href='/experiments/first']" if not os.environ.get("KDELTA_SHOTS_STORE") else "ol h2 a")
    seen(browser, f"{name}-experiment", "compare:")
    click(browser, "a[href*='/functions']")
    seen(browser, f"{name}-functions", "Functions of")
    browser.back()
    click(browser, "a[href$='/boots']")
    seen(browser, f"{name}-boots", "Boots")
    click(browser, "tbody a")
    assert "Console" in seen(browser, f"{name}-console", "Console of block 0, slot 0")
    click(browser, "a[href='/history']")
    seen(browser, f"{name}-history", "History of")
    click(browser, "a[href='/compare']")
    seen(browser, f"{name}-compare", "Compare any two kernels")


def walk_sweep(browser: Any, address: str, name: str) -> None:
    """List of sweeps -> sweep with its chart -> functions of a step -> sweep -> console of a version that panicked."""
    browser.get(address + "/experiments")
    browser.find_element("css selector", "select[name=kind] option[value=sweep]").click()
    click(browser, ".filter button")
    click(browser, "ol h2 a")
    text = seen(browser, f"{name}-sweep", "sweep:")
    charts = browser.find_elements("css selector", "svg.chart")
    assert charts and all(chart.size["height"] > 100 for chart in charts)
    assert browser.find_elements("css selector", "svg.chart .step") and "step" in text
    browser.find_element("css selector", "figure summary").send_keys("\n")
    assert browser.find_element("css selector", "figure .data").is_displayed()
    click(browser, "a[href*='/functions']")
    assert "kernel instructions per operation" in seen(browser, f"{name}-step", "Functions of")
    browser.back()
    if faulty := browser.find_elements("css selector", "section[aria-labelledby=faulty] a"):
        press(browser, faulty[0])
        assert "panicked" in seen(browser, f"{name}-panic", "Console of block")
    elif "KDELTA_SHOTS_STORE" not in os.environ:
        pytest.fail("the sweep does not lead to the console of the version that panicked")


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [
        ("wide", 1000, "light"),
        ("phone", 390, "dark"),
        pytest.param("wide", 1000, "dark", marks=pytest.mark.full),
        pytest.param("phone", 390, "light", marks=pytest.mark.full),
    ],
)
def test_a_reader_clicks_through_all_pages(browser: Any, address: str, name: str, width: int, scheme: str) -> None:
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": name == "phone"}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    walk(browser, address, f"{name}-{scheme}")
    walk_sweep(browser, address, f"{name}-{scheme}")
    paper = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(252, 252, 250)" if scheme == "light" else "rgb(21, 24, 27)")


@pytest.mark.parametrize("width", [pytest.param(1280, marks=pytest.mark.full), 390])
@pytest.mark.skipif("KDELTA_SHOTS_STORE" in os.environ, reason="screenshots are taken of another store")
def test_the_map_of_many_cases_is_read_with_its_key(browser: Any, address: str, width: int) -> None:
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 1000}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get(address + "/experiments/map")
    assert "a step in percent" in seen(browser, f"map-{width}", "sweep:")
    key = browser.find_element("css selector", "p.key")
    assert key.size["width"] > 300 > key.size["height"]


@pytest.mark.skipif("KDELTA_SHOTS_STORE" in os.environ, reason="screenshots are taken of another store")
def test_hostile_names_and_consoles_do_nothing_in_a_browser(browser: Any, address: str) -> None:
    places = ("", "/boots", "/boots/0.0", "/boots/1.0", "/functions", "/report")
    hostile = [f"/experiments/hostile{place}" for place in places]
    hostile += [f"/experiments/hostile-sweep{place}" for place in places if place != "/boots/1.0"]
    for page in ("/", "/compare", "/history", *hostile):
        browser.get(address + page)
        assert browser.get_log("browser") == [], page
        width, window = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
        assert width <= window, f"{page} is {width} pixels wide in a window of {window}"
        assert browser.execute_script("return document.querySelectorAll('script, img, iframe').length") == 0


def test_the_forms_work_and_the_keyboard_reaches_everything(browser: Any, address: str) -> None:
    browser.get(address + "/history")
    browser.find_element("css selector", "select[name=by] option[value=kernel]").click()
    click(browser, ".filter button")
    assert "by=kernel" in browser.current_url
    seen(browser, "form-history", "History of")
    body = browser.find_element("tag name", "body")
    body.send_keys("\t")
    assert browser.switch_to.active_element.text == "Skip to the content"
    browser.switch_to.active_element.send_keys("\n")
    assert browser.execute_script("return document.activeElement.id") == "main"


@pytest.mark.parametrize("scheme", [pytest.param("light", marks=pytest.mark.full), "dark"])
@pytest.mark.skipif("KDELTA_SHOTS_STORE" in os.environ, reason="screenshots are taken of another store")
def test_call_stacks_findings_and_triage_are_read_by_everybody(browser: Any, address: str, scheme: str) -> None:
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    browser.get(address + "/experiments/first/flame?case=0&from=0&to=1&q=mem")
    assert "0.5 on 6.12" in seen(browser, f"{scheme}-flame", "Call stacks of")
    assert browser.find_elements("css selector", ".flame .found")
    tints = browser.find_elements("css selector", ".flame-key .tint")
    assert len({tint.value_of_css_property("background-color") for tint in tints}) == 3
    click(browser, ".flame a[href*='memset']")
    assert "Callers of memset" in seen(browser, f"{scheme}-flame-zoomed", "Call stacks of")
    for place, heading in (("findings", "Findings"), ("steps", "Steps"), ("watched", "Watched")):
        browser.get(f"{address}/{place}")
        assert browser.find_elements("css selector", ".experiments li"), place
        seen(browser, f"{scheme}-{place}", heading)

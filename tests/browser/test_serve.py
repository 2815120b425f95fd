# SPDX-License-Identifier: GPL-2.0-or-later
"""A reader's way through the pages in a real Chromium: list, experiment, functions, console, comparison, sweep.

KDELTA_SHOTS names a directory for screenshots; KDELTA_SHOTS_STORE the URL of a store to take them of.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium: pip install selenium")
support = pytest.importorskip("selenium.webdriver.support.ui")
exceptions = pytest.importorskip("selenium.common.exceptions")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no Chromium here: apt-get install chromium chromium-driver"
)
axe_core = pytest.importorskip("axe_core_python", reason="needs axe-core: pip install axe-core-python")
from unit.serve.serve_store import filled  # noqa: E402

AXE = (Path(axe_core.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
RUN_AXE = (
    "const done = arguments[0]; axe.run({resultTypes: ['violations']}).then(found => done(found.violations.map(one =>"
)
RUN_AXE += " [one.id, one.help, one.nodes.slice(0, 3).map(node => node.target + ': ' + node.failureSummary)])))"

OPTIONS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--window-size=1000,800"),
)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """``kdelta serve`` on a free port."""
    folder = tmp_path_factory.mktemp("browser")
    filled(folder).close()
    url = os.environ.get("KDELTA_SHOTS_STORE") or f"sqlite:///{folder / 'kdelta.sqlite'}"
    command = [sys.executable, "-c", "from kdelta.cli.main import main; main()", "serve", "--port", "0"]
    env = {**os.environ, "KDELTA_STORE": url}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip().rstrip("/")
            server.send_signal(signal.SIGINT)
            _, said = server.communicate(timeout=60)
            assert said == "Ctrl-C stops it.\nkdelta serve: stopped\n"  # no page complained
        finally:
            server.kill()


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for option in (*OPTIONS, f"--user-data-dir={tmp_path / 'profile'}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        found.set_page_load_timeout(120)
        yield found
    finally:
        found.quit()


def press(browser: Any, element: Any) -> None:
    """Follow a link or send a form as a reader without a mouse does, focus and Enter, until the next page is there.

    The page that is left carries a mark. Asking for one of its elements instead ends in "Node with given id does not
    belong to the document" where chromedriver (156) is asked while the pages change.
    """
    browser.execute_script("window.pressed = true")
    element.send_keys("\n")
    wait = support.WebDriverWait(browser, 120, ignored_exceptions=[exceptions.WebDriverException])
    wait.until(lambda page: page.execute_script("return !window.pressed && document.readyState == 'complete'"))


def click(browser: Any, selector: str) -> None:
    """Press the first element that ``selector`` finds."""
    press(browser, browser.find_element("css selector", selector))


def accessible(browser: Any, name: str) -> None:
    """Axe (Deque's engine of accessibility rules, WCAG 2.1 among them) finds nothing wrong with the page."""
    browser.execute_script(AXE)
    assert browser.execute_async_script(RUN_AXE) == [], name


def seen(browser: Any, name: str, heading: str) -> str:
    """The page's text, once it is the right one, fits its window and has complained of nothing, nor has axe."""
    assert browser.find_element("tag name", "h1").text.startswith(heading)
    width, window = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert width <= window, f"{name} is {width} pixels wide in a window of {window}"
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.styleSheets[0].cssRules.length") > 50
    if folder := os.environ.get("KDELTA_SHOTS"):
        browser.save_screenshot(str(Path(folder) / f"{name}.png"))
    if not name.startswith("phone"):  # the rules read the page, not its width
        accessible(browser, name)
    text: str = browser.find_element("tag name", "body").text
    return text


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


@pytest.mark.parametrize(("name", "width"), [("wide", 1000), ("phone", 390)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_reader_clicks_through_all_pages(browser: Any, address: str, name: str, width: int, scheme: str) -> None:
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": name == "phone"}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    walk(browser, address, f"{name}-{scheme}")
    walk_sweep(browser, address, f"{name}-{scheme}")
    paper = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(252, 252, 250)" if scheme == "light" else "rgb(21, 24, 27)")


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

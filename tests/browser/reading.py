# SPDX-License-Identifier: GPL-2.0-or-later
"""What a reader does with a page, and what is held of each.

KDELTA_SHOTS names a directory for screenshots; KDELTA_SHOTS_STORE the URL of a store to take them of.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

support = pytest.importorskip("selenium.webdriver.support.ui", reason="needs selenium: pip install selenium")
exceptions = pytest.importorskip("selenium.common.exceptions")
axe_core = pytest.importorskip("axe_core_python", reason="needs axe-core: pip install axe-core-python")

AXE = (Path(axe_core.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
RUN_AXE = (
    "const done = arguments[0]; axe.run({resultTypes: ['violations']}).then(found => done(found.violations.map(one =>"
)
RUN_AXE += " [one.id, one.help, one.nodes.slice(0, 3).map(node => node.target + ': ' + node.failureSummary)])))"

CUT = """return [...document.querySelectorAll('.site nav a')].filter(a => {
    const words = document.createRange(); words.selectNodeContents(a);
    return words.getClientRects().length > 1; }).length"""

SQUEEZED = """return [...document.querySelectorAll('p, li, caption')].filter(e => e.textContent.trim().length > 60
    && e.checkVisibility() && e.clientWidth > 1 && e.clientWidth < 100).map(e => e.textContent)"""


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
    wrong = browser.execute_async_script(RUN_AXE)
    assert wrong == [], f"{name}: {wrong}"


def seen(browser: Any, name: str, heading: str) -> str:
    """The page's text, once it is the right one, fits its window and has complained of nothing, nor has axe."""
    assert browser.find_element("tag name", "h1").text.startswith(heading)
    width, window = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert width <= window, f"{name} is {width} pixels wide in a window of {window}"
    assert browser.execute_script(CUT) == 0, f"{name}: words of the menu are cut in two"
    assert browser.execute_script(SQUEEZED) == [], f"{name}: a text stands in a column of a few letters"
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.styleSheets[0].cssRules.length") > 50
    if folder := os.environ.get("KDELTA_SHOTS"):
        browser.save_screenshot(str(Path(folder) / f"{name}.png"))
    if not name.startswith("phone"):  # the rules read the page, not its width
        accessible(browser, name)
    text: str = browser.find_element("tag name", "body").text
    return text

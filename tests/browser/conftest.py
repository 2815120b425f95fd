# SPDX-License-Identifier: GPL-2.0-or-later
"""A real Chromium, and ``kdelta serve`` on a filled store."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from kdelta.report.heatmap import LONG
from unit.serve.serve_store import boot, experiment, fill_map, filled

PATCHED = "6.12.118+0005-file-clear-a-scratch-page-in-dup"
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
OPTIONS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--window-size=1000,800"),
)


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """``kdelta serve`` on a free port."""
    folder = tmp_path_factory.mktemp("browser")
    with filled(folder) as store:
        fill_map(store)
        fill_map(store, "long", LONG + 16)
        store.create(experiment("decided", ("6.12", "7.0"), blocks=5, created_at="2026-01-02T10:00:00+00:00"))
        store.create(experiment("patched", ("6.12.118", PATCHED), blocks=5, created_at="2026-01-01T10:00:00+00:00"))
        for name, block, slot in product(("decided", "patched"), range(5), range(2)):
            store.save_boot(name, boot(block, slot))
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
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium: pip install selenium")
    if not (CHROMIUM and DRIVER):
        pytest.skip("no Chromium here: apt-get install chromium chromium-driver")
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

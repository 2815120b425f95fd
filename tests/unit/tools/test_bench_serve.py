# SPDX-License-Identifier: GPL-2.0-or-later
"""``tools/bench_serve.py`` fills a store as a runner does, and every page that it times is served from it."""

from __future__ import annotations

from pathlib import Path

import pytest

import bench_serve
from kdelta.store.store import Store


def test_every_page_that_is_timed_is_served_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Store(f"sqlite:///{tmp_path}/bench.sqlite") as store:
        assert bench_serve.fill(store, 138) == 138
        bench_serve.measure(store)  # how long a page takes is the machine's load; one that fails raises
    timed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert timed == [*bench_serve.PAGES, "/history?case=pidfd_open"]

# SPDX-License-Identifier: GPL-2.0-or-later
"""ARCHITECTURE.md names files that are there: in its walks and in its table of everyday changes."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PYTHON = re.compile(r"`([\w/]+\.py)`")


def section(title: str) -> str:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    return text.partition(f"## {title}\n")[2].partition("\n## ")[0]


def test_ten_everyday_changes_have_a_place_each() -> None:
    rows = [line for line in section("Where to open for an everyday change").splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 10
    for row in rows:
        named = PYTHON.findall(row)
        assert named and all((ROOT / name).is_file() for name in named), row


def test_every_file_of_the_two_walks_is_there() -> None:
    found = PYTHON.findall(section("Two walks"))
    whole = [name for name in found if "/" in name]
    assert len(whole) > 15
    assert [name for name in whole if not (ROOT / "src" / "kdelta" / name).is_file()] == []
    modules = {path.name for path in (ROOT / "src").rglob("*.py")}
    assert {name for name in found if "/" not in name} <= modules

# SPDX-License-Identifier: GPL-2.0-or-later
"""The import rules fire: each of them finds the file that breaks it, and ARCHITECTURE.md shows the same layers."""

from __future__ import annotations

from pathlib import Path

import pytest

import check_imports

RANKS = check_imports.ranked()


def found(tmp_path: Path, part: str, text: str) -> list[str]:
    path = tmp_path / "kdelta" / part / "file.py"
    path.parent.mkdir(parents=True)
    path.write_text(text + "\n")
    return check_imports.breaches(path, RANKS, tmp_path)


@pytest.mark.parametrize(
    ("part", "text", "breach"),
    [
        ("stats", "from kdelta.report import view", "report is not below stats"),
        ("verdict", "from kdelta import attribution", "attribution is not below verdict"),
        ("results", "def f():\n    import kdelta.experiment.runner", "experiment is not below results"),
        ("report", "from kdelta.stats import paired", "a report computes no statistics"),
        ("report", "from kdelta.stats import paired, warnings", "a report computes no statistics"),
        ("stats", "from kdelta.model import Kernel", "statistics take arrays"),
        ("stats", "from kdelta.model import Kernel, Warn", "statistics take arrays"),
        ("model", "from kdelta.nowhere import x", "unknown part"),
        ("newroom", "import os", "is in no layer"),
        ("store", "print(1)", "only cli prints or exits"),
        ("store", "import sys\nsys.exit(1)", "only cli prints or exits"),
    ],
)
def test_a_breach_is_found(tmp_path: Path, part: str, text: str, breach: str) -> None:
    (line,) = found(tmp_path, part, text)
    assert breach in line and "kdelta/" in line


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ("report", "from kdelta.stats import warnings as of_data"),
        ("report", "from kdelta.stats.warnings import Drift"),
        ("stats", "from kdelta.model import Remark, Warn"),
        ("results", "from kdelta.results import cells\nfrom kdelta.verdict import judge"),
        ("cli", "print(1)"),
    ],
)
def test_what_is_allowed_is_let_through(tmp_path: Path, part: str, text: str) -> None:
    assert found(tmp_path, part, text) == []


def test_no_rule_is_dead() -> None:
    for part, other in check_imports.FORBIDDEN:
        assert RANKS[other] < RANKS[part], f"the layers forbid {part} -> {other} already"
    for part, module in check_imports.ALLOWED:
        assert (part, check_imports.part_of(module)) in check_imports.FORBIDDEN


def test_architecture_shows_the_layers_of_the_check() -> None:
    assert check_imports.drawn() == check_imports.LAYERS

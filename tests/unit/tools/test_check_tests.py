# SPDX-License-Identifier: GPL-2.0-or-later
"""The rules for tests find a module without one, and a test in the wrong directory."""

from __future__ import annotations

from pathlib import Path

import pytest

import check_tests


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in {
        "src/kdelta/results/cells.py": "",
        "src/kdelta/results/agreement/__init__.py": "",
        "src/kdelta/results/agreement/agree.py": "",
        "src/kdelta/experiment/runner.py": "",
        "tests/unit/results/test_cells.py": "from kdelta.results import cells",
        "tests/unit/results/agreement/test_agree.py": "import kdelta.results.agreement.agree",
        "tests/unit/experiment/test_runner.py": "from kdelta.experiment.runner import run",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def found(tree: Path) -> list[str]:
    return check_tests.untested(tree / "src", tree / "tests") + check_tests.misplaced(tree / "src", tree / "tests")


def test_a_tree_in_order_has_no_breach(tree: Path) -> None:
    assert found(tree) == []


def test_a_module_without_a_test_is_named(tree: Path) -> None:
    (tree / "src/kdelta/results/agreement/counts.py").touch()
    assert found(tree) == ["kdelta.results.agreement.counts: no test imports it"]


def test_a_test_in_the_folder_of_another_part_is_named(tree: Path) -> None:
    (tree / "tests/unit/results/test_runner.py").write_text("from kdelta.experiment import runner")
    assert found(tree) == ["tests/unit/results/test_runner.py: imports nothing of kdelta.results"]


def test_a_folder_of_no_part_is_named(tree: Path) -> None:
    (tree / "tests/unit/session").mkdir()
    (tree / "tests/unit/session/test_it.py").touch()
    assert found(tree) == ["tests/unit/session/test_it.py: kdelta has no part 'session'"]

# SPDX-License-Identifier: GPL-2.0-or-later
"""make bench AGAINST=REVISION: old and new figures of one run."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import bench_against

ROOT = Path(__file__).resolve().parents[3]


def test_a_table_has_both_figures_and_their_ratio() -> None:
    now = {"report last": (0.5, "s"), "kdelta --help": (100.0, "ms")}
    then = {"report last": (2.0, "s"), "gone": (1.0, "x")}
    head, *rows = bench_against.table(now, then, "0123456789abcdef")
    assert head.split() == ["now", "0123456789", "ratio"]
    assert [row.split() for row in rows] == [
        ["report", "last", "0.50", "2.00", "s", "0.25"],
        ["kdelta", "--help", "100.00", "-", "ms", "-"],
        ["gone", "-", "1.00", "x", "-"],
    ]


def test_the_code_of_a_revision_is_what_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bench here is one that writes which kdelta it would start, as tools/bench.py writes its figures."""
    told = "import json,sys,kdelta; open(sys.argv[-1], 'w').write(json.dumps([kdelta.__file__, 1.0, sys.argv[1]]))"
    bench = tmp_path / "bench.py"
    bench.write_text(told)
    monkeypatch.setattr(bench_against, "BENCH", bench)
    tree = tmp_path / "then"
    (tree / "src" / "kdelta").mkdir(parents=True)
    (tree / "src" / "kdelta" / "__init__.py").write_text("")
    assert bench_against.figures_of("help", tree) == {str(tree / "src/kdelta/__init__.py"): (1.0, "help")}


def test_what_cannot_be_measured_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:  # type: ignore[no-untyped-def]
    bench = tmp_path / "bench.py"
    bench.write_text("raise SystemExit('there is no such kernel')")
    monkeypatch.setattr(bench_against, "BENCH", bench)
    assert bench_against.figures_of("exact", tmp_path) == {}
    assert capsys.readouterr().out == "  exact: nothing measured: there is no such kernel\n"


def test_a_revision_is_laid_out_and_gone_after_it() -> None:
    if subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, check=False).returncode:
        pytest.skip("no checkout of git")
    with bench_against.tree_of("HEAD") as tree:
        assert (tree / "src" / "kdelta" / "__init__.py").exists()
    assert not tree.exists()
    with (
        pytest.raises(SystemExit, match="no files of no-such-revision: fatal"),
        bench_against.tree_of("no-such-revision"),
    ):
        pass

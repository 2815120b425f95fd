# SPDX-License-Identifier: GPL-2.0-or-later
"""A patch that cannot be measured gets one clear answer with its exit code; so does a recipe."""

from __future__ import annotations

import difflib
import json
import shutil
from pathlib import Path

import pytest

from kdelta.cli.main import run
from kdelta.kernel import toolchain
from unit.kernel.tiny_tree import PIPE, TREE

needs_compiler = pytest.mark.skipif(
    shutil.which("gcc") is None or shutil.which("make") is None, reason="needs gcc and make"
)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("KDELTA_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(toolchain, "missing", lambda arch: [])
    root = tmp_path / "linux"
    for name, text in TREE.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def patch(tmp_path: Path, old: str, new: str) -> Path:
    lines = difflib.unified_diff(old.splitlines(True), new.splitlines(True), "a/fs/pipe.c", "b/fs/pipe.c")
    (tmp_path / "my.patch").write_text("".join(lines))
    return tmp_path / "my.patch"


def compare(tree: Path, change: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = run(["compare", f"src:{tree}", f"src:{tree}+{change}", "--exact", "-q", "-c", "pipe"])
    said = capsys.readouterr().err.strip()
    assert "\n" not in said
    return code, said


@needs_compiler
def test_a_patch_that_does_not_apply_names_its_file_and_hunk(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign = PIPE.replace("count", "quite_another_thing").replace("pipe_write", "never_was")
    code, said = compare(tree, patch(tmp_path, foreign, foreign.replace("return 0", "return 4")), capsys)
    assert code == 1
    assert "fs/pipe.c" in said and "hunk 1" in said


@needs_compiler
def test_a_patch_that_does_not_compile_shows_the_compilers_line_and_names_the_log(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = compare(tree, patch(tmp_path, PIPE, PIPE.replace("return 0", "return nothing_of_the_kind")), capsys)
    assert code == 2
    assert "fs/pipe.c:6" in said and "nothing_of_the_kind" in said
    assert Path(said.rpartition("log: ")[2].split()[0]).is_file()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["check"], "takes one recipe"),
        (["check", "pidfs", "--list"], "takes one recipe"),
        (["check", "no-such"], "not one of fork-names"),
        (["check", "./no-such.toml"], "cannot be read"),
        (["check", "pidfs", "--patch", "x"], "takes no patch"),
        (["check", "pidfs", "--timed", "--exact"], "cannot be combined"),
        (["check", "pipe-prealloc", "--patch", "x", "--tree", "debian:6.12"], "a source is written src:TREE"),
        (["compare", "debian:6.1", "debian:6.12", "--selftests", "pidfd"], "not built from source"),
        (["compare", "debian:6.1", "debian:6.12", "--each"], "not a source with a series"),
    ],
)
def test_what_cannot_work_is_one_line_and_exit_code_1(
    tree: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 1
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.count("\n") == 1


def test_a_check_without_its_patch_answers_every_claim_without_a_boot(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", "pipe-prealloc", "--exact", "--json"]) == 0
    got = json.loads(capsys.readouterr().out)
    assert (got["schema"], got["experiment"], len(got["claims"])) == ("kdelta-check/1", None, 18)
    assert got["summary"]["not measurable here"] == 18
    assert got["claims"][0]["published"]["percent"] == pytest.approx(21.0, abs=0.1)
    assert got["claims"][0]["measured"] is None


def test_a_claim_of_a_case_that_is_none_is_refused_though_it_cannot_be_measured(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was "needs a patch", without a word of the case."""
    (tmp_path / "typo.toml").write_text(
        "name = 'typo'\ntitle = 't'\nsource = 's'\nmeasured_on = 'm'\n"
        "[kernels]\npatch = 'p'\ntree = 'src:debian:6.12'\n"
        "[[claims]]\ntext = 'c'\ncase = 'pidfd_opne'\npercent = 3\n"
    )
    assert run(["check", str(tmp_path / "typo.toml")]) == 1
    assert "pidfd_opne" in capsys.readouterr().err


def test_the_recipes_are_listed_with_what_they_need(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("pidfs ") and "needs a patch" not in line for line in lines)
    assert any(line.startswith("pipe-prealloc ") and "needs a patch" in line for line in lines)

# SPDX-License-Identifier: GPL-2.0-or-later
"""A review is refused before anything is built, or becomes one comparison with cases chosen by the series."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from kdelta.cli import compare
from kdelta.cli.main import run
from kdelta.errors import RegressionFound
from kdelta.kernel.sources import parse_kernel
from unit.kernel.test_cover import BASE, SERIES


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What compare was called with."""
    found: list[list[str]] = []
    monkeypatch.setenv("KDELTA_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(compare.command, "main", lambda args, **_: found.append(args) or 0)  # type: ignore[func-returns-value]
    (tmp_path / "a series +1,x.mbox").write_text(SERIES)
    return found


def repository(path: Path) -> str:
    """A tree that is a git repository; its commit."""
    path.mkdir()
    (path / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 0\nEXTRAVERSION =\n")
    git = ["git", "-C", str(path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "Linux 6.12"]):
        subprocess.run([*git, *words], check=True)
    return subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()


def test_mails_become_the_tree_without_and_with_them(
    asked: list[list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    series = tmp_path / "a series +1,x.mbox"
    assert run(["review", str(series), "--tree", "debian:6.12", "--each", "--format", "terminal"]) == 0
    (words,) = asked
    base, patched = (parse_kernel(text) for text in words[:2])
    assert (base.kind, base.target, base.patches) == ("src-debian", "6.12", ())
    assert Path(patched.patches[0].path).read_text() == SERIES  # kept under a name that the grammar can hold
    assert words[2:5] == ["--exact", "--case", "auto"] and "--each" in words
    assert "12.5% faster" in capsys.readouterr().out


def test_the_base_commit_of_the_mails_is_taken_from_the_repository(
    asked: list[list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree, series = tmp_path / "linux", tmp_path / "a series +1,x.mbox"
    commit = repository(tree)
    assert run(["review", str(series), "--tree", str(tree)]) == 1
    assert f"lacks the series' base-commit {BASE[:12]}" in capsys.readouterr().err
    series.write_text(SERIES.replace(BASE, commit))
    assert run(["review", str(series), "--tree", str(tree)]) == 0
    assert asked[0][0] == f"src:{tree}@{commit}"
    assert run(["review", str(series), "--tree", f"{tree}@v6.12"]) == 0
    assert asked[1][0] == f"src:{tree}@v6.12"


def test_a_reply_is_written_and_mails_without_a_message_id_have_none(
    asked: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    series, out = tmp_path / "a series +1,x.mbox", tmp_path / "reply"
    assert run(["review", str(series), "--tree", "debian:6.12", "--reply", str(out)]) == 1
    assert "no mail with a Message-ID" in capsys.readouterr().err and asked == []

    def report(args: list[str], **_: object) -> int:
        assert args[args.index("--format") + 1] == "mail"
        Path(args[args.index("--output") + 1]).write_text("1 regressed\n")
        raise RegressionFound("--fail-on regressed")

    series.write_text(SERIES.replace("Subject: [PATCH 0", "Message-ID: <0@b>\nSubject: [PATCH 0"))
    monkeypatch.setattr(compare.command, "main", report)
    assert run(["review", str(series), "--tree", "debian:6.12", "--reply", str(out)]) == 4
    assert "In-Reply-To: <0@b>" in out.read_text() and "1 regressed" in out.read_text()
    assert "12.5% faster" in out.read_text()


def test_a_range_is_two_commits_of_its_repository(asked: list[list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["review", "v6.11..mine", "--tree", "./linux"]) == 0
    assert asked[0][:2] == ["src:./linux@v6.11", "src:./linux@mine"]
    assert run(["review", "v6.11..mine", "--tree", "debian:6.12"]) == 1
    assert "a range needs the repository" in capsys.readouterr().err


def test_what_is_no_series_is_refused(
    asked: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cover").write_text("Subject: [PATCH 0/2] nothing yet\n\nhello\n")
    for series, said in (
        ("absent.mbox", "no such file"),
        (str(tmp_path / "cover"), "no diff found"),
        ("-", "is empty"),
    ):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\n")))
        assert run(["review", series, "--tree", "debian:6.12"]) == 1
        got = capsys.readouterr().err.strip()
        assert said in got and "\n" not in got
    assert asked == []

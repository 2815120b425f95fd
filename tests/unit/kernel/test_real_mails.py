# SPDX-License-Identifier: GPL-2.0-or-later
"""Mails that mailers made, not we: the diff in them is read as git am reads it, line by line."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from kdelta.kernel import mail

MAILS = sorted((Path(__file__).parents[2] / "data/mail/git").glob("*.eml"))


def _diff(lines: list[str]) -> list[str]:
    text = "\n".join(lines[next(index for index, line in enumerate(lines) if line.startswith("diff --git")) :])
    return text.rstrip("\n").split("\n")


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@pytest.mark.parametrize("path", MAILS, ids=[path.stem for path in MAILS])
def test_a_real_mail_has_the_diff_that_git_finds_in_it(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    argv = ["git", "mailinfo", str(tmp_path / "text"), str(tmp_path / "patch")]
    subprocess.run(argv, input=data, check=True, capture_output=True)
    (one,) = mail.steps(data, path.name)
    found = (tmp_path / "patch").read_bytes()  # in the mail's own character set: git converts the message alone
    charset = "iso-8859-15" if b"8859" in data else "utf-8"
    assert _diff(list(one.lines)) == _diff(found.decode(charset).split("\n"))


def test_there_is_one_of_each_kind() -> None:
    heads = [path.read_bytes().lower() for path in MAILS]
    for kind in (b"format=flowed", b"quoted-printable", b"multipart/mixed", b">8 --"):
        assert any(kind in head for head in heads), kind

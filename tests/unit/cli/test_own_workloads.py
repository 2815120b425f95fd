# SPDX-License-Identifier: GPL-2.0-or-later
"""A user's own workload that does not compile is told before any kernel is fetched."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kdelta.cli.main import run
from unit.guest.objects import with_objects

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc: kdelta doctor names the package")
BROKEN = '#include "case.h"\n\nCASE(mine, "one call")\n{\n\tno_such_function();\n}\n'


@pytest.mark.parametrize(
    "words",
    [
        ("compare", "debian:6.12", "debian:7.0"),
        ("run", "--kernel", "debian:6.12", "--exact"),
        ("sweep", "debian:6.1..7.0"),
        ("leaks", "debian:6.12"),
        ("trace", "debian:6.12", "--what", "locks"),
    ],
    ids=lambda words: words[0],
)
def test_what_does_not_compile_is_told_first(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (source := tmp_path / "mine.c").write_text(BROKEN)
    with_objects(tmp_path / "cache")
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("KDELTA_STATE", str(tmp_path / "state"))
    assert run([*words, "--case", str(source)]) == 1
    said = capsys.readouterr().err
    assert "mine.c" in said and "no_such_function" in said and said.count("\n") == 1
    assert not (tmp_path / "cache" / "apt").exists() and not (tmp_path / "cache" / "kernels").exists()

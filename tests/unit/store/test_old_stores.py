# SPDX-License-Identifier: GPL-2.0-or-later
"""A store of an older kdelta opens, and every report of it is what that kdelta printed, to the byte."""

from __future__ import annotations

import difflib
import io
import tarfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import old_stores
import pytest

from kdelta.cli.main import run
from kdelta.results import answer
from kdelta.store.store import Store

GOLDEN = Path(__file__).parents[2] / "golden" / "stores"


@pytest.fixture(params=old_stores.MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def old_store(mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """The old store, with its user's folder of workloads beside; a result is worked out once for all formats."""
    url = old_stores.unpacked(mode, tmp_path)
    monkeypatch.setenv("KDELTA_STORE", url)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").symlink_to(old_stores.OWN_WORKLOADS)
    whole = answer.result

    @lru_cache
    def result(name: str, views: tuple[str, ...]) -> Any:
        return whole(opened, name, views=views)

    monkeypatch.setattr(answer, "result", lambda _store, name, views=(): result(name, tuple(views)))
    with Store(url) as opened:
        yield opened


def printed(store: Store, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    found = {}
    for name, words in old_stores.report_lines(store):
        code = run(words)
        out, err = capsys.readouterr()
        found[name] = f"exit {code}\n{out}{err}"
    return found


def read(path: Path) -> dict[str, str]:
    with tarfile.open(path) as archive:
        files = {member.name: archive.extractfile(member) for member in archive.getmembers()}
        return {name: file.read().decode() for name, file in files.items() if file is not None}


def write(path: Path, texts: dict[str, str]) -> None:
    with tarfile.open(path, "w:xz", format=tarfile.USTAR_FORMAT) as archive:
        for name, text in sorted(texts.items()):
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))


def test_a_store_of_07106fb_is_reported_to_the_byte(
    mode: str, old_store: Store, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    path = GOLDEN / f"{mode}.tar.xz"
    got = printed(old_store, capsys)
    if request.config.option.update_snapshots:
        write(path, got)
    wanted = read(path)
    assert got.keys() == wanted.keys()
    for name, text in got.items():
        lines = difflib.unified_diff(wanted[name].splitlines(), text.splitlines(), "golden", name, lineterm="", n=1)
        assert text == wanted[name], "\n".join(list(lines)[:60])
    assert all(text.startswith("exit 0\n") for text in got.values())

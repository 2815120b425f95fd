# SPDX-License-Identifier: GPL-2.0-or-later
"""C files of the user's own, as they come to a host: the same content, lying to each other as they did."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from kdelta.errors import HostError, UserError
from kdelta.fleet import own_sources
from kdelta.fleet.blobs import Blobs
from kdelta.fleet.own_sources import Sources
from kdelta.guest import binary
from kdelta.model import Quiet
from kdelta.spec.workloads import catalogue
from unit.fleet.fleet_builders import asked

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc: kdelta doctor names the package")
CASE = '#include "case.h"\n#include "../common.h"\n#include "near.h"\n\nCASE({name}, "one call")\n{{\n\tCALL;\n}}\n'


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    folder = tmp_path / "desk" / "my cases"
    folder.mkdir(parents=True)
    for name in ("one", "two"):
        (folder / f"{name}.c").write_text(CASE.format(name=name))
    (folder.parent / "common.h").write_text("#define CALL getppid()\n")
    (folder / "near.h").write_text("#include <unistd.h>\n")
    (folder / "notes.txt").write_text("not sent")
    return folder


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    return Blobs(str(tmp_path / "blobs"))


@pytest.mark.parametrize("names", [("",), ("one.c",), ("one.c", "two.c")])
def test_what_is_compiled_there_is_what_is_compiled_here(
    mine: Path, blobs: Blobs, names: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = tuple(str(mine / name) for name in names)
    sources = own_sources.send(folders, "x86_64", blobs, Quiet())
    assert "my cases/near.h" in sources.files and "common.h" in sources.files
    assert not [name for name in sources.files if name.endswith(("case.h", "notes.txt"))]
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "host"))
    here = own_sources.here(asked(folders=folders), sources, blobs, Quiet()).folders
    assert len(here) == len(folders) and all(path.startswith(str(tmp_path / "host")) for path in here)
    before, after = (binary.own_files("x86_64", [Path(path) for path in found]) for found in (folders, here))
    assert [(path.name, path.read_bytes()) for path in before] == [(path.name, path.read_bytes()) for path in after]
    assert set(catalogue(tuple(map(Path, here)))) >= {"one"}
    shutil.rmtree(tmp_path / "blobs")
    assert own_sources.receive(sources, blobs, Quiet()) == here, "kept"


def test_another_content_is_another_directory(mine: Path, blobs: Blobs) -> None:
    first = own_sources.send((str(mine),), "x86_64", blobs, Quiet())
    (mine.parent / "common.h").write_text("#define CALL getpid()\n")
    assert own_sources.send((str(mine),), "x86_64", blobs, Quiet()).name != first.name
    assert own_sources.send((), "x86_64", blobs, Quiet()) == Sources()
    assert own_sources.here(asked(), Sources(), blobs, Quiet()) == asked()


@pytest.mark.parametrize("name", ["/etc/x.c", "../x.c", "a/../../x.c"])
def test_no_name_leads_out_of_the_directory(
    blobs: Blobs, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "host"))
    for sources in (Sources(files={name: "0" * 64}, folders=(".",)), Sources(folders=(name,))):
        with pytest.raises(HostError, match="none of theirs"):
            own_sources.receive(sources, blobs, Quiet())


def test_a_damaged_or_missing_source_leaves_nothing(
    mine: Path, blobs: Blobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = own_sources.send((str(mine),), "x86_64", blobs, Quiet())
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "host"))
    victim = next(path for path in (tmp_path / "blobs").rglob("*") if path.is_file())
    content = victim.read_bytes()
    victim.write_bytes(bytes(len(content)))
    with pytest.raises(HostError, match="is damaged"):
        own_sources.receive(sources, blobs, Quiet())
    assert os.listdir(tmp_path / "host" / "workloads") == []


def test_a_directory_that_is_no_workloads_is_refused(mine: Path, blobs: Blobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_sources, "_MOST_BYTES", 10)
    with pytest.raises(UserError, match="name single C files with --case"):
        own_sources.send((str(mine),), "x86_64", blobs, Quiet())

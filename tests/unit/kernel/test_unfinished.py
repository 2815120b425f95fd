# SPDX-License-Identifier: GPL-2.0-or-later
"""What a killed build left half made is made again, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kdelta.kernel import build, unfinished
from kdelta.kernel.config_fragment import Request
from kdelta.kernel.toolchain import Toolchain
from kdelta.model import Quiet

DEPS = (
    "savedcmd_a.o := gcc -c a.c\n\nsource_a.o := a.c\n\ndeps_a.o := \\\n  a.h \\\n\na.o: $(deps_a.o)\n\n$(deps_a.o):\n"
)
LINKED = "savedcmd_all.a := ar all.a\n"


@pytest.fixture
def obj(tmp_path: Path) -> Path:
    """Made in this order, a second apart, with the last of tools/ ten minutes before all of them."""
    for number, (name, text) in enumerate(
        {
            "tools/objtool/objtool": "program",
            "tools/objtool/check.o": "object",
            "tools/objtool/.check.o.cmd": LINKED,
            "include/generated/a.h": "made otherwise",
            "fs/a.o": "object",
            "fs/.a.o.cmd": DEPS,
            "fs/all.a": "archive",
            "fs/.all.a.cmd": LINKED,
            "fs/.gone.o.cmd": DEPS,
            "fs/.cmd": "",
        }.items()
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (1e9 + number + (0 if name.startswith("tools") else 600),) * 2)
    unfinished.begin(tmp_path)
    os.utime(tmp_path / "kdelta-unfinished", (1e9, 1e9))
    return tmp_path


def _files(obj: Path) -> set[str]:
    return {str(path.relative_to(obj)) for path in obj.rglob("*") if path.is_file()}


def test_what_is_whole_stays(obj: Path) -> None:
    there = _files(obj)
    assert unfinished.begin(obj) == 0
    assert _files(obj) == there
    unfinished.end(obj)
    assert _files(obj) == there - {"kdelta-unfinished"}


@pytest.mark.parametrize("name", ["fs/a.o", "fs/all.a"])
def test_what_is_newer_than_what_make_told_of_it_goes(obj: Path, name: str) -> None:
    """Killed between the compiler and objtool: "incomplete ORC unwind tables", of a commit that does not build."""
    there = _files(obj)
    told = str(Path(name).with_name(f".{Path(name).name}.cmd"))
    os.utime(obj / name, (1e9 + 700, 1e9 + 700))
    assert unfinished.begin(obj) == 2
    assert there - _files(obj) == {name, told}


@pytest.mark.parametrize("text", ["", "savedcmd_a.o := gc", DEPS[:60], DEPS[:-14]])
def test_what_make_told_in_part_goes(obj: Path, text: str) -> None:
    """Without its list of headers an object stays as it is when one of them changes."""
    at = (obj / "fs/.a.o.cmd").stat().st_mtime
    (obj / "fs/.a.o.cmd").write_text(text)
    os.utime(obj / "fs/.a.o.cmd", (at, at))
    unfinished.begin(obj)
    assert not (obj / "fs/a.o").exists() and not (obj / "fs/.a.o.cmd").exists()


def test_programs_go_where_they_are_of_the_last_minute(obj: Path) -> None:
    """They have no .cmd; older ones were used by all that came later, and all of it would be made again."""
    os.utime(obj / "tools/objtool/objtool", (1e9 + 600, 1e9 + 600))
    there = _files(obj)
    unfinished.begin(obj)
    assert there - _files(obj) == {"tools/objtool/objtool"}


def test_after_a_good_end_nothing_is_looked_at(obj: Path) -> None:
    unfinished.end(obj)
    os.utime(obj / "fs/a.o", (1e9 + 700, 1e9 + 700))
    assert unfinished.begin(obj) == 0
    assert (obj / "fs/a.o").exists()


def test_a_build_looks_at_what_the_one_before_it_left(obj: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mark is set before make is first called, for Kconfig, and taken away behind its last."""
    unfinished.end(obj)
    tools = Toolchain(arch="x86_64", prefix="", ccache=False, title="gcc", id="x")
    builder = build.Builder(obj.parent / "src", obj, tools, cache=obj.parent, jobs=1)
    marked = []

    def configure(*_: object) -> tuple[str, ...]:
        marked.append((obj / "kdelta-unfinished").exists())
        raise KeyboardInterrupt

    monkeypatch.setattr(builder, "configure", configure)
    os.utime(obj / "fs/a.o", (1e9 + 700, 1e9 + 700))
    for left in (True, False):
        with pytest.raises(KeyboardInterrupt):
            builder.build(Request(options={}), "t", obj.parent / "log", Quiet())
        assert (obj / "fs/a.o").exists() is left
    assert marked == [True, True]

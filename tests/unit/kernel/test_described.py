# SPDX-License-Identifier: GPL-2.0-or-later
"""The types of a kernel that was built here come from one more source, compiled as make compiled its neighbours."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.experiment import known
from kdelta.kernel import btf, cache, described, types
from kdelta.kernel.build import Builder
from kdelta.kernel.toolchain import Toolchain
from kdelta.model import Kernel

RECORDED = (
    "savedcmd_fs/namei.o := ccache gcc -Wp,-MMD,fs/.namei.o.d -nostdinc -I{src}/include -Werror -Wall -O2 -g "
    "-c -o fs/namei.o {src}/fs/namei.c"
)
HEADERS = {
    "include/linux/sched.h": "struct task_struct { long state; int on_cpu; };\n",
    "fs/mount.h": "struct mount { long hash[8]; int taken; };\n",
}


@pytest.fixture
def builder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Builder:
    """A build directory in which one object was made, with ccache, as on the machines of users."""
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path))
    src, obj = tmp_path / "build/src", tmp_path / "build/obj"
    for name, text in HEADERS.items():
        (src / name).parent.mkdir(parents=True, exist_ok=True)
        (src / name).write_text(text)
    (obj / "fs").mkdir(parents=True)
    (obj / described.LIKE[0]).write_text(RECORDED.format(src=src) + "\n\ndeps_fs/namei.o := \\\n  x.h\n")
    tools = Toolchain(arch="x86_64", prefix="", ccache=True, title="gcc", id="x")
    return Builder(src, obj, tools, cache=tmp_path, jobs=1)


def _fields(data: bytes, struct: str) -> list[str]:
    found = btf.parse(data)
    ident = found.struct(struct)
    return [field.name for field in found.fields(ident)] if ident is not None else []


def test_a_header_that_a_patch_changes_changes_the_types(builder: Builder, tmp_path: Path) -> None:
    """As system headers, those beside sources were in no list of what was read: ccache gave the baseline's types."""
    first = builder.types(tmp_path / "log")
    assert _fields(first, "task_struct") == ["state", "on_cpu"] and _fields(first, "mount") == ["hash", "taken"]
    (builder.src / "fs/mount.h").write_text("struct mount { long hash[8]; int mine, taken; };\n")
    assert _fields(builder.types(tmp_path / "log"), "mount") == ["hash", "mine", "taken"]
    (builder.src / "include/linux/sched.h").write_text("struct task_struct { int on_cpu; };\n")
    assert _fields(builder.types(tmp_path / "log"), "task_struct") == ["on_cpu"]


def test_what_does_not_compile_leaves_its_names_out_and_no_build_fails(builder: Builder, tmp_path: Path) -> None:
    (builder.src / "fs/mount.h").write_text("struct mount { nothing such; };\n")
    made = builder.types(tmp_path / "log")
    assert _fields(made, "task_struct") and not _fields(made, "mount")
    assert "nothing" in (tmp_path / "log").read_text()
    (builder.src / "include/linux/sched.h").write_text("#error not here\n")
    assert builder.types(tmp_path / "log") == b""
    (builder.obj / described.LIKE[0]).write_text("cmd_fs/namei.o := true -c -o fs/namei.o\n")  # a tree's own Makefile
    assert builder.types(tmp_path / "log") == b""
    (builder.obj / described.LIKE[0]).unlink()
    assert builder.types(tmp_path / "log") == b""


def test_the_line_of_make_is_taken_as_the_shell_would() -> None:
    line = "cmd_fs/x.o := gcc -Wp,-MMD,fs/.x.o.d -DA='\"fs/$(pound)$$\"' -O2 -c -o fs/x.o x.c ; ./tools/objtool x"
    words = described.argv(line, Path("/s"), Path("/o"))
    assert words[:3] == ["env", "-C", "/o"] and words[3:6] == ["gcc", '-DA="fs/#$"', "-O2"]
    assert words[-4:] == ["-c", "-o", described.MADE, described.SOURCE] and "-I/s" in words and "x.c" not in words
    for other in ("", "cmd_x := 'open", "cmd_x := ld -o a b", "deps_x := a"):
        assert described.argv(other, Path("/s"), Path("/o")) == []


def test_lines_have_fields_where_all_kernels_say_theirs(builder: Builder, tmp_path: Path) -> None:
    """Of one kernel alone they would be lines that the other lacks: "now moves", and "no longer"."""
    (folder := cache.root() / "a").mkdir(parents=True)
    (folder / "image").write_bytes(builder.types(tmp_path / "log"))  # no kernel, and no ELF file
    made = builder.obj / described.MADE
    (folder / "vmlinux").write_bytes(made.read_bytes().replace(b".BTF", b".XTF"))
    one = Kernel(label="a", spec="a", release="7.3", image_path=str(folder / "image"), image_sha256="a")
    one = replace(one, vmlinux_path=str(folder / "vmlinux"))
    assert not types.described(one) and types.load(one) is None
    (folder / cache.TYPES).write_bytes(builder.types(tmp_path / "log"))
    found = types.load(one)
    assert types.described(one) and found is not None and found.struct("mount")
    bare = replace(one, label="b", image_sha256="b", vmlinux_path=str(tmp_path / "none"))
    assert known.typed((one, one)) and not known.typed((one, bare))

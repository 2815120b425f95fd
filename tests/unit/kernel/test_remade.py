# SPDX-License-Identifier: GPL-2.0-or-later
"""How much is compiled again, from what Kbuild keeps beside its objects."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdelta.errors import HostError
from kdelta.kernel.remade import remade


def _built(obj: Path, name: str, source: str, *headers: str) -> None:
    """As scripts/basic/fixdep.c of Linux 6.12 writes it."""
    at = obj / name
    at.parent.mkdir(parents=True, exist_ok=True)
    needs = "".join(f"  ../src/{header} \\\n" for header in headers)
    (at.parent / f".{at.name}.cmd").write_text(
        f"savedcmd_{name} := ccache gcc -I/tree/src/include -c -o {name} /tree/src/{source}  \n\n"
        f"source_{name} := ../src/{source}\n\ndeps_{name} := \\\n{needs}\n{name}: $(deps_{name})\n"
    )


@pytest.fixture
def obj(tmp_path: Path) -> Path:
    """Ten objects: all use types.h, four fs.h, one is pipe.o; and one that is linked."""
    _built(tmp_path, "fs/pipe.o", "fs/pipe.c", "include/linux/types.h", "include/linux/fs.h")
    for number in range(9):
        more = ("include/linux/fs.h",) if number < 3 else ("include/uapi/linux/fs.h",)
        _built(tmp_path, f"mm/m{number}.o", f"mm/m{number}.c", "include/linux/types.h", *more)
    (tmp_path / ".vmlinux.o.cmd").write_text("savedcmd_vmlinux.o := ld -r -o vmlinux.o fs/pipe.o ../src/fs/pipe.c \n")
    return tmp_path


@pytest.mark.parametrize(
    ("written", "objects", "much"),
    [
        (["fs/pipe.c"], 1, False),
        (["include/linux/fs.h"], 4, True),
        (["include/uapi/linux/fs.h"], 6, True),
        (["fs/pipe.c", "include/linux/types.h"], 10, True),
        (["linux/types.h", "Documentation/x.rst"], 0, False),
        ([], 0, False),
    ],
)
def test_it_is_known_beforehand_how_much_is_compiled_again(
    obj: Path, written: list[str], objects: int, much: bool
) -> None:
    found = remade(obj, "src", written)
    assert (found.objects, found.much) == (objects, much)


def test_the_file_that_costs_most_is_named(obj: Path) -> None:
    told = remade(obj, "src", ["fs/pipe.c", "include/linux/types.h"]).told
    assert told == (
        "10 of 10 files are compiled again, most because of include/linux/types.h: "
        "that takes nearly as long as the first build did"
    )


def test_what_a_build_makes_headers_of_counts_through_those_who_include_them(obj: Path) -> None:
    """A new system call compiled 869 of 1260 files again, for ten minutes, and nothing was told before."""
    made = "arch/x86/include/generated/uapi/asm/unistd_64.h"
    (obj / made).parent.mkdir(parents=True)
    (obj / made).with_name(".unistd_64.h.cmd").write_text(
        f"savedcmd_{made} := sh /tree/src/scripts/syscallhdr.sh --emit-nr   /tree/src/syscalls/syscall_64.tbl {made}\n"
    )
    for number in range(3):
        path = obj / "mm" / f".m{number}.o.cmd"
        path.write_text(path.read_text().replace(":= \\\n", f":= \\\n  {made} \\\n", 1))
    found = remade(obj, "src", ["syscalls/syscall_64.tbl", "fs/pipe.c"])
    assert (found.objects, found.most, found.much) == (4, "syscalls/syscall_64.tbl", True)


def test_where_nothing_was_built_nothing_is_told(tmp_path: Path) -> None:
    assert not remade(tmp_path / "none", "src", ["include/linux/types.h"]).much


def test_a_link_that_a_build_left_is_not_followed(obj: Path) -> None:
    (obj / "fs" / ".evil.o.cmd").symlink_to("/etc/hostname")
    with pytest.raises(HostError, match="link"):
        remade(obj, "src", ["fs/pipe.c"])

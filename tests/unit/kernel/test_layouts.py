# SPDX-License-Identifier: GPL-2.0-or-later
"""Layouts: paddings from a number, laid over a source, and which block boots which."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from msgspec.structs import replace

from kdelta.kernel import layouts
from kdelta.kernel.config_fragment import Request
from kdelta.kernel.one_build import FORMAT, Wanted, config_digest
from kdelta.kernel.origin import Tarball
from kdelta.kernel.patch import File
from kdelta.kernel.toolchain import Toolchain
from kdelta.model import Layout
from unit.store.store_builders import kernel

TREE = {f"{one}/Makefile": f"obj-y := {one}.o\n" for one in layouts.DIRECTORIES if one != "io_uring"}


def test_paddings_are_those_of_their_number_and_reach_all_places_of_a_page() -> None:
    assert layouts.paddings(7) == layouts.paddings(7) != layouts.paddings(8)
    some = [one for number in range(1, 200) for one in layouts.paddings(number)]
    for size in (size for one in some for size in (one.text, one.data, one.bss)):
        assert size % 16 == 0 and 0 <= size < 4096
    assert {one.text % 64 for one in some} == {0, 16, 32, 48}, "a line can begin anywhere in a function"
    assert len({one.text for one in some}) > 200


def test_a_layout_adds_an_object_to_each_directory_and_compiles_nothing_again() -> None:
    patched = {"mm/Makefile": File("obj-y := mm.o new.o"), "mm/new.c": File("int x;\n")}
    found = layouts.padded(patched, TREE.get, 3)
    assert found["mm/Makefile"].text == "obj-y := mm.o new.o\nobj-y += kdelta_layout.o\n", "the patch's, not the tree's"
    assert found["mm/new.c"] == patched["mm/new.c"]
    assert "io_uring/Makefile" not in found, "an older kernel has no such directory"
    changed = set(found) - set(patched) - {"mm/Makefile"}
    assert {path.rpartition("/")[2] for path in changed} == {"Makefile", "kdelta_layout.S"}
    (text,) = (one.text for one in layouts.paddings(3) if one.directory == "mm")
    assert f".fill {text}, 1, 0xcc" in (found["mm/kdelta_layout.S"].text or "")
    assert layouts.padded(patched, TREE.get, 0) == patched


def test_blocks_take_the_layouts_in_turns_and_the_kernel_stays_what_it_is_else() -> None:
    two = tuple(Layout(image_path=f"/l{n}", image_sha256=str(n) * 64, build_id=f"id{n}") for n in (1, 2))
    one = replace(kernel("6.12"), layouts=two)
    images = [layouts.laid_out(one, block).image_path for block in range(5)]
    assert images == [one.image_path, "/l1", "/l2", one.image_path, "/l1"]
    shifted = layouts.laid_out(one, 1)
    assert (shifted.label, shifted.cmdline, shifted.build_id) == (one.label, one.cmdline, "id1")
    assert layouts.laid_out(kernel("6.12"), 3) == kernel("6.12")
    assert layouts.layout_of(shifted) == two[0]


def test_seeds_have_layouts_of_their_own() -> None:
    assert layouts.numbers(4, 0) == (1, 2, 3) and not set(layouts.numbers(4, 1)) & set(layouts.numbers(4, 0))


def test_a_layout_is_a_build_of_its_own() -> None:
    origin = Tarball(path="none", base="b", version=(6, 12), key="debian-6.12", title="linux-source 6.12", id="1")
    tools = Toolchain(arch="x86_64", prefix="", ccache=True, title="gcc", id="abcdef")
    plain = Wanted(origin=origin, steps=(), tools=tools, request=Request(options={}))
    assert len({plain.key, *(replace(plain, layout=number).key for number in (1, 2))}) == 3
    facts = [FORMAT, origin.id, [], config_digest(plain.request), tools.id, tools.arch]
    assert plain.key == hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:24], "what was built before is found"
    home = Path("home")
    assert plain.objects(home) == replace(plain, layout=1).objects(home), "nothing is compiled again"

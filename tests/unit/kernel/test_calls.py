# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls are read from machine code of both architectures, and by the names of the source."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from kdelta.kernel import calls, symbols
from kdelta.model import Arch, Kernel
from unit.kernel import synthetic

CODE = synthetic.TEXT + 0x4000  # where the made-up image holds 16 KiB of nops
OFFSET = 0x5000  # the same place in the file
STEP = 64


def table(names: list[str]) -> symbols.SymbolTable:
    """Functions of STEP bytes from CODE on."""
    starts = np.arange(len(names), dtype=np.uint64) * np.uint64(STEP) + np.uint64(CODE)
    return symbols.SymbolTable(
        source="symtab",
        ranges=((CODE, CODE + STEP * len(names)),),
        addresses_le=starts.astype("<u8").tobytes(),
        text="\n".join(names),
    )


def image(*code: tuple[int, bytes]) -> bytes:
    """A vmlinux with instructions at distances from CODE."""
    data = bytearray(synthetic.vmlinux(None))
    for at, instruction in code:
        data[OFFSET + at : OFFSET + at + len(instruction)] = instruction
    return bytes(data)


def x86(opcode: bytes, at: int, to: int) -> tuple[int, bytes]:
    return at, opcode + struct.pack("<i", to - at - len(opcode) - 4)


def arm(opcode: int, at: int, to: int) -> tuple[int, bytes]:
    return at, struct.pack("<I", opcode | ((to - at) // 4 & 0x3FFFFFF))


def graph(data: bytes, names: list[str], arch: Arch = "x86_64") -> calls.CallGraph:
    machine = struct.pack("<H", {"x86_64": 62, "arm64": 183}[arch])
    found = calls.from_image(data[:18] + machine + data[20:], table(names))
    assert isinstance(found, calls.CallGraph)
    return found


def test_calls_and_tail_jumps_are_found_at_any_byte_in_both_directions() -> None:
    data = image(
        x86(b"\xe8", 3, 2 * STEP),
        x86(b"\xe9", 2 * STEP + 17, 0),
        x86(b"\x0f\x84", STEP + 5, 3 * STEP),
        x86(b"\xe8", 3 * STEP + 59, 0),
    )
    found = graph(data, ["zero", "one", "two", "three"])
    assert [found.callees(name) for name in ("zero", "one", "two", "three")] == [
        ("two",),
        ("three",),
        ("zero",),
        ("zero",),
    ]


def test_a_branch_of_arm64_is_a_call_with_or_without_link() -> None:
    data = image(
        arm(0x94000000, 8, 2 * STEP),
        arm(0x14000000, 2 * STEP + 4, 0),
        arm(0x54000000, STEP + 8, 0),  # b.cond has another form
        (STEP + 18, arm(0x94000000, STEP + 18, 2)[1]),  # no instruction lies across words
    )
    found = graph(data, ["zero", "one", "two"], "arm64")
    assert [found.callees(name) for name in ("zero", "one", "two")] == [("two",), (), ("zero",)]
    assert [found.callers(name) for name in ("zero", "one", "two", "absent")] == [("two",), (), ("zero",), ()]


def test_jumps_into_and_inside_functions_and_out_of_the_text_are_no_calls() -> None:
    data = image(
        x86(b"\xe9", 3, STEP + 1),
        x86(b"\xe9", 11, 0),
        x86(b"\xe8", STEP, -STEP),
        x86(b"\xe8", STEP + 9, 0x7FFFFFF0),
    )
    found = graph(data, ["zero", "one"])
    assert (found.callees("zero"), found.callees("one"), found.text) == ((), (), "")


def test_parts_of_a_function_call_and_are_called_in_its_name() -> None:
    data = image(x86(b"\xe8", 0, STEP), x86(b"\xe8", 2 * STEP, 3 * STEP), x86(b"\xe9", 3 * STEP, STEP))
    found = graph(data, ["f", "f.cold", "g.isra.0", "kmalloc_noprof"])
    assert [found.callees(name) for name in ("f", "g", "kmalloc")] == [(), ("kmalloc",), ("f",)]
    assert found.callees("f.cold") == ()


def test_thunks_and_what_everybody_calls_are_left_out() -> None:
    names = ["kfree", "__x86_return_thunk", "rare", *(f"f{i}" for i in range(40))]
    code = [x86(b"\xe8", STEP * i, 0) for i in range(3, 43)]
    code += [x86(b"\xe9", STEP * i + 8, STEP) for i in range(3, 8)]
    code += [x86(b"\xe8", STEP * i + 16, 2 * STEP) for i in range(3, 23)]
    found = graph(image(*code), names)
    assert found.callees("f0") == ("rare",)
    assert found.callees("f39") == ()


@pytest.mark.parametrize("arch", ["x86_64", "arm64"])
def test_random_code_gives_what_reading_it_byte_by_byte_gives(arch: Arch) -> None:
    names = [f"f{i:03}" for i in range(250)]
    random = np.random.default_rng(11)
    code = random.integers(0, 256, STEP * len(names), dtype=np.uint8)
    for at in random.integers(0, len(code) - 8, 400).tolist():  # most of random code leads nowhere
        to = STEP * int(random.integers(0, len(names)))
        _, made = x86(b"\xe8", at, to) if arch == "x86_64" else arm(0x94000000, at & ~3, to)
        start = at if arch == "x86_64" else at & ~3
        code[start : start + len(made)] = np.frombuffer(made, np.uint8)
    text = code.tobytes()
    expected: dict[str, set[str]] = {}
    for at in range(len(text) - 4):
        word = struct.unpack_from("<I", text, at)[0]
        if arch == "arm64":
            to = at + 4 * ((word & 0x3FFFFFF) - (word >> 25 & 1) * (1 << 26))
            good = at % 4 == 0 and word >> 26 & 0x1F == 5
        else:
            to = at + 5 + struct.unpack_from("<i", text, at + 1)[0]
            good = text[at] in (0xE8, 0xE9) or (at > 0 and text[at - 1] == 0x0F and text[at] >> 4 == 8)
        if good and 0 <= to < len(text) and not to % STEP and to // STEP != at // STEP:
            expected.setdefault(names[at // STEP], set()).add(names[to // STEP])
    found = graph(image((0, text)), names, arch)
    assert len(expected) > 100
    assert {name: set(found.callees(name)) for name in names if found.callees(name)} == expected


def test_a_graph_is_cached_beside_the_symbols_and_a_damaged_one_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "vmlinux"
    path.write_bytes(image(x86(b"\xe8", 3, STEP)))
    kernel = Kernel(label="a", spec="a", release="6.12", image_path=str(path), image_sha256="0" * 64)
    first = calls.load(kernel, table(["zero", "one"]))
    assert isinstance(first, calls.CallGraph) and first.callees("zero") == ("one",)
    (stored,) = (tmp_path / "cache" / "symbols").iterdir()
    monkeypatch.setattr(calls, "from_image", lambda data, table: symbols.NoSymbols("made anew"))
    assert calls.load(kernel, table(["zero", "one"])) == first
    stored.write_bytes(stored.read_bytes()[:40])
    assert calls.load(kernel, table(["zero", "one"])) == symbols.NoSymbols("made anew")


def test_without_an_image_the_reason_names_the_kernel() -> None:
    kernel = Kernel(label="mine", spec="running", release="6.12", image_path="", image_sha256="")
    found = calls.load(kernel, table(["zero"]))
    assert isinstance(found, symbols.NoSymbols) and "mine" in found.why


def test_code_names_addresses_and_says_who_calls_whom() -> None:
    known = calls.Code(table(["zero", "one"]), graph(image(x86(b"\xe8", 3, STEP)), ["zero", "one"]))
    assert known.names(np.array([CODE + 3, CODE - 1], np.uint64)) == ["zero", None]
    assert known.calls(["zero", "one", "nobody"]) == {"zero": ("one",), "one": (), "nobody": ()}
    assert calls.Code(table(["zero"]), None).calls(["zero"]) == {}

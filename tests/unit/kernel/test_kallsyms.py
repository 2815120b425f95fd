# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import numpy as np
import pytest

from kdelta.kernel import elf, kallsyms, memory
from unit.kernel import synthetic


def read(data: bytes) -> list[kallsyms.Symbols]:
    return list(kallsyms.candidates(memory.open_image(data)))


@pytest.mark.parametrize("layout", ["before", "after", "place", "place+4"])
def test_every_layout_gives_back_addresses_types_and_names(layout: synthetic.Layout) -> None:
    rows = synthetic.symbols()
    found = read(synthetic.vmlinux(layout, rows))
    assert [row[0] for row in rows] in [one.addresses.tolist() for one in found]
    assert {one.types for one in found} == {"".join(row[1] for row in rows)}
    assert all(one.names == [row[2] for row in rows] for one in found)


def test_per_cpu_symbols_are_absolute_before_6_15() -> None:
    rows: list[synthetic.Symbol] = [(0, "A", "fixed_percpu_data"), (0x1000, "A", "cpu_tss"), *synthetic.symbols()]
    found = read(synthetic.vmlinux("percpu", rows))
    assert [row[0] for row in rows] in [one.addresses.tolist() for one in found]


@pytest.mark.parametrize("count", [3, 254, 255, 256, 257, 510, 511, 512, 1500])
def test_tables_around_a_marker_boundary_are_found(count: int) -> None:
    rows = synthetic.symbols(count)
    assert read(synthetic.vmlinux("after", rows))[0].names == [row[2] for row in rows]


def test_a_kernel_without_kallsyms_is_said_to_be_one() -> None:
    with pytest.raises(kallsyms.KallsymsError, match="CONFIG_KALLSYMS"):
        read(synthetic.vmlinux(None))


def test_tables_with_a_damaged_name_are_refused() -> None:
    data = bytearray(synthetic.vmlinux("after"))
    at = data.index(b"\x01_number_7") - 2
    data[at] += 1
    with pytest.raises(kallsyms.KallsymsError):
        read(bytes(data))


def test_tables_with_a_name_of_nothing_are_refused() -> None:
    rows = synthetic.symbols()
    rows[7] = (rows[7][0], "", " ")  # of one token, which is empty
    with pytest.raises(kallsyms.KallsymsError, match="symbol 7 has no type"):
        read(synthetic.vmlinux("after", rows))


def test_digits_further_behind_than_an_index_reaches_are_passed_over() -> None:
    far = b"x" * 0x10100 + b"".join(b"%d\0" % i for i in range(10)) + bytes(600)
    rows = synthetic.symbols()
    assert read(synthetic.vmlinux("after", rows, extra=far))[0].names == [row[2] for row in rows]


def test_an_image_with_too_many_places_for_names_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kallsyms, "_MAX_WALKS", 0)
    assert read(synthetic.vmlinux("after")), "the first place that is walked is the right one"
    monkeypatch.setattr(kallsyms, "_MAX_WALKS", -1)
    with pytest.raises(kallsyms.KallsymsError, match="too many possible names"):
        read(synthetic.vmlinux("after"))


def test_random_bytes_are_no_kernel() -> None:
    with pytest.raises(memory.ImageError, match="neither"):
        memory.open_image(np.random.default_rng(1).bytes(4096))


def test_digits_at_the_very_start_and_end_of_a_file_do_no_harm() -> None:
    digits = b"".join(b"%d\0" % i for i in range(10))
    segments = (elf.Segment(synthetic.TEXT, 0, 64),)
    for data in (digits, digits + b"\0" * 600, b"x" * 100 + digits):
        with pytest.raises(kallsyms.KallsymsError):
            list(kallsyms.candidates(memory.Image(data, segments)))


def test_an_arm64_image_gets_the_base_into_which_its_pointers_lead() -> None:
    base = 0xFFFF800080000000
    words = np.array([base + 8 * i for i in range(512)] + [0xFFFF800008000010], dtype="<u8")
    image = memory.raw_arm64(b"\0" * 56 + b"ARM\x64" + b"\0" * 4 + words.tobytes())
    assert image.segments[0].address == base


def test_an_image_full_of_false_markers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kallsyms, "_MAX_READ_BYTES", 1 << 20)
    rows = synthetic.symbols(40)
    false = (np.arange(130, dtype="<u4") * 131_000).tobytes()
    aligned = bytes(-len(synthetic.BANNER) % 4) + false * 200  # behind notes of 60 bytes
    data = bytearray(synthetic.vmlinux("after", rows, extra=aligned))
    at = data.rfind(len(rows).to_bytes(8, "little"))
    data[at : at + 8] = bytes(8)  # its own number of names
    with pytest.raises(kallsyms.KallsymsError, match="too many possible markers"):
        read(bytes(data))

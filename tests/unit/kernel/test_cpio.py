# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import io

import pytest

import made_packages
from kdelta.kernel import cpio, unpack

FILES = {"./a": b"", "./b": b"1", "./boot/c": bytes(1000), "./boot/name of three and more": b"12345"}


def _listed(number: int) -> cpio.File:
    return cpio.File(name=f"file {number}", size=5, regular=True)


def _read(data: bytes) -> dict[str, bytes]:
    stream = unpack.Stream(io.BytesIO(data), "", 1 << 30)
    return {one.name: one.open().read() if one.regular else b"" for one in cpio.entries(stream, _listed)}


def test_names_and_contents_come_out_as_they_went_in() -> None:
    assert _read(made_packages.cpio(FILES)) == FILES
    assert _read(made_packages.cpio(FILES).replace(b"070701", b"070702") + b"whatever follows") == FILES


def test_what_is_not_read_is_skipped() -> None:
    stream = unpack.Stream(io.BytesIO(made_packages.cpio(FILES)), "", 1 << 30)
    assert [one.name for one in cpio.entries(stream, _listed)] == list(FILES)


def test_members_of_rpms_own_form_are_what_the_package_lists() -> None:
    own = made_packages.own_cpio([b"first", b"other"])
    assert _read(own) == {"file 0": b"first", "file 1": b"other"}
    assert _read(own[: -len(made_packages.cpio({}))] + b"07070Xffffffff") == {"file 0": b"first", "file 1": b"other"}


def _changed(at: int, value: int) -> bytes:
    """An archive whose first file has another number in its header: 1 is the mode, 4 links, 6 size, 11 of its name."""
    data = bytearray(made_packages.cpio({"./a": b"12345", "./b": b"1"}))
    data[6 + 8 * at : 14 + 8 * at] = b"%08x" % value
    return bytes(data)


def _entries(data: bytes) -> list[tuple[str, tuple[str, ...], bool]]:
    stream = unpack.Stream(io.BytesIO(data), "", 1 << 30)
    return [(one.name, one.others, one.regular) for one in cpio.entries(stream, _listed)]


def test_of_several_links_to_a_file_the_last_has_its_content_and_the_names_of_all() -> None:
    data = made_packages.cpio({"./a": b"", "./b": b"", "./c": b"1"}, links=3)
    assert _entries(data) == [("./a", (), False), ("./b", (), False), ("./c", ("./a", "./b"), True)]
    other = bytearray(data)
    other[6:14] = b"%08x" % 2  # the first is another file then
    assert _entries(bytes(other)) == [("./a", (), False), ("./b", (), False), ("./c", ("./b",), True)]


def test_links_without_end_are_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpio, "_LINKS_BYTES", 1000)
    with pytest.raises(unpack.Damaged, match="more links"):
        _entries(made_packages.cpio({f"./{number}": b"" for number in range(300)}, links=300))


@pytest.mark.parametrize("mode", [0o040755, 0o120777, 0o020644, 0])
def test_what_is_no_regular_file_has_no_content(mode: int) -> None:
    stream = unpack.Stream(io.BytesIO(_changed(1, mode)), "", 1 << 20)
    assert [one.regular for one in cpio.entries(stream, _listed)] == [False, True]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"070701",
        b"something else",
        b"07070X",
        b"07070X0000000g",
        b"07070X00000000",
        _changed(11, 0),
        _changed(11, 4097),
        _changed(6, 0xFFFFFFFF),
        _changed(6, 3),
        made_packages.cpio({"./a": b"12345"})[:-100],
        made_packages.cpio({"./a": b"12345"})[:118],
    ],
)
def test_what_is_no_archive_or_has_no_end_is_damaged(data: bytes) -> None:
    with pytest.raises(unpack.Damaged):
        _read(data)


@pytest.mark.parametrize("number", [b" 0000005", b"0x000005", b"+0000005", b"0000_005", b"-0000005", b"0000005\n"])
def test_what_python_takes_for_a_number_and_rpm_does_not_is_damaged(number: bytes) -> None:
    data = bytearray(made_packages.cpio({"./a": b"12345"}))
    data[6 + 8 * 6 : 14 + 8 * 6] = number
    with pytest.raises(unpack.Damaged, match="header is damaged"):
        _read(bytes(data))

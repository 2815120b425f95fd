# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import tracemalloc
from collections.abc import Callable

import pytest
import zstandard

from kdelta.kernel import unpack

TEXT = b"".join(random.Random(2).randbytes(500) + bytes(3000) for _ in range(100))
FILTERS = [{"id": lzma.FILTER_LZMA2, "dict_size": 512 << 20}]
PACKERS: dict[unpack.Kind, Callable[[bytes], bytes]] = {
    "": bytes,
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "lzma": lambda data: lzma.compress(data, lzma.FORMAT_ALONE),
    "xz": lzma.compress,
    "zst": zstandard.compress,
}


def _stream(kind: unpack.Kind, packed: bytes, limit_bytes: int = 1 << 30) -> unpack.Stream:
    return unpack.Stream(io.BytesIO(packed), kind, limit_bytes)


@pytest.mark.parametrize("kind", PACKERS)
def test_what_was_packed_comes_out_in_pieces_of_any_size(kind: unpack.Kind) -> None:
    dice, stream, got = random.Random(kind), _stream(kind, PACKERS[kind](TEXT)), b""
    while piece := stream.read(dice.choice((1, 7, 512, 40_000))):
        got += piece
        assert stream.tell() == len(got)
        if dice.random() < 0.1:
            got += TEXT[len(got) : stream.seek(min(len(got) + 5000, len(TEXT)))]
    assert got == TEXT and stream.read(1) == b""


@pytest.mark.parametrize("kind", ["gz", "bz2", "lzma", "xz"])
@pytest.mark.parametrize("keep", [0, 1, 20, 1000, -1])
def test_what_is_cut_short_is_damaged(kind: unpack.Kind, keep: int) -> None:
    stream = _stream(kind, PACKERS[kind](TEXT)[:keep])
    stream.allow(len(TEXT) + 1)
    with pytest.raises(unpack.Damaged):
        while stream.read(10_000):
            pass
        assert keep == 0  # nothing at all is no bytes to some
        raise unpack.Damaged


@pytest.mark.parametrize("kind", ["gz", "bz2", "lzma", "xz", "zst"])
def test_what_is_something_else_is_damaged(kind: unpack.Kind) -> None:
    with pytest.raises(unpack.Damaged):
        _stream(kind, b"something else, of some length").read(1)


@pytest.mark.parametrize("kind", PACKERS)
def test_more_than_its_limit_is_not_unpacked(kind: unpack.Kind) -> None:
    stream = _stream(kind, PACKERS[kind](bytes(40 << 20)), 20 << 20)
    tracemalloc.start()
    try:
        with pytest.raises(unpack.TooLarge, match="more than 20 MiB"):
            stream.seek(40 << 20)
        assert tracemalloc.get_traced_memory()[1] < 12 << 20  # of which 8 MiB are xz's
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("kind", "packed"),
    [
        ("xz", lzma.compress(TEXT, filters=FILTERS)),
        ("lzma", lzma.compress(TEXT, lzma.FORMAT_ALONE, filters=[{**FILTERS[0], "id": lzma.FILTER_LZMA1}])),
        ("zst", b"\x28\xb5\x2f\xfd\x00\x98\x01\x00\x00"),  # a frame whose window is 512 MiB, and an empty last block
    ],
    ids=["xz", "lzma", "zst"],
)
def test_a_decompressor_that_wants_much_memory_gets_none(kind: unpack.Kind, packed: bytes) -> None:
    with pytest.raises(unpack.Damaged, match=r"[Mm]emory"):
        _stream(kind, packed).read(1)


def test_what_dpkg_and_rpm_take_at_their_strongest_is_taken() -> None:
    for kind, packed in (("xz", lzma.compress(TEXT, preset=9)), ("zst", zstandard.compress(TEXT, 22))):
        assert _stream(kind, packed).read(len(TEXT)) == TEXT  # type: ignore[arg-type]


def test_no_more_is_read_than_is_allowed_and_nothing_twice() -> None:
    stream = _stream("", bytes(3 << 20))
    with pytest.raises(unpack.Damaged, match="plausible"):
        stream.read((1 << 20) + 1)
    stream.allow(100)
    assert len(stream.read(60)) == 60
    with pytest.raises(unpack.Damaged, match="plausible"):
        stream.read(60)
    assert stream.seek(2 << 20) == 2 << 20
    with pytest.raises(unpack.Damaged, match="begins before"):
        stream.seek(1 << 20)


def test_a_slice_ends_where_it_should_and_tells_where_it_cannot() -> None:
    data = io.BytesIO(b"abcdef")
    assert unpack.Slice(data, 4).read() == b"abcd" and data.read() == b"ef"
    with pytest.raises(unpack.Damaged):
        unpack.Slice(io.BytesIO(b"abc"), 4).read()

# SPDX-License-Identifier: GPL-2.0-or-later
"""What is kept of Debian's kernel sources: made from a package, found again, and bounded."""

from __future__ import annotations

import io
import os
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kdelta.errors import UserError
from kdelta.kernel import debian, excerpts
from kdelta.kernel.debver import DebianSource
from kdelta.model import Progress, Quiet
from unit.kernel import synthetic
from unit.store.store_builders import kernel

FILES = {
    "fs/pipe.c": "static int pipe_wait(struct pipe *p)\n{\n\tsleep(p);\n\treturn 0;\n}\n",
    "include/linux/pipe.h": "static inline int pipe_wait(struct pipe *p) { return 0; }\n",
    "drivers/gpu/drm/big.c": "int big(void)\n{\n\treturn 0;\n}\n",
    "fs/Makefile": "obj-y += pipe.o\n",
}
FOUND = DebianSource(upstream="6.12.9", package="linux-source-6.12", package_version="6.12.9-1", size_bytes=1000)


def packed(files: dict[str, str]) -> bytes:
    """A tarball as Debian's linux-source has it."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:xz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(f"linux-source-6.12/{name}")
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    return made.getvalue()


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An archive that has the source of 6.12.9-1 alone; what it was asked for."""
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    asked: list[str] = []

    def source_of(version: str, progress: Progress) -> DebianSource:
        asked.append(version)
        if version != FOUND.package_version:
            raise UserError(f"src:debian:{version}: no linux-source of that version")
        return FOUND

    @contextmanager
    def package(found: DebianSource, progress: Progress) -> Iterator[Path]:
        tarball = "./usr/src/linux-source-6.12.tar.xz"
        yield synthetic.package(tmp_path / "source.deb", [("./usr/share/doc/x", b"x"), (tarball, packed(FILES))])

    monkeypatch.setattr(debian, "source_of", source_of)
    monkeypatch.setattr(debian, "_package", package)
    return asked


def test_a_source_is_read_once_and_found_again(archive: list[str]) -> None:
    assert excerpts.at_hand("6.12.9-1") is None
    excerpts.fetched("6.12.9-1", Quiet())
    found = excerpts.fetched("6.12.9-1", Quiet())
    assert archive == ["6.12.9-1"]
    assert found.where("pipe_wait") == ["fs/pipe.c", "include/linux/pipe.h"]
    assert found.read("fs/pipe.c") == FILES["fs/pipe.c"]
    assert [found.has_word(word) for word in ("sleep", "slee", "big", "obj")] == [True, False, False, False]
    assert found.where("pipe") == found.where("wait") == found.where("big") == []
    assert found.read("drivers/gpu/drm/big.c") == found.read("none.c") == ""
    assert [path.name for path in excerpts.kept()[0].path.parent.iterdir() if path.name != ".lock"] == [
        "6.12.9-1.functions.zip"  # neither the tarball nor a part of it
    ]


NAMES = st.text("ab_", min_size=1, max_size=4)


@given(st.lists(NAMES, unique=True, max_size=40), st.lists(NAMES, max_size=20))
def test_every_function_and_word_of_a_source_is_found_and_no_other(names: list[str], others: list[str]) -> None:
    texts = [(f"fs/{name}.c", f"int {name}(void)\n{{\n\treturn 0;\n}}\n".encode()) for name in names]
    with tempfile.NamedTemporaryFile() as file:
        excerpts.write(file, iter(texts))
        found = excerpts.Excerpt(Path(file.name))
        for name in (*names, *others):
            assert found.where(name) == ([f"fs/{name}.c"] if name in names else [])
            assert found.has_word(name) == (name in names)


def test_a_damaged_one_is_made_again(archive: list[str]) -> None:
    excerpts.fetched("6.12.9-1", Quiet())
    (one,) = excerpts.kept()
    one.path.write_bytes(one.path.read_bytes()[:100])
    assert excerpts.at_hand("6.12.9-1") is None
    assert excerpts.fetched("6.12.9-1", Quiet()).where("pipe_wait") and len(archive) == 2


def test_a_tarball_with_a_damaged_header_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    chain = tarfile.TarInfo("x")
    chain.type, chain.size = tarfile.GNUTYPE_LONGNAME, 1
    first = synthetic.tarred([("linux-source-6.12/fs/a.c", b"int a;")])[:1024]
    tarball = first + (chain.tobuf(tarfile.GNU_FORMAT) + b"a" + bytes(511)) * 2000
    with pytest.raises(UserError, match="the source cannot be read"):
        excerpts._make(tmp_path / "6.12.functions.zip", io.BytesIO(tarball))
    assert not list(tmp_path.iterdir())


def test_a_version_without_a_source_is_refused(archive: list[str]) -> None:
    with pytest.raises(UserError, match="no linux-source"):
        excerpts.fetched("6.16.12-1~bpo13+1", Quiet())


def test_the_least_recently_used_make_way(archive: list[str]) -> None:
    folder = excerpts._path("x").parent
    folder.mkdir(parents=True)
    for number, name in enumerate(("new", "old", "older", "oldest")):
        excerpts._path(name).write_bytes(bytes(8192))
        os.utime(excerpts._path(name), (10_000 - number,) * 2)
    found = excerpts.kept()
    spared = excerpts._path("oldest")
    assert [one.name for one in excerpts.doomed(found, spared, limit_bytes=2 * found[0].size_bytes)] == ["older", "old"]
    assert excerpts.doomed(found, spared) == []
    excerpts.remove(found[0])
    assert [one.name for one in excerpts.kept()] == ["old", "older", "oldest"]


@pytest.mark.parametrize(
    ("origin", "version"),
    [
        ("Debian linux-image-6.12.9+deb13-amd64 6.12.9-1", "6.12.9-1"),
        ("Debian linux-binary-7.3.4+deb13-amd64 7.3.4-1~bpo13+1", "7.3.4-1~bpo13+1"),
        ("built from ./linux", ""),
        ("", ""),
    ],
)
def test_the_version_of_a_source_is_that_of_the_package(origin: str, version: str) -> None:
    assert excerpts.version_of(replace(kernel("6.12"), origin=origin)) == version

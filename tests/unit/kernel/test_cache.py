# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import errno
import hashlib
import multiprocessing
import os
from pathlib import Path

import pytest

from kdelta import digests, vouched
from kdelta.errors import HostError
from kdelta.kernel import cache


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))


def _entry(image: bytes, vmlinux: bytes = b"", release: str = "6.12", package: str = "") -> cache.Entry:
    return cache.Entry(
        sha256=hashlib.sha256(image).hexdigest(),
        vmlinux_sha256=hashlib.sha256(vmlinux).hexdigest() if vmlinux else "",
        release=release,
        arch="x86_64",
        form="bzImage",
        package=package,
    )


def _put(
    image: bytes = b"image", vmlinux: bytes = b"vmlinux", config: str = "CONFIG_A=y\n", **more: str
) -> cache.Stored:
    return cache.put(_entry(image, vmlinux, **more), image, vmlinux, config)


def test_what_was_stored_is_found_again() -> None:
    stored = _put()
    found = cache.get(stored.entry.sha256)
    assert found is not None and found.image.read_bytes() == b"image"
    assert found.vmlinux is not None and found.vmlinux.read_bytes() == b"vmlinux"
    assert found.config_text is not None and found.config_text.read_text() == "CONFIG_A=y\n"
    assert [s.entry for s in cache.entries()] == [stored.entry]


@pytest.mark.parametrize("name", ["image", "vmlinux"])
def test_a_damaged_file_makes_the_entry_vanish_so_that_it_is_fetched_again(name: str) -> None:
    stored = _put()
    (stored.folder / name).write_bytes(b"rot")
    assert cache.get(stored.entry.sha256) is None
    assert not stored.folder.exists()
    assert _put().image.read_bytes() == b"image"


def test_files_are_read_once_and_again_where_they_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = _put()
    for module in (digests, vouched):  # as if the files were old: their times cannot be set back (ctime)
        monkeypatch.setattr(module, "_FRESH_NS", -(1 << 62))
    assert cache.get(stored.entry.sha256) is not None
    with monkeypatch.context() as unread:
        unread.setattr(digests, "_read", lambda path: pytest.fail(f"{path} was read"))
        digests._remembered.cache_clear()
        assert cache.get(stored.entry.sha256) is not None
        assert digests.of_file(stored.image) == stored.entry.sha256
    (stored.folder / "vmlinux").write_bytes(b"vmlinuX")
    assert cache.get(stored.entry.sha256) is None


@pytest.mark.parametrize("text", ["", "{", '{"sha256": "other"}'])
def test_a_damaged_entry_is_not_listed_and_is_replaced(text: str) -> None:
    stored = _put()
    (stored.folder / "meta.json").write_text(text)
    assert cache.entries() == []
    assert cache.get(stored.entry.sha256) is None
    assert _put().entry == stored.entry


def test_a_later_config_is_kept_and_a_known_package_is_not_forgotten() -> None:
    _put(config="")
    assert _put(config="CONFIG_B=y\n", package="linux-image-x").config_text is not None
    assert _put(config="").entry.package == "linux-image-x"


def test_a_full_disk_is_one_line_with_path_and_space_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", str(self))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(HostError, match=r"disk full \(\d+ MiB free\)") as error:
        _put()
    assert str(cache.root()) in str(error.value)
    assert [child.name for child in cache.root().iterdir()] == [".lock"]


def test_a_cache_that_cannot_be_written_or_holds_little_is_told_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cache, "_free_bytes", lambda _: 2 << 30)
    assert cache.shortcoming() == ("", "")
    monkeypatch.setattr(cache, "_free_bytes", lambda _: 300 << 20)
    text, remedy = cache.shortcoming()
    assert text.startswith("300 MiB free in ")
    assert "kdelta kernels prune" in remedy
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "file" / "cache"))
    text, remedy = cache.shortcoming()
    assert "Not a directory" in text
    assert remedy == "set KDELTA_CACHE to a directory that you can write to"


def _store_many(folder: str) -> None:
    os.environ["KDELTA_CACHE"] = folder
    for number in range(10):
        _put(image=b"image %d" % number)


def test_processes_that_store_the_same_at_once_agree() -> None:
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_store_many, args=(os.environ["KDELTA_CACHE"],)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    found = cache.entries()
    assert len(found) == 10
    assert all(cache.get(stored.entry.sha256) for stored in found)
    assert not [child for child in cache.root().iterdir() if child.name.startswith(".new-")]


def _aged(release: str, used_s: float, size_bytes: int) -> cache.Stored:
    return cache.Stored(
        entry=_entry(release.encode(), release=release), folder=Path(release), used_s=used_s, size_bytes=size_bytes
    )


def test_prune_takes_the_least_recently_used_first() -> None:
    found = [_aged("a", 300, 10), _aged("b", 100, 10), _aged("c", 200, 10)]
    kept = frozenset({found[1].entry.sha256})

    def gone(**rules: object) -> list[str]:
        return [s.entry.release for s in cache.doomed(found, now_s=400, **rules)]  # type: ignore[arg-type]

    assert gone(limit_bytes=10) == ["b", "c"]
    assert gone(limit_bytes=30) == []
    assert gone(older_than_s=150) == ["b", "c"]
    assert gone(everything=True, keep=kept) == ["c", "a"]
    assert gone(limit_bytes=0, keep=kept) == ["c", "a"]


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file"
    cache.write_atomically(path, b"one")
    cache.write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(path.parent.iterdir()) == [path]

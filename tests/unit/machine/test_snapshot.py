# SPDX-License-Identifier: GPL-2.0-or-later
"""Snapshots as files: what is whole, what is damaged, what is copied."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kdelta import vouched
from kdelta.machine import snapshot

PAGE = 4096


def _ram(path: Path, pages: dict[int, bytes], size: int) -> Path:
    with path.open("wb") as file:
        for number, fill in pages.items():
            file.seek(number * PAGE)
            file.write(fill * PAGE)
        file.truncate(size)
    return path


@pytest.fixture
def saved(tmp_path: Path) -> snapshot.Saved:
    """A whole snapshot of 64 MiB, three pages of which are not zero."""
    state, source = tmp_path / "x.state", tmp_path / "source"
    state.write_bytes(b"devices")
    _ram(source, {0: b"a", 700: b"b", 16383: b"c"}, 64 << 20)
    ram = tmp_path / "x.ram"
    checksum = snapshot._digest(state, source, copy=ram)
    state.with_suffix(".sum").write_bytes(snapshot._TRAILER + checksum)
    return snapshot.Saved(state, ram)


def test_memory_is_copied_whole_and_without_its_zeros(saved: snapshot.Saved, tmp_path: Path) -> None:
    assert saved.ram.read_bytes() == (tmp_path / "source").read_bytes()
    assert saved.ram.stat().st_blocks * 512 <= 64 * PAGE
    assert snapshot.valid(saved)


def test_written_zeros_are_no_damage(saved: snapshot.Saved) -> None:
    with saved.ram.open("r+b") as file:
        file.seek(5 * PAGE)
        file.write(bytes(300 * PAGE))
    assert snapshot.valid(saved)


@pytest.mark.parametrize("what", ["state", "ram", "sum", "moved page", "no ram", "no state"])
def test_a_damaged_or_unfinished_snapshot_is_not_valid(saved: snapshot.Saved, what: str) -> None:
    assert snapshot.valid(saved)
    if what == "state":
        saved.state.write_bytes(b"stale!!")
    elif what == "ram":
        _ram(saved.ram, {0: b"a", 700: b"x", 16383: b"c"}, 64 << 20)
    elif what == "sum":
        saved.state.with_suffix(".sum").write_bytes(b"KDSNAP01")
    elif what == "moved page":
        _ram(saved.ram, {0: b"a", 701: b"b", 16383: b"c"}, 64 << 20)
    else:
        os.unlink(saved.ram if what == "no ram" else saved.state)
    assert not snapshot.valid(saved)


def _as_long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the files be old enough to be vouched for; their times cannot be set back (ctime)."""
    monkeypatch.setattr(vouched, "_FRESH_NS", -(1 << 62))


def test_what_was_checked_once_is_not_read_again(saved: snapshot.Saved, monkeypatch: pytest.MonkeyPatch) -> None:
    _as_long_ago(monkeypatch)
    read: list[Path] = []
    digest = snapshot._digest

    def watched(state: Path, ram: Path) -> bytes:
        read.append(ram)
        return digest(state, ram)

    monkeypatch.setattr(snapshot, "_digest", watched)
    assert snapshot.valid(saved) and snapshot.valid(saved)
    assert read == [saved.ram]
    saved.state.write_bytes(b"stale!!")
    assert not snapshot.valid(saved)
    assert len(read) == 2


def test_nothing_is_vouched_for_beyond_a_boot_of_the_machine(
    saved: snapshot.Saved, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _as_long_ago(monkeypatch)
    said = vouched.stamp((saved.state, saved.ram))
    assert said and said == vouched.stamp((saved.state, saved.ram))
    (tmp_path / "boot_id").write_text("another\n")
    monkeypatch.setattr(vouched, "_BOOT_ID", tmp_path / "boot_id")
    assert vouched.stamp((saved.state, saved.ram)) != said
    monkeypatch.setattr(vouched, "_BOOT_ID", tmp_path / "none")
    assert vouched.stamp((saved.state, saved.ram)) == ""


def test_what_changed_just_now_is_not_vouched_for(saved: snapshot.Saved) -> None:
    newest = max(path.stat().st_ctime_ns for path in (saved.state, saved.ram))
    assert vouched.stamp((saved.state, saved.ram), newest + 1) == ""
    assert vouched.stamp((saved.state, saved.ram), newest + (3 << 30)) != ""


def test_a_book_cut_short_vouches_for_nothing(saved: snapshot.Saved, monkeypatch: pytest.MonkeyPatch) -> None:
    _as_long_ago(monkeypatch)
    book, said = saved.state.with_suffix(".seen"), vouched.stamp((saved.state, saved.ram))
    vouched.vouch(book, said)
    assert vouched.is_vouched(book, said)
    book.write_text(said[:-9])
    assert not vouched.is_vouched(book, said)


def test_what_this_process_made_is_read_again_only_when_it_changed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def save(_guest: object, target: Path, _limit_s: float) -> None:
        target.write_bytes(b"devices")
        _ram(tmp_path / "guest-ram", {3: b"a"}, 64 << 20)

    monkeypatch.setattr(snapshot, "_save", save)
    guest: Any = SimpleNamespace(path=lambda name: tmp_path / f"guest-{name}")
    made = snapshot.Saved(tmp_path / "x.state", tmp_path / "x.ram")
    assert snapshot._make(guest, made, 1.0, lambda: True) is None
    with monkeypatch.context() as unread:
        unread.setattr(snapshot, "_digest", lambda *_: pytest.fail("it was read"))
        assert snapshot.valid(made)
    with made.ram.open("r+b") as file:
        file.write(b"damage")
    assert not snapshot.valid(made)

# SPDX-License-Identifier: GPL-2.0-or-later
"""The recording of path names: what counts as a lookup, and which are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

import record_paths


def test_only_lookups_that_ended_well_or_with_enoent_count() -> None:
    lines = [
        '7 openat(AT_FDCWD, "/usr/include/stdio.h", O_RDONLY) = 3',
        '7 access("/etc/ld.so.preload", R_OK) = -1 ENOENT (No such file or directory)',
        '7 newfstatat(AT_FDCWD, "/lib", {}, AT_SYMLINK_NOFOLLOW) = 0',  # does not follow
        '7 newfstatat(3, "", {st_mode=S_IFREG|0644}, AT_EMPTY_PATH) = 0',  # no name
        '7 openat(AT_FDCWD, "/secret/x", O_RDONLY) = -1 EACCES (Permission denied)',
        '7 unlink("/tmp/cc1.s") = 0',
        "7 +++ exited with 0 +++",
        '8 execve("/usr/bin/as", ["as"], 0x7ffd /* 9 vars */) = 0',
    ]
    assert list(record_paths.parse(lines)) == [
        ("/usr/include/stdio.h", True),
        ("/etc/ld.so.preload", False),
        ("/usr/bin/as", True),
    ]


def test_a_name_counts_once_and_not_at_all_when_it_came_or_went() -> None:
    lookups = [("/a", True), ("/o", False), ("/b", False), ("/a", True), ("/o", True), ("/proc/x", True)]
    assert record_paths.distinct(lookups) == {"/a": True, "/b": False}


def test_the_selection_has_the_numbers_of_the_claim_in_the_order_recorded() -> None:
    found = {f"/{i}": i % 3 == 0 for i in range(900)}
    selected = record_paths.select(found)
    assert (len(selected), list(selected.values()).count(False)) == (205, 118)
    assert list(selected) == [path for path in found if path in selected]


def test_too_short_a_recording_is_refused() -> None:
    with pytest.raises(SystemExit, match="are needed"):
        record_paths.select({"/a": True})


def test_a_walk_counts_symlinks_and_notes_parents_first(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").touch()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "far").symlink_to(tmp_path / "link")
    tree = record_paths.Tree(str(tmp_path))
    above = sum(p.is_symlink() for p in tmp_path.parents)
    assert tree.walk(f"{tmp_path}/real/../real/file", True) == above
    assert tree.walk(f"{tmp_path}/link/file", True) == above + 1
    assert tree.walk("far/nothing/more", False) == 2 + above
    mine = [p.removeprefix(f"{tmp_path}/") for p in tree.entries if p.startswith(f"{tmp_path}/")]
    assert mine == ["real", "real/file", "link", "far"]

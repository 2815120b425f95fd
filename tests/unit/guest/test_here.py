# SPDX-License-Identifier: GPL-2.0-or-later
"""What is packed of the directory that a program is started in."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from kdelta.guest import here, packing, shell
from kdelta.spec.program import Program


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("cache", "state"):
        monkeypatch.setenv(f"KDELTA_{name.upper()}", str(tmp_path / name))
        (tmp_path / name).mkdir()
        (tmp_path / name / "large").write_text("x")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    packing.pack.cache_clear()


def git(folder: Path, *words: str) -> None:
    more = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *more, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    if shutil.which("git") is None:
        pytest.skip("no git")
    (top := tmp_path / "top").mkdir()
    git(top, "init", "-q")
    (top / ".gitignore").write_text("ignored/\n")
    (top / "sub").mkdir()
    (top / "sub" / "file").write_text("x")
    git(top, "add", ".")
    git(top, "commit", "-qm", "one")
    (top / "ignored").mkdir()
    (top / "ignored" / "large").write_bytes(bytes(4096))
    return top


def names(found: here.Here) -> set[str]:
    return {os.path.relpath(name, found.root) for name, _ in found.nodes}


def test_a_directory_is_found_with_all_that_is_in_it_but_sockets_and_our_own(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("x")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "gone").symlink_to("nowhere")
    (tmp_path / "bytes\udcff").write_text("x")
    (listening := socket.socket(socket.AF_UNIX)).bind(str(tmp_path / "s"))
    found = here.find(tmp_path)
    listening.close()
    assert names(found) == {"data.csv", "folder", "gone", "bytes\udcff"}
    assert found.said == f"{tmp_path}: 4 files and directories, 0.0 MiB" and not found.note
    nodes = packing.of_case(packing.pack(Program(argv=("cat", "data.csv")), tmp_path, False, found)).tree
    assert nodes is not None and b"bytes\xff\0" in nodes.read_bytes()


def test_in_a_repository_all_of_it_is_found(repository: Path) -> None:
    found = here.find(repository / "sub")
    assert found.root == repository and {".git/HEAD", "sub/file", "ignored/large"} <= names(found)


def test_what_git_ignores_is_left_out_where_it_is_too_much(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = sum(one.stat().st_size for one in repository.rglob("*") if one.is_file()) - 4096
    monkeypatch.setattr(here, "MOST_BYTES", kept + 100)
    found = here.find(repository)
    assert {"ignored", "sub/file"} <= names(found) and "ignored/large" not in names(found)
    assert "packed as empty directories (ignored/)" in found.note and "without what git ignores" in found.said
    monkeypatch.setattr(here, "MOST_BYTES", 50)
    found = here.find(repository)
    assert not found.nodes and f"the files of {repository} are not packed: they are more than" in found.note
    assert "--tree . packs" in found.note and "\n" not in found.note


def test_a_worktree_and_a_clone_that_shares_objects_bring_their_repository(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "-q", "../beside")
    git(repository, "clone", "-q", "--shared", ".", "../clone")
    beside = here.find(tmp_path / "beside")
    assert any(name.endswith("top/.git/HEAD") for name, _ in beside.nodes)
    assert any(name.endswith("top/.git/worktrees/beside/HEAD") for name, _ in beside.nodes)
    clone = here.find(tmp_path / "clone")
    assert any("top/.git/objects" in name for name, _ in clone.nodes)


def test_a_link_to_a_file_elsewhere_brings_the_file(tmp_path: Path) -> None:
    (place := tmp_path / "place").mkdir()
    (tmp_path / "elsewhere").write_text("12345")
    (place / "link").symlink_to("../elsewhere")
    (place / "inside").symlink_to("link")
    found = here.find(place)
    packed = packing.of_case(packing.pack(Program(argv=("cat",)), place, False, found)).tree
    assert packed is not None and f"{tmp_path}/elsewhere".encode() in packed.read_bytes()


def test_what_links_lead_to_does_not_make_a_directory_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``find /etc`` had nothing to find: /etc has 3 MB, and what /etc/alternatives leads to more than 32."""
    (folder := tmp_path / "etc").mkdir()
    (tmp_path / "compiler").write_bytes(bytes(9000))
    (folder / "a.conf").write_text("x")
    (folder / "cc").symlink_to(tmp_path / "compiler")
    monkeypatch.setattr(here, "MOST_BYTES", 5000)
    (named,) = here.named([str(folder)], tmp_path / "cache", None)
    for found in (named, here.find(folder)):
        assert names(found) == {"a.conf", "cc"} and found.outside == ()
        assert "links" in found.note and "are not packed" in found.note
        assert found.said.endswith(
            "2 files and directories, 0.0 MiB, without the files elsewhere that its links lead to"
        )
    (folder / "large").write_bytes(bytes(6000))
    assert not here.find(folder).nodes


def test_neither_the_home_nor_the_root_is_packed_unasked(tmp_path: Path) -> None:
    (home := tmp_path / "home").mkdir()
    assert here.find(home) == here.Here(root=home), "an empty one has nothing to tell"
    (home / ".git").mkdir()
    (home / "sub").mkdir()
    assert "it is your home directory; --tree . packs" in here.find(home).note
    assert "it is the root of this machine" in here.find(Path("/")).note
    assert here.find(home / "sub").root == home / "sub"


def test_too_many_files_stop_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(here, "MOST_FILES", 3)
    (place := tmp_path / "many").mkdir()
    for number in range(6):
        (place / str(number)).write_text("")
    assert "more than 32 MiB or 3 files" in here.find(place).note


def test_a_directory_that_a_word_names_is_found(tmp_path: Path, repository: Path) -> None:
    (place := tmp_path / "place").mkdir()
    (place / "inside").mkdir()
    (away := tmp_path / "away").mkdir()
    (away / "file").write_text("x")
    (place / "data").write_text("x")
    around = here.find(place)
    words = ("-l", "inside", "../away", f"--dir={away}", "/proc", "nowhere", "", "nul\0")
    (found,) = here.named(words, place, around)
    assert names(found) == {"file"} and found.said == f"{away}: 1 files and directories, 0.0 MiB" and not found.note
    case = packing.pack(Program(argv=("ls", *words[:-1])), place, False, around, (found,))
    packed = packing.of_case(case).tree
    assert packed is not None and f"{away}/file".encode() in packed.read_bytes()
    assert case.found == f"{place}: 2 files and directories, 0.0 MiB; {found.said}"
    (tmp_path / "link").symlink_to("away")
    (linked,) = here.named(("../link",), place, around)
    packed = packing.of_case(packing.pack(Program(argv=("ls", "../link")), place, False, around, (linked,))).tree
    assert linked.root == away and packed is not None
    assert f"{away}/file".encode() in packed.read_bytes() and f"{tmp_path}/link\0".encode() in packed.read_bytes()
    assert f"{tmp_path}/link/".encode() not in packed.read_bytes()
    (of_git,) = here.named(("-C", str(repository / "sub"), "status"), place, around)
    assert of_git.root == repository and ".git/HEAD" in names(of_git)


def test_a_directory_that_is_too_large_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = "/a: 3 files; of /b c only what it runs with: it; of /d only what it runs with: it"
    assert here.lacking(words) == ("/b c", "/d")
    (away := tmp_path / "away").mkdir()
    (away / "file").write_text("12345")
    monkeypatch.setattr(here, "MOST_BYTES", 3)
    (found,) = here.named((str(away),), tmp_path, None)
    assert not found.nodes and found.said.startswith(f"of {away} only what it runs with: it is more than")
    assert f"--tree {away} packs all of it" in found.note and "\n" not in found.note
    assert here.packs_all("/") == "--follow packs what it opens"
    around = here.find(away)
    assert around.note and here.named((".",), away, around) == ()


def test_a_path_is_named_behind_file_too(tmp_path: Path) -> None:
    """``curl -s file:///etc/services`` had no such file in the guest."""
    assert here.parts("file:///etc/services") == ("file:///etc/services", "/etc/services")
    assert here.parts("--url=file:///etc/services")[-1] == "/etc/services"
    (tmp_path / "x").write_text("")
    assert shell.typed(("/bin/sh", "-c", f"curl -s file://{tmp_path}/x")) == (f"{tmp_path}/x",)

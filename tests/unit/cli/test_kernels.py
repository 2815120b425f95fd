# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from kdelta import paths
from kdelta.cli.kernels import _print_kernel, command
from kdelta.errors import UserError
from kdelta.kernel import cache, debian, debver, maps
from kdelta.model import Kernel


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path))
    for release in ("6.1.0-56-amd64", "6.12.117+deb13-amd64"):
        image = release.encode()
        entry = cache.Entry(
            sha256=hashlib.sha256(image).hexdigest(), release=release, arch="x86_64", form="bzImage", origin="Debian x"
        )
        cache.put(entry, image, None, "")


def _run(*args: str) -> str:
    result = CliRunner().invoke(command, list(args), catch_exceptions=False, standalone_mode=True)
    assert result.exit_code == 0, result.output
    return result.output


def test_cached_kernels_are_listed_as_text_and_json() -> None:
    text = _run("list")
    assert "6.12.117+deb13-amd64" in text and "2 kernels" in text
    assert all(len(line) <= 80 for line in text.splitlines()[:-1])
    found = json.loads(_run("list", "--json"))["kernels"]
    assert [kernel["release"] for kernel in found] == ["6.1.0-56-amd64", "6.12.117+deb13-amd64"]


def test_available_kernels_are_the_newest_of_each_series(monkeypatch: pytest.MonkeyPatch) -> None:
    index = "\n\n".join(
        f"Package: linux-image-{release}-amd64\nVersion: {version}\nSize: 9999999"
        for release, version in (
            ("6.12.90+deb13", "6.12.90-1"),
            ("6.12.117+deb13", "6.12.117-1"),
            ("6.18.5+deb13", "6.18.5-1"),
        )
    )
    monkeypatch.setattr(debian, "available", lambda arch, progress: debver.kernels(index, arch))
    assert [k["spec"] for k in json.loads(_run("list", "--available", "--json"))["kernels"]] == [
        "debian:6.12.117",
        "debian:6.18.5",
    ]
    text = _run("list", "--available", "--all")
    assert "debian:6.12.90" in text and all(len(line) <= 80 for line in text.splitlines())
    with pytest.raises(UserError, match="no such flavour"):
        _run("list", "--available", "--flavour", "rt")


def test_prune_removes_what_it_says_and_keeps_what_is_kept() -> None:
    assert "would remove 6.1.0-56-amd64" in _run("prune", "--all", "--keep", "6.12", "--dry-run")
    assert len(cache.entries()) == 2
    assert "removed 6.1.0-56-amd64" in _run("prune", "--all", "--keep", "6.12")
    assert [stored.entry.release for stored in cache.entries()] == ["6.12.117+deb13-amd64"]
    assert json.loads(_run("prune", "--older-than", "1d", "--json"))["removed"] == []


def test_prune_removes_only_what_is_named() -> None:
    sum_ = next(stored.entry.sha256 for stored in cache.entries() if stored.entry.release.startswith("6.1.0"))
    assert "would remove 6.1.0-56-amd64" in _run("prune", "--only", "6.1.0", "--dry-run")
    assert "1 of 2 kernels, 0 build trees, 0 maps" in _run("prune", "--only", sum_[:12])
    assert [stored.entry.release for stored in cache.entries()] == ["6.12.117+deb13-amd64"]


def test_prune_removes_the_maps_of_what_goes_and_old_ones() -> None:
    for stored in cache.entries():
        folder = maps.folder_of(stored.entry.sha256)
        folder.mkdir(parents=True)
        (folder / "row.msgpack").write_bytes(b"x" * 5000)
    orphan = maps.folder_of("f" * 64)
    orphan.mkdir()
    os.utime(orphan, (0, 0))
    assert json.loads(_run("prune", "--older-than", "1d", "--dry-run", "--json"))["maps"] == ["f" * 16]
    assert "1 maps" in _run("prune", "--older-than", "1d")
    assert "1 of 2 kernels, 0 build trees, 1 maps" in _run("prune", "--all", "--keep", "6.12")
    (left,) = cache.entries()
    assert [one.folder for one in maps.maps()] == [maps.folder_of(left.entry.sha256)]


def test_prune_removes_snapshots_that_nobody_uses() -> None:
    folder = paths.cache_dir() / "snapshots"
    folder.mkdir(parents=True)
    for name, idle_s in (("old", 90_000), ("lately", 7200), ("now", 0)):
        for suffix in (".lock", ".state", ".ram", ".sum"):
            (folder / f"{name}{suffix}").write_bytes(b"x")
            os.utime(folder / f"{name}{suffix}", (time.time() - idle_s,) * 2)
    assert json.loads(_run("prune", "--older-than", "1d", "--json"))["snapshots"] == ["old"]
    assert "2 kernels, 0 build trees, 0 maps, 1 snapshots" in _run("prune", "--all")
    assert {path.name.partition(".")[0] for path in folder.iterdir()} == {"now"}


def test_prune_removes_functions_of_sources_that_were_not_read_lately() -> None:
    folder = paths.cache_dir() / "sources"
    folder.mkdir()
    for name, idle_s in (("6.1.1-1", 90_000), ("6.12.1-1", 7200)):
        (folder / f"{name}.functions.zip").write_bytes(b"x")
        os.utime(folder / f"{name}.functions.zip", (time.time() - idle_s,) * 2)
    assert json.loads(_run("prune", "--older-than", "1d", "--json"))["sources"] == ["6.1.1-1"]
    assert "the functions of 1 sources" in _run("prune", "--all")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ((), "say what"),
        (("--only", "5.10"), "no kernel in the cache is 5.10"),
        (("--only", "6.1", "--all"), "leave --older-than"),
        (("--only", ""), "is missing"),
        (("--all", "--keep", ""), "is missing"),
        (("--older-than", "soon"), "not an age"),
        (("--size", "big"), "not a size"),
    ],
)
def test_prune_refuses_what_it_does_not_understand(args: tuple[str, ...], why: str) -> None:
    with pytest.raises(UserError, match=why):
        _run("prune", *args)
    assert len(cache.entries()) == 2


def test_a_compilers_whole_name_is_shown_and_a_longer_text_ends_visibly(capsys: pytest.CaptureFixture[str]) -> None:
    name = "x86_64-linux-gnu-gcc-14 (Debian 14.2.0-19) 14.2.0"
    for text, shown in ((name, name), ("c" * 100, "c" * 71 + "…")):
        kernel = Kernel(
            label="a",
            spec="a",
            release="6.12",
            image_path="/i",
            image_sha256="a" * 64,
            config={"CC_VERSION_TEXT": text},
        )
        _print_kernel(kernel, {"functions": 1, "functions_source": "b", "size_bytes": 1, "config_source": ""})
        assert capsys.readouterr().out.splitlines()[-1].split(maxsplit=1)[1] == shown


@pytest.mark.parametrize("name", ["list", "fetch", "show", "prune"])
def test_every_subcommand_has_examples(name: str) -> None:
    assert "Examples:" in _run(name, "--help")

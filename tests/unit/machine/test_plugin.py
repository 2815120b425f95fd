# SPDX-License-Identifier: GPL-2.0-or-later
"""The plugin is compiled once per content; a machine that cannot compile or run it is told so."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kdelta.errors import HostError
from kdelta.guest.binary import STRICT
from kdelta.machine import plugin


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "plugin"
    folder.mkdir()
    (folder / "one.c").write_text("int one(void);\nint one(void) { return 1; }\n")
    (folder / "two.h").write_text("")
    monkeypatch.setattr(plugin, "shipped", lambda name: tmp_path / name)
    return folder


def test_equal_sources_are_compiled_once(sources: Path, tmp_path: Path) -> None:
    made = plugin.build(tmp_path / "cache")
    stamp = made.stat().st_mtime_ns
    assert made.read_bytes()[:4] == b"\x7fELF"
    assert plugin.build(tmp_path / "cache") == made
    assert made.stat().st_mtime_ns == stamp
    assert sorted(path.name for path in made.parent.iterdir()) == [made.name, f"{made.name}.sha256"]


def test_a_damaged_one_is_compiled_again(sources: Path, tmp_path: Path) -> None:
    whole = plugin.build(tmp_path / "cache").read_bytes()
    made = plugin.build(tmp_path / "cache")
    made.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
    assert plugin.build(tmp_path / "cache").read_bytes() == whole


@pytest.mark.parametrize("changed", ["one.c", "two.h", "three.c"])
def test_changed_sources_are_compiled_again(sources: Path, tmp_path: Path, changed: str) -> None:
    before = plugin.build(tmp_path / "cache")
    (sources / changed).write_text("int three(void);\nint three(void) { return 3; }\n")
    after = plugin.build(tmp_path / "cache")
    assert after != before
    assert after.is_file()


def test_the_compilers_first_error_is_named(sources: Path, tmp_path: Path) -> None:
    (sources / "one.c").write_text("int one(void) { return undeclared; }\n")
    with pytest.raises(HostError, match="undeclared") as caught:
        plugin.build(tmp_path / "cache")
    assert "\n" not in str(caught.value)
    assert not list((tmp_path / "cache" / "plugin").iterdir())


def test_a_warning_that_a_newer_compiler_knows_stops_nobody_but_the_check(sources: Path, tmp_path: Path) -> None:
    """gcc 15 found an array that is not a string, and no count could be made on Fedora 42."""
    (sources / "one.c").write_text("static int unused;\n")
    assert plugin.build(tmp_path / "cache").is_file()
    with pytest.raises(HostError, match="unused"):
        plugin.build(tmp_path / "cache", STRICT)


def test_a_machine_without_gcc_is_told_what_to_install(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(HostError, match="apt-get install gcc"):
        plugin.build(tmp_path / "cache")


def test_a_cache_that_cannot_be_written_is_named(sources: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(HostError, match="cannot write below"):
        plugin.build(tmp_path / "cache")


@pytest.mark.parametrize(
    ("help_text", "supported"),
    [("-plugin [file=]<file>[,<argname>=<argvalue>]\n", True), ("-device driver\n  no -plugin here\n", False)],
)
def test_plugins_are_supported_where_the_help_names_the_option(tmp_path: Path, help_text: str, supported: bool) -> None:
    (tmp_path / "help").write_text(help_text)
    qemu = tmp_path / "qemu"
    qemu.write_text(f"#!/bin/sh\ncat '{tmp_path / 'help'}'\n")
    qemu.chmod(0o755)
    assert plugin.supports_plugins(qemu) is supported


def test_a_qemu_that_cannot_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="cannot be run"):
        plugin.supports_plugins(tmp_path / "missing")


def test_a_qemu_that_loads_it_has_nothing_against_it(guest_cache: Path) -> None:
    qemu = shutil.which("qemu-system-x86_64")
    if qemu is None:
        pytest.skip("needs QEMU")
    assert plugin.refusal(Path(qemu), plugin.build(guest_cache))[:28] in ("", "plugin requires API version ")
    assert plugin.refusal(Path(qemu), guest_cache / "gone.so").startswith("cannot open shared object file")


def test_the_bytes_do_not_hang_on_where_kdelta_lies(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """assert() kept the path of its source: hosts of a fleet with kdelta in different places were unlike kinds."""
    kept = '__attribute__((visibility("default"))) int one(int n);\nint one(int n) { assert(n); return n; }\n'
    (sources / "one.c").write_text(f"#include <assert.h>\n{kept}")
    built = [plugin.build(tmp_path / "a").read_bytes()]
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(sources, elsewhere)
    monkeypatch.setattr(plugin, "shipped", lambda _: elsewhere)
    built.append(plugin.build(tmp_path / "b").read_bytes())
    assert built[0] == built[1]

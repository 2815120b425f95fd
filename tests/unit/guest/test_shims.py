# SPDX-License-Identifier: GPL-2.0-or-later
"""What a version manager's shim stands for is packed, and found again in the guest."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdelta.errors import UserError
from kdelta.guest import packing
from kdelta.guest.closure import on_path
from kdelta.spec.program import Program


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def shim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The shim of a `tool` under a manager that says what the file `answer` has."""
    manager = script(tmp_path / "bin" / "manager", f'#!/bin/sh\n[ "$1" = which ] && . {tmp_path}/answer\n')
    text = '#!/usr/bin/env bash\nset -e\nprogram="${0##*/}"\n' + f'exec "{manager}" exec "$program" "$@"\n'
    found = script(tmp_path / "shims" / "tool", text)
    monkeypatch.setenv("PATH", f"{found.parent}:/usr/bin:/bin")
    return found


def test_a_shim_is_what_its_manager_says(shim: Path, tmp_path: Path) -> None:
    real = script(tmp_path / "versions" / "1" / "tool", "#!/bin/sh\n")
    (tmp_path / "answer").write_text(f"echo {real}\n")
    assert on_path("tool") == on_path("shims/tool", tmp_path) == real


@pytest.mark.parametrize(
    ("answer", "why"),
    [("echo 'manager: tool: command not found' >&2; exit 127", "command not found"), ("echo tool", "said nothing")],
)
def test_a_shim_of_nothing_is_refused_with_what_its_manager_says(
    shim: Path, tmp_path: Path, answer: str, why: str
) -> None:
    (tmp_path / "answer").write_text(answer)
    with pytest.raises(UserError, match=rf"tool: a shim of .*manager, which names no program \(.*{why}.*give its path"):
        on_path("tool")


def test_other_scripts_are_themselves(shim: Path) -> None:
    shim.write_text("#!/bin/sh\nexec true\n")
    assert on_path("tool") == shim


def test_a_proxy_of_rustup_is_what_rustup_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``rustc h.rs`` packed rustup, which "could not choose a version of rustc to run" in the guest."""
    real = script(tmp_path / "toolchains" / "stable" / "bin" / "rustc", "#!/bin/sh\n")
    rustup = script(tmp_path / "bin" / "rustup", f'#!/bin/sh\n[ "$1 $2" = "which rustc" ] && echo {real}\n')
    (proxy := rustup.parent / "rustc").symlink_to("rustup")
    (rustup.parent / "cargo").hardlink_to(rustup)
    script(rustup.parent / "mine", "#!/bin/sh\n")
    monkeypatch.setenv("PATH", f"{proxy.parent}:/usr/bin:/bin")
    assert on_path("rustc") == on_path(str(proxy)) == real
    assert (on_path("rustup"), on_path("mine")) == (rustup, rustup.parent / "mine")
    with pytest.raises(UserError, match=r"cargo: a shim of .*rustup, which names no program"):
        on_path("cargo")


def test_what_stands_beside_a_program_that_is_found_by_name_is_found_in_the_guest_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """cargo, of a toolchain in a home directory, found no rustc."""
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    own = script(tmp_path / "own" / "mine", "#!/bin/sh\n")
    monkeypatch.setenv("PATH", f"{own.parent}:/usr/bin:/bin")
    found = {}
    for word in ("mine", "own/mine", "sh"):
        spec = packing.of_case(packing.pack(Program(argv=(word,)), tmp_path)).spec.read_bytes().decode()
        (found[word],) = (row[9:] for row in spec.split("\0") if row.startswith("env=PATH="))
    assert found["mine"] == f"{own.parent}:{found['sh']}" and found["own/mine"] == found["sh"]


def test_an_interpreter_that_env_finds_here_is_found_in_the_guest_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    own = script(tmp_path / "own" / "bin" / "mine", "#!/bin/sh\n")
    monkeypatch.setenv("PATH", f"{own.parent}:/usr/bin:/bin")
    paths = {}
    for name, interpreter in (("a", "mine"), ("b", "sh")):
        program = Program(argv=(str(script(tmp_path / name, f"#!/usr/bin/env {interpreter}\n")),))
        spec = packing.of_case(packing.pack(program, tmp_path)).spec.read_bytes()
        (paths[name],) = (row[9:] for row in spec.decode().split("\0") if row.startswith("env=PATH="))
    assert paths["a"] == f"{own.parent}:{paths['b']}"

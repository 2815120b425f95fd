# SPDX-License-Identifier: GPL-2.0-or-later
"""compare --why stacks: what is refused before anything is booted, and what a page without flame graphs says."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.cli import _calls
from kdelta.cli.main import run
from kdelta.errors import UserError
from kdelta.model import Kernel, MachineOptions, plans
from kdelta.store.store import Store
from unit.serve import serve_store


def test_stacks_stand_beside_what_is_traced() -> None:
    assert _calls.split("locks, stacks,hold") == (True, "locks,hold")
    assert _calls.split("stacks") == (True, "")
    assert _calls.split("locks") == (False, "locks")
    assert _calls.split(None) == (False, "")


def test_what_was_asked_beside_is_read_off_the_command() -> None:
    for command, why in (
        ("kdelta compare 6.12 7.0 --why stacks,locks --case pipe", "stacks,locks"),
        ("kdelta compare 6.12 7.0 --why=hold", "hold"),
        ("kdelta compare 6.12 7.0", None),
        ("kdelta compare 6.12 7.0 -- prog --why stacks", None),
        ("kdelta compare 6.12 7.0 --why", ""),
        ("kdelta compare 'not closed --why stacks", None),
    ):
        assert _calls.asked(command) == why, command


def _arm(kernel: Kernel) -> Kernel:
    return replace(kernel, arch="arm64")


def test_what_has_no_calls_to_follow_is_refused_before_it_is_measured() -> None:
    made = serve_store.experiment("one", ("6.12", "7.0"))
    _calls.refuse(made)
    for other, why in (
        (replace(made, mode="timed"), "leave out --timed, or add --exact"),
        (replace(made, plan=plans.Sweep()), "--each"),
        (replace(made, machine=MachineOptions(smp=2)), "one have 2"),
        (replace(made, kernels=(made.kernels[0], _arm(made.kernels[1]))), "7.0 is of arm64"),
    ):
        with pytest.raises(UserError, match=why):
            _calls.refuse(other)


def test_a_set_that_is_none_is_answered_with_those_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", "debian:6.12", "debian:7.0", "--why", "stack"]) == 1
    assert "wakeups, hold, stacks; did you mean stacks?" in capsys.readouterr().err


def test_a_page_without_flame_graphs_says_how_it_gets_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KDELTA_STATE", str(tmp_path))
    monkeypatch.delenv("KDELTA_STORE", raising=False)
    offered = "kdelta why one --stacks, then report it"
    with Store() as store:
        store.create(serve_store.experiment("one", ("6.12", "7.0")))
        for block in range(5):
            for slot in range(2):
                store.save_boot("one", serve_store.boot(block, slot))
    assert run(["report", "one", "--format", "html"]) == 0
    assert offered in capsys.readouterr().err
    assert run(["report", "one"]) == 0
    assert offered not in capsys.readouterr().err
    with Store() as store:
        for block in range(5):
            for slot in range(2):
                store.keep_stacks("one", (block, slot), 0, f"0 0 0 [kernel]\n1 20 1 read\n2 {7 + 9 * slot} 1 copy")
    assert run(["report", "one", "--format", "html"]) == 0
    assert offered not in capsys.readouterr().err

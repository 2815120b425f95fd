# SPDX-License-Identifier: GPL-2.0-or-later
"""When compare chooses the cases itself, and what it refuses before it fetches or builds anything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Event

import pytest

from kdelta.attribution.reach import Row
from kdelta.cli import _auto, _patching, compare, reach
from kdelta.cli.main import run
from kdelta.errors import UserError
from kdelta.experiment import auto
from kdelta.kernel.sources import parse_kernel
from kdelta.model import Kernel, Quiet


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--case", "auto", "--case", "pipe"), "--case auto chooses the cases"),
        (("--case", "auto", "--timed", "--pressure", "2x60%"), "--case auto chooses the cases"),
        (("--all",), "--all adds controls"),
        (("--all", "--case", "pipe"), "--all adds controls"),
    ],
)
def test_what_contradicts_is_refused(options: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", "debian:6.12", "debian:7.0", *options]) == 1
    got = capsys.readouterr().err.strip()
    assert said in got and "\n" not in got


@pytest.mark.parametrize("named", [(), ("--case", "pipe"), ("--suite", "patches")])
def test_a_patch_without_a_case_chooses_and_a_named_case_is_taken(named: tuple[str, ...]) -> None:
    context = compare.command.make_context("compare", ["a", "b", *named])
    values = {name: value for name, value in context.params.items() if name in compare.Args.__dataclass_fields__}
    args = compare.Args(**values)
    patched = [parse_kernel(text) for text in ("src:debian:6.12", "src:debian:6.12+my.patch")]
    assert _auto.wanted(args, patched) == (not named)
    assert not _auto.wanted(args, patched[:1] * 2)  # two branches, or two shipped kernels: asked for by name
    assert not _auto.wanted(args, [parse_kernel("debian:6.12"), patched[1]])
    other = parse_kernel('src:debian:6.12+my.patch,cmdline="init_on_alloc=1"')  # its code says nothing of that
    assert not _auto.wanted(args, [patched[1], other])


def test_a_program_is_measured_beside_the_cases_that_are_chosen() -> None:
    context = compare.command.make_context("compare", ["a", "b", "--case", "auto", "--", "/bin/true"])
    values = {name: value for name, value in context.params.items() if name in compare.Args.__dataclass_fields__}
    args = compare.Args(**values)
    assert _auto.wanted(args, [parse_kernel(text) for text in ("debian:6.12", "debian:7.0")])
    assert [case.name for case in _auto.given(args)] == ["true"]
    with pytest.raises(UserError, match="--file goes with a program"):
        _auto.given(replace(args, program=(), files=("x",)))


def test_code_is_not_asked_where_command_lines_differ(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", "debian:6.12", 'debian:6.12,cmdline="init_on_alloc=1"', "--case", "auto"]) == 1
    assert "differ in their command lines" in capsys.readouterr().err


def test_reach_refuses_what_is_no_single_kernel_in_a_guest(capsys: pytest.CaptureFixture[str]) -> None:
    for kernel in ("running", "debian:6.1..7.0"):
        assert run(["reach", kernel]) == 1
        assert "reach maps one kernel in a guest" in capsys.readouterr().err
    assert run(["reach", "debian:6.12", "pipe_write", "--", "/bin/ls"]) == 1
    assert "kdelta trace debian:6.12 --what syscalls -- /bin/ls" in capsys.readouterr().err


def test_a_function_that_the_kernel_has_not_is_answered_with_those_that_hold_its_name_first() -> None:
    known = frozenset(("pte_write", "psi_write", "pid_write", "anon_pipe_write", "fifo_pipe_write"))
    with pytest.raises(UserError, match="did you mean anon_pipe_write or fifo_pipe_write or pte_write"):
        reach._named(["pipe_write"], known)
    with pytest.raises(UserError, match=r"it may be inlined$"):
        reach._named(["zzzz"], known)


def test_a_program_takes_more_of_a_budget_than_a_case_of_the_same_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """11 boots of a review with three programs, 8 s of a map in all, had taken 200 s when two minutes were to do."""
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    row = Row(case="p", state="ok", elapsed_s=8.0)
    assert _auto.counts_s(row, 2, program=False) < 120.0 < 200.0 < _auto.counts_s(row, 2, program=True) < 600.0


KERNELS = tuple(Kernel(label=name, spec="src:x", release="6.12", image_path="/i", image_sha256=name) for name in "ab")


@pytest.mark.parametrize("built_already", [False, True])
def test_the_first_kernel_is_read_while_the_others_are_built(
    monkeypatch: pytest.MonkeyPatch, built_already: bool
) -> None:
    read: list[str] = []
    begun = Event()

    def built(_: object, __: bool, ___: object, had: Callable[[Kernel], object]) -> tuple[Kernel, ...]:
        for kernel in KERNELS:
            had(kernel)
        assert built_already or begun.wait(60)
        return KERNELS

    def ahead(kernel: Kernel) -> None:
        read.append(kernel.label)
        begun.set()
        raise UserError("its machine code cannot be read")  # told by who needs it, not here

    monkeypatch.setattr(_auto, "_BUILT_ALREADY_S", 60 if built_already else 0)
    monkeypatch.setattr(_patching, "fetched", built)
    monkeypatch.setattr(auto, "read_ahead", ahead)
    assert _auto.fetched([], False, Quiet()) == KERNELS and read == ([] if built_already else ["a"])

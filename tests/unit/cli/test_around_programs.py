# SPDX-License-Identifier: GPL-2.0-or-later
"""What is asked for around every case, a cgroup or memory pressure, is around the user's program too."""

from __future__ import annotations

from typing import Any

import pytest

from kdelta.cli import bisect, compare
from kdelta.cli import main as cli
from kdelta.cli.main import program


def _args(command: Any, *words: str) -> Any:
    context = command.command.make_context(command.command.name, [*words, "--", "/bin/true"])
    fields = command.Args.__dataclass_fields__
    return command.Args(**{name: value for name, value in context.params.items() if name in fields})


def test_a_program_is_measured_in_a_child_memcg_and_under_pressure() -> None:
    args = _args(compare, "a", "b", "--memcg", "--timed", "--pressure", "2x60%")
    names = [case.name for case in compare._cases(args)]
    assert names == ["true (pressure 2x60%)", "true (pressure 2x60%) (memcg)"]
    assert [case.name for case in compare._cases(_args(compare, "a", "b"))] == ["true"]


def test_a_bisection_is_of_the_program_in_the_memcg_alone() -> None:
    assert bisect._one(_args(bisect, "a", "b", "--memcg")).name == "true (memcg)"
    assert bisect._one(_args(bisect, "a", "b")).name == "true"


@pytest.mark.parametrize("name", ["compare", "run", "sweep", "trace", "leaks"])
def test_no_command_with_both_leaves_the_cgroup_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --memcg and a program, the program ran in the root cgroup alone, and nothing said so."""
    seen: list[str] = []

    class Enough(Exception):
        pass

    def cases_or(self: Any, chosen: Any, named: bool, native: bool = False, surrounded: Any = tuple) -> Any:
        case = original(self, chosen, named, native)[0]
        seen.extend(one.name for one in surrounded([case]))
        raise Enough

    original = compare.Args.cases_or
    monkeypatch.setattr("kdelta.cli._program.ProgramArgs.cases_or", cases_or)
    monkeypatch.setattr("kdelta.cli._kernels.to_measure", lambda *_: ())
    words = {"run": [], "sweep": ["debian:6.1..7.3"]}.get(name, ["debian:6.12", "debian:7.0"])
    options = ["--what", "locks"] if name == "trace" else []
    with pytest.raises(Enough):
        program.main([name, *words, *options, "--memcg", "--", "/bin/true"], standalone_mode=False)
    assert seen == ["true", "true (memcg)"]


@pytest.mark.parametrize("name", ["scale", "calibrate"])
def test_a_command_that_measures_no_program_says_so(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([name, "debian:6.12", "--", "/bin/ls", "a b"]) == 1
    said = capsys.readouterr().err
    assert said == (
        f"kdelta: {name} measures cases and no program: kdelta compare debian:6.12 debian:7.0 -- /bin/ls 'a b'\n"
    )

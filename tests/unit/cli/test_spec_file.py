# SPDX-License-Identifier: GPL-2.0-or-later
"""Experiments from a TOML file."""

from pathlib import Path

import click
import pytest

from kdelta.cli import _calls, _spec_file, common, compare
from kdelta.cli.main import run


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[tuple[tuple[str, ...], compare.Args]]:
    calls: list[tuple[tuple[str, ...], compare.Args]] = []

    def heard(kernels: tuple[str, ...], args: compare.Args) -> int:
        calls.append((kernels, args))
        return 0

    monkeypatch.setattr(compare, "run", heard)
    return calls


def test_kernels_and_options_come_from_the_file_and_the_command_line_wins(tmp_path: Path, heard: list) -> None:  # type: ignore[type-arg]
    spec = tmp_path / "experiment.toml"
    spec.write_text(
        'kernels = ["debian:6.12", "debian:7.0"]\ncase = ["pipe:writers=2", "getppid"]\ntimed = true\nmax-blocks = 12\n'
    )
    assert run(["compare", "--spec", str(spec), "--max-blocks", "16"]) == 0
    ((kernels, args),) = heard
    assert kernels == ("debian:6.12", "debian:7.0")
    assert (args.cases, args.timed, args.max_blocks) == (("pipe:writers=2", "getppid"), True, 16)


def test_every_option_is_named_in_the_file_as_on_the_command_line(tmp_path: Path, heard: list) -> None:  # type: ignore[type-arg]
    known = _spec_file._known(compare.command)
    for param in compare.command.params:
        if isinstance(param, click.Option) and param.name not in ("spec", "help"):
            assert max(param.opts, key=len).removeprefix("--").replace("-", "_") in known
    spec = tmp_path / "experiment.toml"
    spec.write_text(
        'kernels = ["debian:6.12", "debian:7.0"]\nall = true\nfile = ["/etc/hosts"]\ntree = "docs"\non = "lab.toml:x"\n'
    )
    assert run(["compare", "--spec", str(spec)]) == 0
    ((_, args),) = heard
    assert (args.all_cases, args.files, args.trees, args.lab) == (True, ("/etc/hosts",), ("docs",), "lab.toml:x")


def test_why_of_a_file_is_part_of_the_command_so_that_resume_takes_it_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def began(*_: object) -> int:
        said.append(common.command_line())
        return 0

    monkeypatch.setattr(compare, "run", began)
    spec = tmp_path / "experiment.toml"
    spec.write_text('kernels = ["debian:6.12", "debian:7.0"]\nwhy = "locks,stacks"\n')
    for words in (["compare", "--spec", str(spec), "--", "ls", "--why"], ["compare", "--why", "", "--spec", str(spec)]):
        monkeypatch.setattr("sys.argv", ["kdelta", *words])
        assert run(words) == 0
    assert said == [
        f"kdelta compare --spec {spec} --why locks,stacks -- ls --why",
        f"kdelta compare --why '' --spec {spec}",
    ]
    assert _calls.asked(said[0]) == "locks,stacks"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('kernel = ["debian:6.12"]', "kernels"),
        ("seds = 3", "seeds"),
        ("seeds = [3]", "a single value"),
        ("kernels = [", "not TOML: Invalid value"),
        ("seeds = nan", "seeds is nan: give a number"),
        ("max-blcks = 12", "did you mean 'max-blocks'?"),
    ],
)
def test_a_typo_in_the_file_is_one_clear_line(
    tmp_path: Path, text: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "experiment.toml"
    spec.write_text(text)
    assert run(["compare", "--spec", str(spec)]) == 1
    error = capsys.readouterr().err
    assert words in error
    assert str(spec) in error


def test_a_value_that_the_option_would_refuse_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "experiment.toml"
    spec.write_text('kernels = ["a", "b"]\nmitigations = "none"\n')
    assert run(["compare", "--spec", str(spec)]) == 1
    assert "mitigations" in capsys.readouterr().err

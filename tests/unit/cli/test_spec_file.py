# SPDX-License-Identifier: GPL-2.0-or-later
"""Experiments from a TOML file."""

from pathlib import Path

import pytest

from kdelta.cli import compare
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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('kernel = ["debian:6.12"]', "kernels"),
        ("seds = 3", "seeds"),
        ("seeds = [3]", "one plain value"),
        ("kernels = [", "not TOML"),
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

# SPDX-License-Identifier: GPL-2.0-or-later
"""The environment of a packed program, and the files that it stands for."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdelta.guest import environment
from kdelta.spec.program import Program


@pytest.fixture
def system(tmp_path: Path) -> tuple[Path, Path]:
    """Locales and time zones of a machine."""
    locales, zones = tmp_path / "locale", tmp_path / "zoneinfo"
    for name in ("C.utf8", "de_DE.utf8", "de_DE.iso88591@euro"):
        (locales / name).mkdir(parents=True)
    (zones / "Europe").mkdir(parents=True)
    (zones / "Europe" / "Berlin").touch()
    (tmp_path / "secret").touch()
    return locales, zones


@pytest.mark.parametrize(
    ("env", "argv", "names"),
    [
        (("LC_ALL=C.UTF-8",), (), ["C.utf8"]),
        (("LANG=de_DE.UTF-8", "LC_TIME=de_DE.ISO-8859-1@euro"), (), ["de_DE.iso88591@euro", "de_DE.utf8"]),
        ((), ("TZ=:Europe/Berlin", "date"), ["Berlin"]),
        (("TZ=Europe/Berlin", "LANG=C"), (), ["Berlin"]),
        (("TZ=../secret", "LC_ALL=../locale/C.utf8", "LC_TIME=xx_YY"), (), []),
        (("TZ=CET-1CEST", "LC_ALL=POSIX", "LANGUAGE="), (), []),
    ],
)
def test_a_locale_and_a_time_zone_bring_their_files(
    system: tuple[Path, Path], env: tuple[str, ...], argv: tuple[str, ...], names: list[str]
) -> None:
    """``--env TZ=Europe/Berlin -- date`` told UTC, and ``--env LC_ALL=C.UTF-8 -- sort`` sorted bytes."""
    program = Program(argv=("env", *argv), env=env)
    assert [path.name for path in environment.files(program, *system)] == names


def test_an_archive_of_locales_is_read_first(system: tuple[Path, Path]) -> None:
    (system[0] / "locale-archive").touch()
    found = environment.files(Program(argv=("sort",), env=("LANG=C.UTF-8",)), *system)
    assert [path.name for path in found] == ["locale-archive", "C.utf8"]
    assert list(environment.files(Program(argv=("sort",), env=("LANG=C",)), *system)) == []


@pytest.mark.parametrize(("given", "hidden"), [("LANG=C.UTF-8", False), ("LC_CTYPE=C.UTF-8", False), ("A=1", True)])
def test_a_locale_that_is_given_is_not_hidden_by_ours(given: str, hidden: bool) -> None:
    found = environment.of(Program(argv=("/bin/sh",), env=(given,)), "/tmp", Path("/bin/sh"))
    assert (found.get("LC_ALL") == "C") is hidden and found[given.partition("=")[0]] == given.partition("=")[2]

# SPDX-License-Identifier: GPL-2.0-or-later
"""Each call that writes below the store and the cache fails once: one clear line, nothing promised that was not saved,
and the same figures after going on. ``tests/data/failing_writes.c`` is what makes them fail.
"""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kdelta.store.store import Store

SOURCE = Path(__file__).parents[1] / "data" / "failing_writes.c"
NATIVE = ("run", "--case", "pidfd_open", "--boots", "2", "-q")
COUNTED = ("compare", "debian:6.12/cloud", "debian:7.0/cloud", "--case", "pidfd_open", "--exact", "--seeds", "2", "-q")
HOWS = (str(errno.ENOSPC), str(errno.EIO), str(errno.EINTR), "short", "kill")
LIMIT_S = 600
MOST = 40  # of the calls of a comparison; which one fails how changes with their number


class Place:
    """A store and a cache of their own, below which writes fail."""

    def __init__(self, root: Path, shim: Path, cache: Path) -> None:
        self.root, self.shim, self.cache = root, shim, cache
        (root / "state").mkdir(parents=True)

    def kdelta(self, *words: str, at: int = 0, how: str = "") -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "KDELTA_STATE": str(self.root / "state"), "KDELTA_CACHE": str(self.cache)}
        env |= {"FAIL_BELOW": str(self.root), "FAIL_AT": str(at), "FAIL_HOW": how, "LD_PRELOAD": str(self.shim)}
        env |= {"FAIL_COUNT": str(self.root.with_suffix(".count"))}
        argv = [sys.executable, "-c", "from kdelta.cli.main import main; main()", *words]
        return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=LIMIT_S)

    def calls(self) -> int:
        """How many such calls the last run made."""
        return int(self.root.with_suffix(".count").read_text())

    def stored(self) -> dict[str, int]:
        """Finished boots by experiment, as the store itself has them."""
        with Store(f"sqlite:///{self.root / 'state' / 'kdelta.sqlite'}") as store:
            return {row.id: len(store.done(row.id)) for row in store.experiments()}

    def figures(self, name: str) -> list[dict[str, Any]]:
        """The rows of an experiment, which must be whole."""
        told = self.kdelta("report", name, "--json")
        assert told.returncode == 0, told.stderr
        rows: list[dict[str, Any]] = json.loads(told.stdout)["results"]
        assert rows and all(row["state"] == "ok" for row in rows), rows
        return rows


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("shim") / "failing_writes.so"
    flags = ["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["gcc", *flags, "-o", str(made), str(SOURCE), "-ldl"], check=True)
    return made


def survives(place: Place, words: tuple[str, ...], at: int, how: str) -> str:
    """One run in which one call fails; the experiment that is whole at last, by its id."""
    ended = place.kdelta(*words, at=at, how=how)
    about = f"{how} at call {at}: exit {ended.returncode}: {ended.stderr}"
    assert "Traceback" not in ended.stderr, about
    assert ended.returncode in ((0, -9) if how == "kill" else (0, 1, 2, 3)), about
    said = [line for line in ended.stderr.splitlines() if line.startswith("kdelta: ")]
    assert how == "kill" or len(said) == (ended.returncode != 0), about
    before = place.stored()
    if promised := re.search(r"(no|\d+) (?:finished boots?|boot was finished).*kdelta resume (\S+)", ended.stderr):
        assert before[promised[2]] == int(promised[1].replace("no", "0")), about
    if ended.returncode == 0:
        return next(iter(before))
    resumable = promised[2] if promised else next(iter(before), "") if how == "kill" else ""
    again = place.kdelta("resume", resumable, "-q") if resumable else place.kdelta(*words)
    assert again.returncode == 0, f"{about}\nthen {again.stderr}"
    after = place.stored()
    assert all(after[name] >= boots for name, boots in before.items()), about
    return resumable or next(iter(after))


@pytest.fixture(scope="module")
def calls(shim: Path, tmp_path_factory: pytest.TempPathFactory, cache: Path) -> int:
    """How many calls a run makes that writes to a new store."""
    place = Place(tmp_path_factory.mktemp("counted") / "own", shim, cache)
    assert place.kdelta(*NATIVE).returncode == 0
    return place.calls()


@pytest.mark.parametrize(
    ("share", "how"), [(0.75, HOWS[0]), pytest.param(0.5, "short", marks=pytest.mark.full), (0.85, "kill")]
)
def test_one_failed_write_costs_nothing_that_was_saved(
    share: float, how: str, calls: int, shim: Path, tmp_path: Path, cache: Path
) -> None:
    place = Place(tmp_path / "own", shim, cache)
    name = survives(place, NATIVE, max(1, round(share * calls)), how)
    assert place.stored()[name] == 2
    place.figures(name)


@pytest.mark.full
def test_every_failed_write_of_a_comparison_leaves_the_figures_as_they_are(
    shim: Path, tmp_path: Path, cache: Path
) -> None:
    reference = Place(tmp_path / "reference", shim, cache)
    assert reference.kdelta(*COUNTED).returncode == 0
    wanted = reference.figures("last")
    calls = reference.calls()
    for number in range(1, calls + 1, max(1, calls // MOST)):
        place = Place(tmp_path / f"own{number}", shim, cache)
        assert place.figures(survives(place, COUNTED, number, HOWS[number % len(HOWS)])) == wanted

# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta ended at any instant: what was stored stays, and going on gives the answer of a run that nobody disturbed."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kdelta.report import json_
from kdelta.store.store import Store

PROGRAM = [sys.executable, "-c", "from kdelta.cli.main import main; main()"]
ASKED = ("compare", "debian:6.12/cloud", "debian:7.0/cloud", "--case", "pidfd_open", "--case", "getppid", "--exact")
SEEDS = 3
BOOTS = 2 * SEEDS
KILLS, SEED = 200, 17
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
COLD_EVERY = 8  # experiments: then the guests' snapshots are made, too
LIMIT_S = 300


class Place:
    """A store of its own, and the user's cache."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.state, self.cache = folder / "state", cache

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        env = {**os.environ, "KDELTA_STATE": str(self.state), "KDELTA_CACHE": str(self.cache)}
        argv = [*PROGRAM, *words, "--json", "-q"]
        return subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def stored(self) -> dict[tuple[int, int], str]:
        """When the boots began that are stored, by block and slot; of no experiment, none."""
        database = self.state / "kdelta.sqlite"
        if not database.exists():
            return {}
        with Store(f"sqlite:///{database}") as store:
            return {(b.block, b.slot): b.started_at for e in store.experiments() for b in store.boots(e.id)}

    def asked(self) -> tuple[str, ...]:
        """The command that goes on, or begins where nothing was begun."""
        database = self.state / "kdelta.sqlite"
        if database.exists():
            with Store(f"sqlite:///{database}") as store:
                if store.experiments():
                    return "resume", "last"
        return (*ASKED, "--seeds", str(SEEDS))


def _cold(cache: Path, folder: Path) -> Path:
    """The cache without its snapshots."""
    folder.mkdir(parents=True)
    for part in cache.iterdir():
        if part.name != "snapshots":
            (folder / part.name).symlink_to(part)
    return folder


def _told(running: subprocess.Popen[bytes], number: int, place: Place, before: int) -> None:
    """A kdelta that was told to end says so in a line, and how to go on where it has stored some of its boots."""
    _, said = running.communicate(timeout=LIMIT_S)
    assert b"Traceback" not in said or b", in main\n" not in said, said.decode()  # Python's own, while it starts
    if number == signal.SIGKILL or running.returncode == 0:
        return
    assert running.returncode in (128 + number, -number), said.decode()
    assert b"resume" in said or len(place.stored()) in (before, BOOTS), said.decode()


@pytest.mark.full
def test_two_hundred_kills_at_any_instant_lose_nothing(tmp_path: Path, cache: Path) -> None:
    dice = random.Random(SEED)
    undisturbed = Place(tmp_path / "whole", cache)
    began = time.monotonic()
    said, _ = undisturbed.start(*undisturbed.asked()).communicate(timeout=LIMIT_S)
    whole, longest_s = json_.result_part(said), time.monotonic() - began
    killed = turn = 0
    while killed < KILLS:
        turn += 1
        folder = tmp_path / str(turn)
        place = Place(folder, _cold(cache, folder / "cache") if turn % COLD_EVERY == 0 else cache)
        for patience in itertools.count(1):  # guests whose snapshots are made take longer
            before = place.stored()
            running = place.start(*place.asked())
            try:
                said, complaint = running.communicate(timeout=dice.uniform(0, 1.2 * longest_s * patience))
            except subprocess.TimeoutExpired:
                number = dice.choice(SIGNALS)
                running.send_signal(number)
                _told(running, number, place, len(before))
                killed += 1
                after = place.stored()
                assert {key: after.get(key) for key in before} == before, (killed, number)
            else:
                assert running.returncode == 0, complaint.decode()
                assert json_.result_part(said) == whole, (killed, turn)
                break

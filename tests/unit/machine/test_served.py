# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest that waits for seeds: one that hung under a seed is not waited for under another."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kdelta.machine import process, served
from kdelta.machine.options import GuestSpec
from kdelta.machine.patience import Patience
from kdelta.model import Kernel, MachineOptions

KERNEL = Kernel(label="a", spec="a", release="a", image_path="/i", image_sha256="a")


class Link:
    """Children that never end, each ``busy`` or standing still, and how many there were."""

    def __init__(self, busy: bool) -> None:
        self.asked, self._busy = 0, busy

    @contextmanager
    def child(self, folder: Path, text: bytes) -> Iterator[Any]:
        self.asked += 1
        yield self

    @property
    def pid(self) -> int:
        return 1  # never sent anything: it is only looked at

    def poll(self) -> int | None:
        return None

    def cpu_s(self) -> float:
        return 1.0 if self._busy else 0.0


def rehearsed(folder: Path, link: Any) -> served.Rehearsed:
    guest = GuestSpec(
        kernel=KERNEL, mode="exact", accel="tcg", options=MachineOptions(), qemu=Path(sys.executable),
        qemu_version=(7, 2), mitigations="default", folder=folder, restored=True,
    )  # fmt: skip
    return served.Rehearsed(guest, link, Patience().of("a", b"pipe", 0.1, whole=False), None)


def test_who_hung_under_one_seed_is_waited_for_under_no_other(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(process, "_ending", quick)
    link = Link(busy=True)
    guest = rehearsed(tmp_path, link)
    raws = [guest.run(seed) for seed in (1, 2, 3)]
    assert {(raw.state, raw.why) for raw in raws} == {("hung", "not at its end after 0.1 s (--limit)")}
    assert link.asked == 1


def test_who_only_stood_still_is_asked_again(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(process, "_ending", quick)
    link = Link(busy=False)
    guest = rehearsed(tmp_path, link)
    assert [guest.run(seed).state for seed in (1, 2)] == ["lost", "lost"]
    assert link.asked == 2


@contextmanager
def quick(_: object) -> Iterator[Any]:
    class Poller:
        def poll(self, _: int) -> None:
            pass

    yield Poller()

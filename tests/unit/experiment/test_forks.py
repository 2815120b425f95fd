# SPDX-License-Identifier: GPL-2.0-or-later
"""Which guests wait, and which make room; of what they are made is no matter here."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from kdelta.errors import HostError
from kdelta.experiment import forks
from kdelta.machine.patience import Waited
from kdelta.machine.served import NotForked


class Log:
    """What was made and ended, in order."""

    def __init__(self, *broken: bytes) -> None:
        self.said: list[str] = []
        self._broken = broken

    @contextmanager
    def server(self) -> Iterator[Any]:
        self.said.append("server")
        yield self
        self.said.append("no server")

    @contextmanager
    def rehearsed(self, jobs: bytes, waited: Waited) -> Iterator[Any]:
        if jobs in self._broken:
            raise NotForked("it ended")
        self.said.append(jobs.decode())
        yield jobs
        self.said.append(f"no {jobs.decode()}")

    def of(self, kept: forks.Forks, jobs: bytes, kernel: str = "A") -> AbstractContextManager[object]:
        return kept.rehearsed(kernel, jobs, self.server, 1.0)


def test_seeds_share_a_guest_and_jobs_a_server() -> None:
    log = Log()
    with forks.Forks(9) as kept:
        for jobs in (b"a", b"b", b"a", b"b"):
            with log.of(kept, jobs) as guest:
                assert guest == jobs
        assert log.said == ["server", "a", "b"]
    assert log.said == ["server", "a", "b", "no a", "no b", "no server"]


def test_the_one_that_was_asked_for_longest_ago_makes_room_and_none_in_use() -> None:
    log = Log()
    with forks.Forks(2) as kept, log.of(kept, b"a"):
        for jobs in (b"b", b"c", b"d"):
            with log.of(kept, jobs):
                pass
        assert log.said == ["server", "a", "b", "no b", "c", "no c", "d"]


def test_where_memory_is_scarce_those_that_wait_go() -> None:
    log, free = Log(), iter((100, 90, 60, 40, 90))
    with forks.Forks(9, lambda: next(free)) as kept:
        for jobs in (b"a", b"b", b"c", b"d"):
            with log.of(kept, jobs):
                pass
        assert log.said == ["server", "a", "b", "no a", "no b", "c", "d"]


def test_a_server_ends_with_its_last_guest() -> None:
    log = Log()
    with forks.Forks(1) as kept:
        for kernel in ("A", "B"):
            with log.of(kept, b"a", kernel):
                pass
        assert log.said == ["server", "a", "no a", "no server", "server", "a"]


def test_one_that_ended_in_its_rehearsal_is_not_tried_again() -> None:
    log = Log(b"a")
    with forks.Forks(9) as kept:
        for _ in range(2):
            with pytest.raises(NotForked), log.of(kept, b"a"):
                pass
    assert log.said == ["server", "no server"]


def test_two_that_ask_at_once_get_the_same() -> None:
    log, got = Log(), []
    with forks.Forks(9) as kept:

        def ask() -> None:
            with log.of(kept, b"a") as guest:
                got.append(guest)

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert got == [b"a"] * 8
    assert log.said.count("a") == log.said.count("server") == 1


def test_after_its_end_nothing_is_begun() -> None:
    log = Log()
    with forks.Forks(9) as kept:
        pass
    with pytest.raises(HostError, match="at its end"), log.of(kept, b"a"):
        pass
    assert not log.said


def test_there_is_room_for_one_at_least() -> None:
    assert 1 <= forks.room() <= 400

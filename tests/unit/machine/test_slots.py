# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests at once, whichever boots they are of."""

from __future__ import annotations

import threading

import pytest

from kdelta.machine.slots import Slots

LIMIT_S = 60


def test_one_that_is_left_alone_has_all_slots_and_the_order_stays() -> None:
    slots, together = Slots(3), threading.Barrier(3)

    def meet(item: int) -> int:
        together.wait(LIMIT_S)  # all three are there at once, or none goes on
        return 10 * item

    assert slots.each(meet, range(6)) == [0, 10, 20, 30, 40, 50]


def test_several_share_them() -> None:
    slots, inside, most, lock = Slots(2), [0], [0], threading.Lock()

    def count(_: int) -> None:
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        threading.Event().wait(0.001)
        with lock:
            inside[0] -= 1

    boots = [threading.Thread(target=slots.each, args=(count, range(20))) for _ in range(3)]
    for boot in boots:
        boot.start()
    for boot in boots:
        boot.join(LIMIT_S)
    assert most[0] <= 2


@pytest.mark.parametrize("count", [1, 2])
def test_after_an_error_no_further_one_is_begun(count: int) -> None:
    begun = []

    def fail(item: int) -> None:
        begun.append(item)
        raise ValueError(item)

    with pytest.raises(ValueError, match="0"):
        Slots(count).each(fail, range(100))
    assert len(begun) <= count
    assert Slots(count).each(str, []) == []

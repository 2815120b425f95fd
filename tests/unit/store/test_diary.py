# SPDX-License-Identifier: GPL-2.0-or-later
"""What is kept beside experiments: watched items, and steps with their triage."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from sqlalchemy import text

from kdelta.errors import HostError, UserError
from kdelta.model.diary import Step, Watched
from kdelta.store.diary import step_key
from kdelta.store.store import Store


def item(name: str, **more: object) -> Watched:
    return Watched(**({"source": "/list", "item": name, "title": name, "state": "running"} | more))  # type: ignore[arg-type]


def step(first: str, **more: object) -> Step:
    fields: dict[str, object] = {
        "key": step_key("pipe", "instructions", "6.12", first), "case": "pipe", "metric": "instructions",
        "last": "6.12", "first": first, "effect_percent": 4.2, "verdict": "regressed", "because": "foo",
        "experiment": "x", "announced_at": "2026-11-22T03:00:00",
    }  # fmt: skip
    return Step(**(fields | more))  # type: ignore[arg-type]


def test_items_are_kept_in_their_order_and_replaced_by_what_became_of_them(url: str) -> None:
    with Store(url) as store:
        for one in (item("b"), item("a"), item("a", source="/other")):
            store.watch(one)
        store.watch(item("b", state="done", experiment="x", title="lone \udc80 and \0"))
    with Store(url) as store:
        assert [(one.item, one.state) for one in store.watched("/list")] == [("b", "done"), ("a", "running")]
        assert store.watched("/list")[0].title == "lone \ufffd and \ufffd"
        assert len(store.watched()) == 3 and store.watched("/nothing") == []


def test_a_step_is_announced_once_and_keeps_what_was_said_of_it(url: str) -> None:
    with Store(url) as store:
        assert [store.announce(step(first)) for first in ("6.13", "6.14", "6.13")] == [True, True, False]
        made = store.judge(step("6.13").key[:12], lambda one: replace(one, state="acknowledged", note="known"))
        assert made.note == "known" and not store.announce(step("6.13", effect_percent=5.0))
        assert [(one.first, one.state) for one in store.steps()] == [("6.13", "acknowledged"), ("6.14", "open")]
        for name in ("", "zz"):
            with pytest.raises(UserError, match="steps begin so"):
                store.judge(name, lambda one: one)


def test_a_damaged_row_is_told(url: str) -> None:
    with Store(url) as store:
        store.watch(item("a"))
        with store._engine.begin() as connection:
            connection.execute(text("UPDATE watched SET document = :bytes"), {"bytes": b"\xc1\x00\x00\x00\x00junk"})
        with pytest.raises(HostError, match="damaged"):
            store.watched()

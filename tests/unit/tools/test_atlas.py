# SPDX-License-Identifier: GPL-2.0-or-later
"""What the atlas is made of: shipped cases alone, each by what it did on any kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

import atlas as tool
from atlas import Seen
from kdelta.attribution import atlas
from kdelta.errors import UserError


def test_it_is_the_union_over_kernels_of_what_shipped_cases_executed() -> None:
    seen = [
        Seen("6.12.117+deb13-amd64", "pipe", frozenset({"pipe_write"})),
        Seen("6.1.192", "pipe", frozenset({"pipe_write", "pipe_lock"})),
        Seen("6.1.192", "udp", None),
        Seen("7.0.13", "udp", frozenset({"udp_sendmsg"})),
        Seen("7.0.13", "broken", None),
        Seen("7.1.13", "mine", frozenset({"e1000_xmit"})),
        Seen("7.1.13", "udp", frozenset({"old_way"}), "d9"),  # of the case as it was before
        Seen("7.0.13", "udp", frozenset({"udp_recvmsg"}), "d2"),
    ]
    made = tool.drawn(seen, {"pipe": "d1", "udp": "d2", "broken": "d3", "new": "d4"}, "2026-11-22")
    assert made.kernels == ("6.1.192", "6.12.117", "7.0.13")
    assert (made.cases, made.failed) == ({"pipe": "d1", "udp": "d2"}, {"broken": "d3"})
    assert made.functions == {"pipe_write", "pipe_lock", "udp_sendmsg", "udp_recvmsg"}
    assert atlas.parse(atlas.written(made)) == made


def test_what_is_added_keeps_what_stays_true_of_the_rest() -> None:
    known = atlas.Atlas(
        made_on="2026-11-22",
        kernels=("6.12.117", "7.0.13"),
        cases={"pipe": "d1", "threads": "d2", "fio": "d5"},
        failed={"open_one": "d3", "udp": "d4"},
        functions=frozenset({"pipe_write"}),
    )
    more = tool.drawn(
        [Seen("6.1.192", "open_one", frozenset({"do_open"}), "d3"), Seen("6.1.192", "pipe", None, "d1")],
        {"pipe": "d1", "threads:small": "d6", "open_one": "d3", "udp": "d4"},
        "2026-11-23",
    )
    today = {"pipe": "d1", "threads:small": "d6", "fio": "d5", "open_one": "d3", "udp": "d4"}
    made = tool.added(known, more, today)
    assert made.cases == {"pipe": "d1", "fio": "d5", "open_one": "d3"}  # ran on one kernel; threads is another one now
    assert (made.failed, made.kernels, made.made_on) == ({"udp": "d4"}, ("6.1.192", "6.12.117", "7.0.13"), "2026-11-23")
    assert made.functions == {"pipe_write", "do_open"}
    assert tool.added(known, more, today | {"pipe": "d9"}).cases.keys() == {"fio", "open_one"}


def test_a_store_that_is_not_there_is_refused_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not there"):
        list(tool.of_store(f"sqlite:///{tmp_path}/typo/x.sqlite"))
    assert not (tmp_path / "typo").exists()


def test_a_rare_case_is_named_where_it_alone_takes_a_way_through_a_function() -> None:
    seen = [
        Seen("7.3.4", "read", frozenset({"get", "sync_ra", "both"}), "", {"get": (9.0, 0.5), "sync_ra": (8.0, 0.1)}),
        Seen("7.3.4", "ext4", frozenset({"writeback", "sync_ra", "get", "ext4_write", "both"}), "", {
            "writeback": (50.0, 0.2), "sync_ra": (70.0, 0.1), "get": (9.0, 0.1), "ext4_write": (9.0, 0.1),
            "both": (99.0, 0.1), "tick": (9.0, 0.00001),
        }),
        Seen("7.3.4", "ext4,op=fsync", frozenset({"writeback"}), "", {"writeback": (40.0, 0.6)}),
        Seen("7.3.4", "udp", None),
    ]  # fmt: skip
    there = {"get", "sync_ra", "writeback", "both", "tick"}  # not ext4's own
    made = tool.rare_of(seen, {"ext4", "ext4,op=fsync"}, there)
    assert made == {"writeback": "ext4,op=fsync", "sync_ra": "ext4"}
    assert tool.rare_of(seen, (), there) == {}

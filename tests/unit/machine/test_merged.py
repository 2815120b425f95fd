# SPDX-License-Identifier: GPL-2.0-or-later
"""The guests of one boot, each with a case of its own, as one boot."""

from __future__ import annotations

import zlib
from typing import Any

from kdelta.guest import protocol
from kdelta.machine.boot import RawBoot, merged


def stream(*bodies: str) -> bytes:
    every = [*bodies, f'{{"t":"end","records":{len(bodies)}}}']
    lines = (f"{n} {body}" for n, body in enumerate(every))
    return b"noise\n" + b"".join(
        b"kd1 %d %08x %s\n" % (n, zlib.crc32(line.encode()), every[n].encode()) for n, line in enumerate(lines)
    )


HELLO = '{"t":"hello","proto":1,"release":"6.12","machine":"x86_64"}'


def part(**changes: Any) -> RawBoot:
    rep = '{"t":"rep","j":0,"r":0,"id":1,"ops":16}'
    said = stream(HELLO, '{"t":"job","j":0,"case":"c"}', rep, '{"t":"done","j":0,"state":"ok"}')
    fields: dict[str, Any] = {
        "argv": ("qemu",),
        "state": "ok",
        "why": "",
        "records": protocol.parse(said).records,
        "console": b"console\n",
        "stream": said,
        "counts": (b"counts",),
        "holds": (b"holds",),
        "elapsed_s": 1.5,
        "first_sample_s": None,
        "qemu_log": "",
    }
    return RawBoot(**(fields | changes))


def test_what_they_said_is_one_valid_stream_of_all_jobs_with_one_hello_and_one_end() -> None:
    whole = merged({0: part(), 3: part(), 12: part()})
    assert protocol.parse(whole.stream).state == "ok"
    assert protocol.parse(whole.stream).records == whole.records
    kinds = [type(record).__name__ for record in whole.records]
    assert kinds == ["Hello", *["Job", "Repetition", "Done"] * 3, "End"]
    for kind in (protocol.Job, protocol.Repetition, protocol.Done):
        assert [r.j for r in whole.records if isinstance(r, kind)] == [0, 3, 12]


def test_what_a_guest_says_behind_its_end_is_noise() -> None:
    said = part().stream + b"kd1 what\nkd1 1 00000000 {\n"
    whole = merged({0: part(stream=said), 1: part()})
    assert protocol.parse(whole.stream).state == "ok"


def test_counts_stay_apart_and_times_add_up() -> None:
    whole = merged({0: part(counts=(b"a",)), 4: part(counts=(b"b",))})
    assert whole.counts == (b"a", b"b")
    ids = [r.id for r in whole.records if isinstance(r, protocol.Repetition)]
    assert ids == [protocol.interval_of(0, 1), protocol.interval_of(1, 1)]
    assert whole.elapsed_s == 3.0


def test_a_guest_that_did_not_end_well_costs_its_own_job_alone() -> None:
    panicked = part(state="panicked", why="Kernel panic", console=b"panic", stream=b"kd1 0 junk", counts=(b"cut",))
    whole = merged({0: panicked, 1: part(counts=(b"a",)), 2: part(state="hung"), 5: part(counts=(b"b",))})
    assert (whole.state, whole.counts, whole.holds) == ("ok", (b"a", b"b"), (b"holds", b"holds"))
    assert protocol.parse(whole.stream).state == "ok" and b"panic" in whole.console
    ids = {r.j: r.id for r in whole.records if isinstance(r, protocol.Repetition)}
    assert ids == {1: protocol.interval_of(0, 1), 5: protocol.interval_of(1, 1)}, "guests that counted, in order"
    assert [whole.end_of(job)[0] for job in (0, 1, 2, 5)] == ["panicked", "ok", "hung", "ok"]


def test_where_no_guest_ended_well_the_boot_is_what_became_of_the_first() -> None:
    whole = merged({3: part(state="lost", why="killed"), 4: part(state="hung", why="late")})
    assert (whole.state, whole.why) == ("lost", "killed")
    assert [type(record).__name__ for record in whole.records] == ["Hello"], "a case that ended before is not believed"
    assert (whole.end_of(3), whole.end_of(4)) == (("lost", "killed"), ("hung", "late"))

# SPDX-License-Identifier: GPL-2.0-or-later
"""The atlas: written and read alike; what it answers for, and when it says no."""

from __future__ import annotations

import pytest

from kdelta.attribution import atlas
from kdelta.attribution.atlas import Atlas

SMALL = Atlas(
    made_on="2026-11-22",
    kernels=("6.1.192", "6.12.117", "7.3.4"),
    cases=frozenset({"pipe", "syscalls/getppid"}),
    failed=frozenset({"contention/open_one"}),
    functions=frozenset({"pipe_write", "null_lseek"}),
)


def test_what_is_written_is_read_again_and_anything_else_is_refused() -> None:
    assert atlas.parse(atlas.written(SMALL)) == SMALL
    for wrong in ("", "made 2026\n", atlas.written(SMALL) + "more\n", atlas.written(SMALL) + "thing x\n"):
        with pytest.raises(ValueError, match="atlas:"):
            atlas.parse(wrong)


def test_releases_rise_by_their_numbers_and_what_lies_between_them_is_covered() -> None:
    assert atlas.rising(["7.0.13", "6.1.192", "6.12.117"]) == ("6.1.192", "6.12.117", "7.0.13")
    assert all(map(SMALL.covers, ("6.1.0-50-amd64", "6.9.0", "7.3.0-rc1+")))
    assert not any(map(SMALL.covers, ("5.10.1", "7.4.0-rc1", "mainline")))


def test_it_says_no_only_where_neither_the_file_nor_who_calls_it_was_executed() -> None:
    assert SMALL.silent({"probe", "remove"}, ["device_add"])
    assert not SMALL.silent({"probe", "null_lseek"}, [])
    assert not SMALL.silent({"probe"}, ["pipe_write"])
    assert not SMALL.silent((), [])  # a file that is not built says nothing


def test_it_answers_for_drivers_alone_and_not_for_what_others_are_built_with() -> None:
    assert all(
        map(atlas.answers_for, ("drivers/rtc/class.c", "sound/core/pcm.c", "Documentation/x.rst", "MAINTAINERS"))
    )
    others = ("fs/pipe.c", "drivers/rtc/rtc.h", "drivers/rtc/Kconfig", "drivers/rtc/Makefile", "include/x", "lib/a.c")
    assert not any(map(atlas.answers_for, (*others, "tools/objtool/check.c", "arch/x86/kernel/apic.c")))


def test_the_shipped_one_knows_the_functions_that_every_kernel_of_a_range_executes() -> None:
    shipped = atlas.shipped()
    assert len(shipped.kernels) >= 10 and shipped.covers("6.12.117") and shipped.covers("7.2.13")
    assert {"pipe_write", "link_path_walk", "null_lseek"} <= shipped.functions
    assert {"pipe", "path_lookup", "syscalls/unix_pingpong"} <= shipped.cases and not shipped.cases & shipped.failed

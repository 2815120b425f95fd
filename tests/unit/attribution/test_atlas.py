# SPDX-License-Identifier: GPL-2.0-or-later
"""The atlas: written and read alike; what it answers for, and when it says no."""

from __future__ import annotations

import pytest

from kdelta.attribution import atlas
from kdelta.attribution.atlas import Atlas
from kdelta.spec import cases, suites
from kdelta.spec.sameness import digest
from kdelta.spec.workloads import catalogue

SMALL = Atlas(
    made_on="2026-11-22",
    kernels=("6.1.192", "6.12.117", "7.3.4"),
    cases={"pipe": "d1", "syscalls/getppid": "d2"},
    failed={"contention/open_one": "d3"},
    functions=frozenset({"pipe_write", "null_lseek"}),
    rare={"writeback_iter": "files:on=ext4"},
)


def test_what_is_written_is_read_again_and_anything_else_is_refused() -> None:
    assert atlas.parse(atlas.written(SMALL)) == SMALL
    for wrong in (
        "",
        "made 2026\n",
        atlas.written(SMALL).replace("pipe d1", "pipe"),
        atlas.written(SMALL).replace("writeback_iter files", "writeback_iter-files"),
        atlas.written(SMALL) + "more\n",
        atlas.written(SMALL) + "thing x\n",
    ):
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
    names = shipped.cases.keys()
    assert {"pipe", "path_lookup", "syscalls/unix_pingpong"} <= names and not names & shipped.failed.keys()


def test_the_shipped_one_is_of_the_shipped_cases_as_they_are() -> None:
    workloads, shipped = catalogue(()), atlas.shipped()
    every = (case for suite in suites.suites().values() for case in cases.of_suite(suite, workloads, missing_ok=True))
    known = [case for case in every if case.name in shipped.cases]
    changed = [case.name for case in known if not shipped.knows(case.name, digest(workloads[case.workload], case))]
    assert len(known) > 150 and not changed, "changed since: map them on each kernel of the atlas, then make atlas"


def test_the_shipped_one_names_cases_of_file_systems_for_what_these_alone_execute() -> None:
    rare, names = atlas.shipped().rare, atlas.shipped().cases.keys()
    assert rare["writeback_iter"].startswith("files:on=ext4") and not {"ext4_writepages", "vfs_write"} & rare.keys()
    assert set(rare.values()) <= names

# SPDX-License-Identifier: GPL-2.0-or-later
"""The catalogue of collector sets and the lines that a guest gets for one."""

from __future__ import annotations

import pytest

from kdelta.errors import UserError
from kdelta.model import Arch, Kernel
from kdelta.spec import collectors

KNOWN = collectors.catalogue()
SIMPLE = """
name = "mine"
title = "Mine"
help = "h"
cost = "c"
[[probes]]
name = "one"
title = "One"
[[probes.ways]]
name = "a:b"
[[probes.ways.tables]]
on = "a/b"
hist = "keys=x.log2:vals=y:size=64"
bucket = "x"
"""


def test_every_shipped_set_can_be_read_and_says_what_it_costs() -> None:
    assert set(KNOWN) == {"locks", "sizes", "allocs", "syscalls", "wakeups"}
    assert all(one.cost and one.help and "HIST_TRIGGERS" in one.needs for one in KNOWN.values())


@pytest.mark.parametrize("name", sorted(KNOWN))
@pytest.mark.parametrize("arch", ["x86_64", "arm64"])
def test_every_line_is_one_that_the_guest_can_follow(name: str, arch: Arch) -> None:
    verbs = {"probe", "try", "do", "arm", "disarm", "read", "undo"}
    for line in collectors.lines(KNOWN[name], arch):
        assert line.isascii() and line.isprintable()
        verb, file, *text = line.split(" ", 2)
        assert verb in verbs and file and not file.startswith("/") and ".." not in file
        assert bool(text) == (verb in ("do", "arm", "disarm", "undo"))
        assert "@" not in line


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_whatever_is_defined_is_taken_back(name: str) -> None:
    lines = collectors.lines(KNOWN[name], "x86_64")
    undone = [line.removeprefix("undo ") for line in lines if line.startswith("undo ")]
    for line in lines:
        verb, file, *text = line.split(" ", 2)
        if verb == "do" and file == "dynamic_events":
            event = text[0].split(":", 1)[1].split(" ")[0]
            assert f"dynamic_events -:{event}" in undone
        elif verb == "do":
            assert f"{file} !{text[0]}".replace(":pause if", " if") in undone


def test_a_table_without_a_flow_counts_only_between_arming_and_disarming() -> None:
    lines = collectors.lines(collectors.parse(SIMPLE, "mine.toml"), "x86_64")
    own = 'if COMM != "kdelta-trace"'
    assert lines == (
        "probe one",
        "try a:b",
        f"do events/a/b/trigger hist:keys=x.log2:vals=y:size=64:pause {own}",
        f"arm events/a/b/trigger hist:keys=x.log2:vals=y:size=64:cont {own}",
        f"disarm events/a/b/trigger hist:keys=x.log2:vals=y:size=64:pause {own}",
        f"undo events/a/b/trigger !hist:keys=x.log2:vals=y:size=64 {own}",
        "read events/a/b/hist",
    )


def test_a_table_with_a_flow_is_fed_only_between_arming_and_disarming() -> None:
    lines = collectors.lines(KNOWN["syscalls"], "x86_64")
    armed = [line for line in lines if line.startswith(("arm ", "disarm "))]
    assert [line.split(" ")[:2] for line in armed] == [
        ["arm", "events/raw_syscalls/sys_exit/trigger"],
        ["disarm", "events/raw_syscalls/sys_exit/trigger"],
    ]
    assert armed[1].split(" ", 2)[2] == "!" + armed[0].split(" ", 2)[2]


def test_a_trigger_s_own_condition_is_kept_beside_ours() -> None:
    text = SIMPLE.replace("size=64", "size=64 if x > 3")
    assert (
        'size=64:pause if (x > 3) && COMM != "kdelta-trace"'
        in collectors.lines(collectors.parse(text, "mine.toml"), "x86_64")[2]
    )


def test_allocations_are_armed_last() -> None:
    two = SIMPLE.replace('on = "a/b"', 'on = "kmem/kmalloc"') + SIMPLE.partition('cost = "c"')[2].replace(
        '"one"', '"two"'
    )
    probes = [
        line for line in collectors.lines(collectors.parse(two, "mine.toml"), "x86_64") if line.startswith("probe")
    ]
    assert probes == ["probe two", "probe one"]


def test_the_caller_is_found_as_the_architecture_keeps_it() -> None:
    assert any("caller=$stack0:u64" in line for line in collectors.lines(KNOWN["locks"], "x86_64"))
    assert any("caller=%lr:u64" in line for line in collectors.lines(KNOWN["locks"], "arm64"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('bucket = "x"', 'bukket = "x"'), "bukket"),
        (('on = "a/b"', 'on = "../b"'), "on"),
        (('name = "mine"', 'name = "other"'), "name the file other.toml"),
        (("[[probes.ways.tables]]", "[[probes.ways.chain]]"), "unknown field"),
        (('hist = "keys=x.log2:vals=y:size=64"', 'hist = "keys=x\\nrm"'), "hist"),
    ],
)
def test_a_file_that_is_no_set_is_refused_with_the_key(change: tuple[str, str], said: str) -> None:
    with pytest.raises(UserError, match="collector"):
        try:
            collectors.parse(SIMPLE.replace(*change), "mine.toml")
        except UserError as error:
            assert said in str(error)
            raise


def test_a_way_without_a_table_is_refused() -> None:
    with pytest.raises(UserError, match="has no table"):
        collectors.parse(SIMPLE.partition("[[probes.ways.tables]]")[0], "mine.toml")


def test_sets_are_chosen_by_name_and_a_typo_is_met_with_a_guess() -> None:
    assert [one.name for one in collectors.choose("sizes, locks", KNOWN)] == ["sizes", "locks"]
    with pytest.raises(UserError, match="did you mean locks"):
        collectors.choose("lokcs", KNOWN)
    with pytest.raises(UserError, match="twice"):
        collectors.choose("locks,locks", KNOWN)


def test_an_option_that_is_off_is_named_and_one_that_is_not_known_is_not() -> None:
    kernel = Kernel(label="k", spec="k", release="6", image_path="", image_sha256="", config={"A": "n", "B": "y"})
    assert collectors.missing(kernel, ("A", "B", "C")) == ("A",)

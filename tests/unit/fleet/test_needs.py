# SPDX-License-Identifier: GPL-2.0-or-later
"""Who may measure what: only identically, or not at all."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

import kdelta
from kdelta.errors import UserError
from kdelta.fleet import asking, makes, needs
from kdelta.fleet.needs import Needs
from kdelta.model import MachineOptions, plans
from unit.fleet.fleet_builders import asked, host

EXACT = Needs(arch="x86_64", mode="exact", make="one", memory_mib=1024)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({}, ""),
        ({"makes": {"exact/x86_64": "two"}}, "would not measure identically"),
        ({"makes": {"timed/x86_64": "one"}}, "no QEMU for x86_64"),
        ({"memory_mib": 512}, "512 MiB of memory, of 1024"),
    ],
)
def test_a_host_takes_only_what_it_measures_identically(more: dict[str, Any], why: str) -> None:
    said = needs.lacking(EXACT, host(**more))
    assert (why in said) if why else said == ""


def test_a_begun_block_stays_on_its_host_and_kvm_is_no_emulation() -> None:
    begun = Needs(arch="x86_64", mode="timed", make="one", host="other")
    assert needs.lacking(begun, host()) == "the block was begun on other"
    kvm = Needs(arch="x86_64", mode="timed", make="one", kvm=True)
    assert needs.lacking(kvm, host()) == "no KVM" and needs.lacking(kvm, host(kvm=True)) == ""


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"imported": True}, "was imported"),
        ({"machine": MachineOptions(native=True)}, "running kernel"),
        ({"machine": MachineOptions(lab="/lab.toml:bench1")}, "--on names a machine that this one reaches"),
        ({"machine": MachineOptions(qemu="/q")}, "leave --qemu out"),
        ({"mode": "timed", "plan": plans.Bisect(tree="t", good="g", bad="b", metric="m")}, "timed bisection"),
    ],
)
def test_what_the_fleet_cannot_measure_is_refused(more: dict[str, Any], why: str) -> None:
    with pytest.raises(UserError, match=why):
        needs.refuse(asked(**more))
    needs.refuse(asked())


def test_of_several_versions_that_with_most_slots_measures() -> None:
    one, two = host("a", slots=2), host("b", slots=3, makes={"exact/x86_64": "two"})
    assert needs.chosen_make("exact/x86_64", {"exact/x86_64": "own"}, [one, two], False) == ("two", False)
    assert needs.chosen_make("exact/x86_64", {"exact/x86_64": "own"}, [], False) == ("own", False)
    same = host("c", slots=2, makes={"exact/x86_64": "own"})
    assert needs.chosen_make("exact/x86_64", {"exact/x86_64": "own"}, [one, same], False) == ("own", False)


@pytest.mark.parametrize(
    ("wanted", "remedy"),
    [
        ("exact/arm64", "no QEMU for arm64, with plugins"),
        ("several/x86_64", "kdelta worker --several-cpus"),
        ("lab/arm64", "no compiler of programs for arm64"),
    ],
)
def test_boots_that_no_host_makes_are_refused_with_the_remedy(wanted: str, remedy: str) -> None:
    with pytest.raises(UserError, match=remedy):
        needs.chosen_make(wanted, {}, [host("a")], False)


def test_workers_of_one_machine_that_take_no_turns_are_told() -> None:
    own = host("b", machine="one", turns="1:2")
    assert needs.unseen(own, [host("a", machine="one", turns="1:2"), host("c", machine="two", turns="1:3")]) == ""
    assert needs.unseen(host("b"), [host("a", turns="1:3")]) == ""
    told = needs.unseen(own, [host("a", machine="one", turns="1:3"), host("a", machine="one", turns="1:3")])
    assert told.startswith("on this machine a is at work with another user or cache")


def test_counts_of_several_cpus_and_machines_of_a_lab_go_to_who_has_them() -> None:
    several = asking.needs_of(asked(machine=MachineOptions(smp=4)), host(makes={"several/x86_64": "n"}), [host()])
    assert several.kind == "several/x86_64" and several.cpus == 1
    assert "no QEMU 9.0 or later, for counts of several CPUs" in needs.lacking(several, host())
    assert needs.lacking(several, host(makes={"several/x86_64": "n"})) == ""
    on = asked(mode="timed", machine=MachineOptions(lab="bench1", memory_mib=1 << 20))
    drives = host("a", makes={"lab/x86_64": "n"}, machines={"bench1": {"cpu": "x"}})
    lab = asking.needs_of(
        on, host(makes={"lab/x86_64": "own"}), [host("b", slots=9, makes={"lab/x86_64": "m"}), drives]
    )
    assert lab.make == "n" and needs.lacking(lab, drives) == ""
    assert "it does not drive bench1 (kdelta worker --on" in needs.lacking(lab, host(makes={"lab/x86_64": "n"}))
    needs.refuse(on)


def test_times_go_to_kvm_where_hosts_have_it() -> None:
    timed = asked(mode="timed")
    with_kvm = [host("a", slots=4), host("b", slots=8, kvm=True)]
    assert asking.needs_of(timed, host(), with_kvm).kvm
    emulated = asked(mode="timed", machine=MachineOptions(kvm="off"))
    assert not asking.needs_of(emulated, host(), with_kvm).kvm
    assert "no worker is running" in asking.nobody(EXACT, [])
    assert "h: no QEMU" in asking.nobody(EXACT, [host(makes={})])


def test_another_report_makes_no_other_host_but_another_guest_does(monkeypatch: pytest.MonkeyPatch) -> None:
    before = makes._code()
    monkeypatch.setattr(makes, "_DECIDE", tuple(part for part in makes._DECIDE if part != "guest"))
    assert makes._code() != before
    assert not {"report", "cli", "serve", "fleet", "results"} & set(makes._DECIDE)


ROOT = Path(kdelta.__file__).parent


def imported(path: Path) -> set[Path]:
    """The files of results and verdict that a file of kdelta imports."""
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    names = [[*str(node.module).split(".")[1:], one.name] for node in nodes for one in node.names]
    files = {ROOT.joinpath(*name[:depth]).with_suffix(".py") for name in names for depth in (2, 3)}
    files |= {ROOT / "verdict/__init__.py" for name in names if name[0] == "verdict"}
    return {file for file in files if file.parent.name in ("results", "verdict") and file.is_file()}


def test_all_that_takes_a_look_is_part_of_what_a_host_is() -> None:
    assert all((ROOT / part).exists() for part in makes._DECIDE)
    seen: set[Path] = set()
    left = {ROOT / "experiment/looks.py"}
    while left:
        seen.add(path := left.pop())
        left |= imported(path) - seen
    asked = {path.relative_to(ROOT) for path in seen} | {Path("store/planned.py"), Path("store/samples.py")}
    assert Path("verdict/correction.py") in asked and Path("results/definitions.py") in asked
    assert {path for path in asked if not {str(path), path.parts[0]} & set(makes._DECIDE)} == set()

# SPDX-License-Identifier: GPL-2.0-or-later
"""What a front end asks for becomes an experiment with exactly the plan of its kind."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.errors import UserError
from kdelta.experiment import templates
from kdelta.experiment.templates import Asked, Stopping
from kdelta.model import Case, Definition, Effort, Experiment, Gap, Kernel, MachineOptions, plans
from kdelta.results import definitions
from kdelta.spec import collectors
from kdelta.spec.cases import parse_case
from kdelta.spec.workloads import catalogue

LOCKS = (collectors.catalogue()["locks"],)
KERNEL = Kernel(label="k", spec="k", release="6.12", image_path="/i", image_sha256="ab")
ASKED = Asked(cases=(Case(workload="pipe", pressure="2x60%"),), effort=Effort(seeds=5), folders=(Path("own"),))


def now() -> datetime:
    return datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


def test_a_plan_is_fixed_or_sequential() -> None:
    assert templates.stopping(7, None) == Stopping(blocks=7, looks=())
    assert templates.stopping(None, None).looks == (8, 12, 16, 20)
    assert templates.stopping(None, 14).looks == (8, 12, 14)
    assert templates.stopping(None, 40).looks == (8, 12, 16, 24, 40)
    with pytest.raises(UserError, match="cannot be combined"):
        templates.stopping(7, 8)


def test_times_look_and_counts_have_seeds() -> None:
    stop = templates.stopping(None, None, 5.0)
    timed = templates.compare(ASKED, (KERNEL, KERNEL), "timed", stop)
    exact = templates.compare(ASKED, (KERNEL, KERNEL), "exact", stop)
    assert (timed.blocks, timed.looks, timed.precision_percent) == (20, (8, 12, 16, 20), 5.0)
    assert (exact.blocks, exact.looks) == (5, (5,)), "seeds are looked at from five on"
    assert templates.seed_looks(20) == (5, 8, 12, 16, 20)
    assert templates.seed_looks(9) == (5, 8, 9)
    assert templates.seed_looks(3) == (), "no verdict can come of it"
    assert timed.folders == (str(Path("own").resolve()),), "it is found again from anywhere"


def test_several_cpus_are_counted_where_the_plugin_can_and_refused_elsewhere() -> None:
    several = replace(ASKED, machine=MachineOptions(smp=4))
    for made in (
        templates.compare(several, (KERNEL, KERNEL), "exact", Stopping()),
        templates.compare(several, (KERNEL, KERNEL), "exact", Stopping(), series=True),
        templates.run(several, (KERNEL,), "exact", 1),
    ):
        assert (made.mode, made.machine.smp) == ("exact", 4)
    spread = replace(several, cases=tuple(parse_case("thread_spawn:mode=threads", catalogue())), folders=())
    assert templates.run(spread, (KERNEL,), "exact", 1).cases[0].name == "thread_spawn:tasks=4,mode=threads"
    assert templates.run(spread, (KERNEL,), "timed", 1).cases == spread.cases
    claim = templates.check(spread, (KERNEL, KERNEL), "exact", 5, "thread-exit")
    assert claim.cases == spread.cases, "a claim says how many tasks it has"
    with pytest.raises(
        UserError, match=r"--smp 4: exact mode counts several CPUs in run, compare, sweep and check alone"
    ):
        templates.trace(several, (KERNEL,), (), None)  # lock holds
    with pytest.raises(UserError, match=r"of x86_64 guests alone, and arm is arm64"):
        templates.run(several, (replace(KERNEL, arch="arm64", label="arm"),), "exact", 1)
    many = replace(ASKED, machine=MachineOptions(smp=65))
    with pytest.raises(UserError, match=r"--smp 65: exact mode counts up to 64 CPUs"):
        templates.run(many, (KERNEL,), "exact", 1)
    assert templates.compare(several, (KERNEL, KERNEL), "timed", Stopping()).machine.smp == 4
    assert templates.trace(several, (KERNEL,), ("locks",), None).machine.smp == 4


def test_an_interrupted_gate_is_no_open_one() -> None:
    made = templates.compare(ASKED, (KERNEL,), "exact", Stopping(), selftests=("pidfd", "clone3"))
    assert made.plan == plans.Compare(selftests=("pidfd", "clone3"))
    assert made.annotations.gate.startswith("not run: the selftests pidfd,clone3")
    series = templates.compare(ASKED, (KERNEL,), "exact", Stopping(), series=True)
    assert series.plan == plans.Sweep() and series.annotations.gate == ""


def test_every_kind_has_its_plan() -> None:
    bisect = plans.Bisect(tree="/t", good="g", bad="b", metric="m")
    made = {
        "run": templates.run(ASKED, (KERNEL,), "exact", 2, reuse=True),
        "calibrate": templates.calibrate(ASKED, KERNEL, 20),
        "leaks": templates.leaks(ASKED, (KERNEL,), 1),
        "compare": templates.scale(ASKED, (KERNEL, KERNEL), 2, (1, 2)),
        "bisect": templates.bisect(ASKED, "timed", bisect),
        "trace": templates.trace(ASKED, (KERNEL,), ("locks",), None),
        "sweep": templates.sweep(ASKED, "exact", 3),
    }
    assert {word: experiment.kind for word, experiment in made.items()} == {word: word for word in made}
    assert [kernel.label for kernel in made["calibrate"].kernels] == ["k-A", "k-B"]
    assert made["bisect"].blocks == 0 and templates.bisect(ASKED, "exact", bisect).blocks == 5
    assert made["compare"].plan == plans.Scale(tasks=(1, 2))
    check = templates.check(ASKED, (KERNEL, KERNEL), "exact", 3, "pidfs", reuse=True)
    assert (check.kind, check.plan) == ("compare", plans.Check(recipe="pidfs", reuse=True))
    assert replace(check, kernels=(KERNEL,)).kind == "run"


def test_a_trace_leaves_pressure_out_and_counts_holds_without_sets() -> None:
    traced, held = (templates.trace(ASKED, (KERNEL,), sets, 10) for sets in (("locks",), ()))
    assert (traced.mode, held.mode) == ("timed", "exact")
    assert traced.cases[0].pressure == "" and traced.blocks == 1
    assert traced.plan == plans.Trace(sets=("locks",), ops=10, collectors=LOCKS)
    assert held.plan == plans.Trace(ops=10, collectors=LOCKS), "for the names of the locks"


def test_a_sweep_on_the_plan_of_another_has_its_own_versions() -> None:
    old = templates.created(templates.sweep(ASKED, "exact", 3), 5, now)
    gap = Gap(place=1, label="6.9", spec="src:t@v6.9", why="does not build", by_host=False)
    new = templates.with_versions(old, (KERNEL,), [gap], ["gcc 14"], command="again", reuse=True)
    assert new.plan == plans.Sweep(reuse=True) and new.command == "again" and new.cases == old.cases
    assert new.annotations.gaps == (gap,) and new.annotations.compilers == ("gcc 14",)


def test_two_experiments_of_one_second_never_have_one_id() -> None:
    digits = iter(["78cc", "78cc", "90aa"])
    first = templates.new_id(now(), token=lambda _: next(digits))
    assert templates.new_id(now(), {first}.__contains__, lambda _: next(digits)) == "20261121-120000-90aa"


def test_an_experiment_is_made_with_an_id_a_seed_and_this_host() -> None:
    made = templates.created(templates.run(ASKED, (KERNEL,), "timed", 1), None, now)
    assert made.id.startswith("20261121-120000-") and made.created_at == "2026-11-21T12:00:00+00:00"
    assert made.host["cpu"] and made.tool_version
    assert templates.created(templates.run(ASKED, (KERNEL,), "exact", 1), None, now).seed == 0
    assert templates.created(templates.run(ASKED, (KERNEL,), "exact", 1), 9, now).seed == 9
    other = replace(KERNEL, arch="arm64")
    with pytest.raises(UserError, match="different architectures"):
        templates.created(templates.run(ASKED, (KERNEL, other), "exact", 1), None, now)


def test_what_was_asked_can_be_asked_again() -> None:
    made: Experiment = templates.run(ASKED, (KERNEL,), "timed", 1)
    assert templates.asked_in(made) == replace(ASKED, folders=(Path("own").resolve(),))


def test_the_host_is_this_one_unless_it_is_a_machine_of_a_lab() -> None:
    asked = replace(ASKED, machine=MachineOptions(lab="/lab.toml:bench1"))
    there = {"cpu": "its own", "machine": "bench1"}
    for one, kept in ((asked, True), (ASKED, False)):
        template = replace(templates.run(one, (KERNEL,), "timed", 1), host=there)
        assert (templates.created(template, 1, now).host == there) is kept


def _stored() -> Experiment:
    case = parse_case("pipe", catalogue())[0]
    return Experiment(
        id="old",
        plan=plans.Compare(),
        mode="exact",
        kernels=(KERNEL,),
        cases=(case,),
        blocks=5,
        command="kdelta compare",
        created_at="2026-11-20T10:00:00+00:00",
        tool_version="0.1.0",
    )


def test_what_is_made_after_an_older_experiment_is_judged_by_how_its_own_boots_are_made() -> None:
    """A followed sweep took its first night's floor along, and that seeds share a boot."""
    shared = {"pipe": Definition(metrics=(), moved_floor_percent=20.0)}
    asked = replace(_stored(), mode="exact", machine=MachineOptions(smp=4), definitions=shared)
    made = templates.created(asked, 1, now)
    assert definitions.booted_seeds(made) and made.definitions["pipe"].moved_floor_percent == 10.0
    assert not definitions.booted_seeds(asked), "its own boots stay what they were"
    bare = definitions.of(replace(asked, definitions={}))
    assert {one.booted_seeds for one in bare.values()} == {False}
    assert {one.moved_floor_percent for one in bare.values()} == {20.0}

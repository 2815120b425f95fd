# SPDX-License-Identifier: GPL-2.0-or-later
"""Facts of a leak check become findings, and findings stay the same when they are read back from the store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from kdelta.cli import _leaks as cli
from kdelta.cli import leaks as leaks_command
from kdelta.errors import GuestError, RegressionFound
from kdelta.model import BootResult, Case, Effort, Experiment, Kernel, PlannedBoot, RunResult, Series, State, plans
from kdelta.results import leaks, outcomes
from kdelta.results.leaks import Finding, Growth
from kdelta.spec.cases import parse_case
from kdelta.spec.workloads import catalogue
from kdelta.store.store import Store

MIB = float(1 << 20)
FREE = [900 * MIB, 899.3 * MIB, 901 * MIB, 898.5 * MIB]  # as a clean guest's free memory really wanders


def _facts(**counts: list[float]) -> dict[str, float]:
    facts = {"leak_ops": 500.0, "leak_batches": 3.0}
    for name, values in counts.items():
        what = name.replace("__", "/")
        facts |= {f"leak{i}:{what}": v for i, v in enumerate(values)}
    return facts


CLEAN = _facts(
    dentries=[100.0] * 4, files=[3.0, 3.0, 4.0, 4.0], free_bytes=FREE, slab__vmap_area=[9.0, 17.0, 25.0, 33.0]
)
LEAKING = _facts(
    dentries=[100.0, 600.0, 1100.0, 1600.0],
    inodes=[10.0, 510.0, 1010.0, 1510.0],
    free_bytes=FREE,
    slab__pid=[5.0, 505.0, 1005.0, 1505.0],
)
EATEN = _facts(dentries=[100.0] * 4, free_bytes=[900 * MIB, 898 * MIB, 896 * MIB, 894 * MIB])


def test_a_clean_guest_has_no_leak() -> None:
    assert [g.what for g in leaks.growth(CLEAN) if g.leaking] == []


def test_what_leaks_is_named_dentries_first() -> None:
    found = [(g.what, round(g.per_op, 6)) for g in leaks.growth(LEAKING) if g.leaking]
    assert found == [("dentries", 1.0), ("inodes", 1.0), ("slab/pid", 1.0)]


def test_pages_that_never_come_back_are_a_leak() -> None:
    (page,) = [g for g in leaks.growth(EATEN) if g.leaking]
    assert (page.what, page.unit) == ("free memory", "pages")
    assert page.per_op == pytest.approx(2 * 256 / 500)


def test_areas_that_are_freed_but_not_yet_purged_are_no_leak_and_their_pages_would_be() -> None:
    lazy = _facts(slab__vmap_area=[100.0, 700.0, 1300.0, 1900.0], vmalloc_bytes=[4096.0] * 4)
    assert [g.what for g in leaks.growth(lazy) if g.leaking] == []
    held = _facts(slab__vmap_area=[100.0, 700.0, 1300.0, 1900.0], vmalloc_bytes=[0.0, 2 * MIB, 4 * MIB, 6 * MIB])
    assert [g.what for g in leaks.growth(held) if g.leaking] == ["vmalloc"]


def test_connections_that_tcp_forgets_after_a_minute_are_no_leak_and_more_of_them_would_be() -> None:
    """Each program that closed TCP connections was a LEAK on every kernel: tw_sock_TCP 1.00, tcp_bind_bucket 0.94."""
    waiting = [0.0, 500.0, 1000.0, 1500.0]
    counted = _facts(
        dentries=[100.0] * 4, time_wait=waiting, slab__tw_sock_TCP=waiting, slab__tcp_bind_bucket=[1.0, 471, 941, 1411]
    )
    assert [(g.what, g.per_op) for g in leaks.growth(counted) if "slab" in g.what] == [
        ("slab/tw_sock_TCP", 1.0),
        ("slab/tcp_bind_bucket", 0.94),
    ]
    assert [g.what for g in leaks.growth(counted) if g.leaking] == []
    more = counted | _facts(slab__tw_sock_TCP=[2 * count for count in waiting])
    assert [g.what for g in leaks.growth(more) if g.leaking] == ["slab/tw_sock_TCP"]
    untold = {name: value for name, value in counted.items() if "time_wait" not in name}
    assert len([g for g in leaks.growth(untold) if g.leaking]) == 2


def test_what_the_kernel_does_not_say_is_no_figure() -> None:
    facts = _facts(dentries=[1.0, 1.0, 1.0, 1.0])
    facts |= {"leak0:slab/x": 1.0, "leak3:slab/x": 9999.0}  # a cache that was made in between
    assert [g.what for g in leaks.growth(facts)] == ["dentries"]
    assert leaks.growth({}) == ()


def test_every_default_case_is_in_the_catalogue_and_every_path_is_checked() -> None:
    known = catalogue()
    cases = [case for text in leaks.CASES for case in parse_case(text, known)]
    paths = {case.params["path"] for case in cases if case.workload == "lifetimes"}
    assert paths == set(known["lifetimes"].params["path"].choices)
    assert {"pidfd_open", "path_lookup", "pipe", "fork_vmas", "thread_spawn"} <= {case.workload for case in cases}


def test_kernels_are_booted_with_caches_that_keep_their_names() -> None:
    kernel = Kernel(label="a", spec="a", release="6.12", image_path="/x", image_sha256="0" * 64, cmdline="quiet")
    (observed,) = leaks.observed([kernel])
    assert observed.cmdline == "quiet slab_nomerge"


def _experiment(boots: int) -> Experiment:
    kernels = tuple(
        Kernel(label=label, spec=label, release="6.12", image_path="/x", image_sha256=label * 64) for label in "ab"
    )
    return Experiment(
        id="20260101-000000-abcd",
        mode="timed",
        plan=plans.Leaks(),
        kernels=kernels,
        cases=(Case(workload="pidfd_open", label="pidfd_open"), Case(workload="lifetimes", params={"path": "clone3"})),
        blocks=boots,
        effort=Effort(batches=3),
    )


def _boot(block: int, slot: int, facts: dict[str, float], state: State = "ok") -> BootResult:
    one = Series(metric="batches", unit="", better="higher", values=(3.0,))
    runs = (
        RunResult(case=0, state="ok", series=(one,), facts=facts),
        RunResult(case=1, state="unsupported", why="PIDFD_THREAD (v6.9)"),
    )
    return BootResult(plan=PlannedBoot(block=block, slot=slot, kernel=slot), state=state, runs=runs)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path / 'k.sqlite'}") as opened:
        yield opened


def test_findings_are_rebuilt_from_the_store(store: Store) -> None:
    experiment = _experiment(1)
    store.create(experiment)
    store.save_boot(experiment.id, _boot(0, 0, CLEAN))
    store.save_boot(experiment.id, _boot(0, 1, LEAKING))
    found = leaks.findings(experiment, store)
    assert [(f.kernel, f.case, f.verdict, f.state) for f in found] == [
        ("a", "pidfd_open", "clean", "ok"),
        ("b", "pidfd_open", "leak", "ok"),
        ("a", "lifetimes:path=clone3", None, "unsupported"),
        ("b", "lifetimes:path=clone3", None, "unsupported"),
    ]
    assert found[2].why == "PIDFD_THREAD (v6.9)"


def test_a_list_of_experiments_tells_what_leaks(store: Store) -> None:
    """It had "2 descriptive" of a check that found a leak."""
    experiment = _experiment(1)
    store.create(experiment)
    store.save_boot(experiment.id, _boot(0, 1, LEAKING))
    known = outcomes.Outcomes(store)
    assert known.of(store.experiments()[0]).words == "1 unsupported, 1 leak"
    store.save_boot(experiment.id, _boot(0, 0, CLEAN))
    assert known.of(store.experiments()[0]).words == "2 unsupported, 1 leak, 1 clean"


def test_a_leak_must_show_in_every_boot(store: Store) -> None:
    experiment = _experiment(2)
    store.create(experiment)
    for block, facts in enumerate((LEAKING, CLEAN)):
        store.save_boot(experiment.id, _boot(block, 0, facts))
        store.save_boot(experiment.id, _boot(block, 1, LEAKING))
    verdicts = {f.kernel: f.verdict for f in leaks.findings(experiment, store) if f.case == "pidfd_open"}
    assert verdicts == {"a": "clean", "b": "leak"}


def test_a_boot_that_panicked_later_counts_for_nothing(store: Store) -> None:
    experiment = _experiment(1)
    store.create(experiment)
    store.save_boot(experiment.id, _boot(0, 0, LEAKING, state="panicked"))
    (first, second, *_) = leaks.findings(experiment, store)
    assert (first.state, first.verdict) == ("panicked", None)
    assert (second.state, second.why) == ("lost", "not run")


def test_the_table_fits_72_columns(store: Store, tmp_path: Path) -> None:
    experiment = _experiment(1)
    store.create(experiment)
    store.save_boot(experiment.id, _boot(0, 1, LEAKING))
    cli.show(store, experiment.id, as_json=False, output=tmp_path / "table")
    lines = (tmp_path / "table").read_text().splitlines()
    assert max(map(len, lines)) <= 72
    assert any("LEAK" in line for line in lines)
    assert "    dentries 1.00, inodes 1.00, slab/pid 1.00" in lines


def test_only_fail_on_closes_the_gate() -> None:
    leak = Finding(kernel="b", case="x", state="ok", verdict="leak")
    assert cli.conclude([leak], None) == 0
    with pytest.raises(RegressionFound, match="x on b"):
        cli.conclude([leak], "leak")
    with pytest.raises(GuestError, match="panicked"):
        cli.conclude([Finding(kernel="b", case="x", state="panicked", why="Kernel panic")], None)


def test_a_new_leak_is_told_beside_one_that_was_there_before() -> None:
    """Of a case that leaks anything on the baseline nothing was told."""

    def found(kernel: str, **leaking: float) -> Finding:
        rows = [
            Growth(what=what, unit="objects", per_op=per_op, batches=(), leaking=per_op > 0)
            for what, per_op in leaking.items()
        ]
        return Finding(kernel=kernel, case="pipe", state="ok", verdict="leak", growth=tuple(rows))

    base = found("a", pids=1.0, files=0.0)
    assert leaks.new([base, found("b", pids=1.0)], "a") == ()
    (new,) = leaks.new([base, found("b", pids=1.1, files=1.0)], "a")
    assert [grown.what for grown in new.leaks] == ["files"]
    (more,) = leaks.new([base, found("b", pids=3.0)], "a")
    assert (more.kernel, [grown.what for grown in more.leaks]) == ("b", ["pids"])


def test_a_case_that_did_not_end_on_a_kernel_is_unchecked() -> None:
    clean = Finding(kernel="a", case="x", state="ok", verdict="clean")
    dead = Finding(kernel="b", case="x", state="panicked", why="Kernel panic")
    assert leaks.unchecked([clean, dead, replace(clean, case="y"), replace(clean, case="y", kernel="b")]) == ("x",)


def test_the_running_kernel_is_refused() -> None:
    result = CliRunner().invoke(leaks_command.command, ["running"])
    assert "runs in a guest" in str(result.exception)

# SPDX-License-Identifier: GPL-2.0-or-later
"""What was measured is stored with it: a report needs no catalogue, no directory of the user, no floors of today."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.cli.main import run
from kdelta.experiment import images, place, prepare, templates
from kdelta.experiment.templates import Asked, Stopping
from kdelta.machine import probe
from kdelta.machine.probe import Qemu
from kdelta.model import (
    BootResult,
    Experiment,
    MachineOptions,
    Metric,
    Mode,
    PlannedBoot,
    Quiet,
    RunResult,
    Series,
    plans,
)
from kdelta.results import definitions, floors, traces
from kdelta.spec import collectors, workloads
from kdelta.spec.cases import parse_case
from kdelta.store.rows import Floor
from kdelta.store.store import Store
from unit.store.store_builders import boot, kernel

OWN = Path(__file__).parents[2] / "data" / "workloads"
FORMATS = ("terminal", "mail", "markdown", "html", "json", "csv", "ktap", "junit", "benchfmt")


def now() -> datetime:
    return datetime(2026, 11, 21, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's directory, with workloads of the user's own in it; the shell stands there."""
    monkeypatch.setenv("KDELTA_STORE", f"sqlite:///{tmp_path / 'store.sqlite'}")
    (tmp_path / "home").mkdir()
    shutil.copytree(OWN, tmp_path / "home" / "own")
    monkeypatch.chdir(tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def store(home: Path) -> Iterator[Store]:
    with Store() as opened:
        yield opened


def created(store: Store, mode: Mode, *texts: str) -> Experiment:
    known = workloads.catalogue((Path("own"),))
    cases = tuple(case for text in texts for case in parse_case(text, known))
    asked = Asked(cases=cases, folders=(Path("own"),))
    template = templates.compare(asked, (kernel("6.12"), kernel("7.0")), mode, Stopping(blocks=8, looks=()))
    made = templates.created(replace(template, blocks=8), 1, now)
    store.create(made)
    return made


def measured(store: Store, experiment: Experiment) -> None:
    """Eight blocks; the second kernel costs a tenth more."""
    for block in range(8):
        for slot in range(2):
            runs = []
            for index, case in enumerate(experiment.cases):
                series = tuple(
                    Series(metric=m.name, unit=m.unit, better=m.better, values=((100.0 + block) * (1 + 0.1 * slot),))
                    for m in experiment.definitions[case.workload].metrics
                )
                runs.append(RunResult(case=index, state="ok", series=series))
            plan = PlannedBoot(block=block, slot=slot, kernel=slot)
            store.save_boot(experiment.id, BootResult(plan=plan, state="ok", runs=tuple(runs)))


def contents(home: Path) -> list[str]:
    """All that is in the store, as SQL."""
    with closing(sqlite3.connect(home.parent / "store.sqlite")) as raw:
        return list(raw.iterdump())


@pytest.mark.parametrize("mode", ["exact", "timed"])
def test_a_report_is_the_same_from_elsewhere_with_the_folder_gone(
    home: Path, store: Store, mode: Mode, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    measured(store, created(store, mode, "uneven", "pipe"))

    def printed() -> list[str]:
        texts = []
        for name in FORMATS:
            assert run(["report", "last", "--format", name]) == 0
            texts.append(capsys.readouterr().out)
        return texts

    stored = contents(home)
    before = printed()
    assert "uneven" in before[0]
    shutil.rmtree(home / "own")
    monkeypatch.chdir(home.parent)
    assert printed() == before
    monkeypatch.setattr(workloads, "catalogue", lambda *_: {})
    assert printed() == before, "nor does it need the workloads that kdelta ships now"
    assert contents(home) == stored, "who reads writes nothing"


def test_a_store_without_definitions_falls_back_on_what_is_here(home: Path, store: Store) -> None:
    made = created(store, "exact", "uneven", "pipe")
    bare = replace(made, definitions={})
    uneven = replace(made.definitions["uneven"], floor_percent=0.0)  # who said none had none
    assert definitions.of(bare) == {**made.definitions, "uneven": uneven} != made.definitions
    shutil.rmtree(home / "own")
    assert definitions.of(bare).keys() == {"pipe"}
    assert definitions.of(made).keys() == {"uneven", "pipe"}


def test_each_mode_has_its_metrics(store: Store) -> None:
    exact, timed = (created(store, mode, "pipe").definitions["pipe"] for mode in ("exact", "timed"))
    assert [metric.name for metric in exact.metrics if metric.primary] == ["instructions"]
    assert "throughput" in {metric.name for metric in timed.metrics}
    leaks = replace(created(store, "timed", "pipe"), plan=plans.Leaks())
    defined = definitions.define(leaks, workloads.catalogue())["pipe"]
    assert defined.metrics == definitions.LEAK_METRICS and isinstance(defined.metrics[0], Metric)


def calibrated(store: Store, experiment: Experiment, percent: float, created_at: str) -> None:
    machine = {"accel": "tcg", "qemu": "x86_64 7.2.22"}
    store.save_floor(
        Floor(
            host=floors.host_key(experiment),
            machine_kind=floors.machine_kind(experiment, machine),
            case="pipe",
            floor_percent=percent,
            created_at=created_at,
            qemu_version=machine["qemu"],
            tool_version=experiment.tool_version,
        )
    )


def test_times_are_judged_by_the_floors_of_when_they_were_begun(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"")
    qemu = Qemu(path=tmp_path / "file", version=(7, 2), text="7.2.22")
    monkeypatch.setattr(probe, "find_qemu", lambda *_: qemu)
    monkeypatch.setattr(probe, "kvm_opens", lambda: False)
    monkeypatch.setattr(place, "programs_for", lambda *_: {"x86_64": tmp_path / "file"})
    monkeypatch.setattr(images, "require", lambda *_: None)
    made = created(store, "timed", "pipe")
    calibrated(store, made, 4.0, "2026-01-01")
    job = prepare.prepare(made, store, Quiet())
    assert job.experiment.annotations.floors_percent == {"pipe": 4.0}
    calibrated(store, made, 9.0, "2026-01-02")
    again = prepare.prepare(store.experiment(made.id), store, Quiet())
    assert floors.of(again.experiment, store) == {"pipe": 4.0}, "a later calibration changes no verdict"
    old = replace(made, id="old")
    store.create(old)
    store.save_boot("old", boot(machine={"accel": "tcg", "qemu": "x86_64 7.2.22"}, runs=()))
    assert floors.of(old, store) == {"pipe": 9.0}, "in older stores the newest one counts"


def test_a_trace_is_read_by_the_sets_that_it_was_made_with(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(cases=tuple(parse_case("pipe", workloads.catalogue())))
    made = templates.created(templates.trace(asked, (kernel("6.12"),), ("locks", "sizes"), None), 0, now)
    store.create(made)
    known = collectors.catalogue()
    monkeypatch.setattr(collectors, "catalogue", lambda *_: {})
    assert traces.sets_of(store.experiment(made.id)) == (known["locks"], known["sizes"])


def test_floors_of_a_machine_are_not_those_of_its_installed_system(store: Store) -> None:
    made, bench = created(store, "timed", "pipe"), MachineOptions(lab="/lab.toml:bench1")
    machines = (bench, replace(bench, in_system=True))
    kinds = [floors.machine_kind(replace(made, machine=machine), {}) for machine in machines]
    assert kinds == ["machine bench1", "machine bench1, installed system"]


def test_the_edges_of_a_loop_that_is_stopped_are_no_difference() -> None:
    getppid = workloads.catalogue(())["getppid"]
    stopped = definitions.of_mode(replace(getppid, endless=True), "exact")
    assert {metric.least for metric in stopped} == {0.5}
    least = {metric.name: metric.least for metric in definitions.of_mode(getppid, "exact")}
    assert least.pop("data_lines") == least.pop("code_lines") == 0.5
    assert set(least.values()) == {0.0}


def test_what_touches_a_few_lines_once_an_interval_is_no_difference_however_few_its_operations() -> None:
    """Of one kernel with another name in /dev select-1000 touched 2 lines of code less, of 151."""
    known = workloads.catalogue(())
    for name, least in (("pipe", 0.25), ("path_lookup", 0.25), ("files", 1 / 3), ("fork_vmas", 8.0)):
        metrics = definitions.of_mode(known[name], "exact")
        assert {metric.least for metric in metrics if metric.name.endswith("_lines")} == {least}

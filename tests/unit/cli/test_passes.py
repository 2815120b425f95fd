# SPDX-License-Identifier: GPL-2.0-or-later
"""A comparison in two passes: when it is the default, how it is stored, and what becomes of one that cannot count."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.cli import _fleet, _mode, _passes, _reports, _session, _tracing, resume
from kdelta.cli._fleet import FleetArgs
from kdelta.errors import HostError, UserError
from kdelta.experiment import follow_up, templates
from kdelta.fleet import asking
from kdelta.model import BESIDE_TAG, Annotations, Beside, Experiment, plans
from kdelta.model.progress import Quiet
from kdelta.spec.cases import parse_case
from kdelta.spec.workloads import catalogue
from kdelta.store.store import Store
from unit.store.store_builders import experiment

KNOWN = catalogue(())


@pytest.mark.parametrize(
    ("given", "passes"),
    [
        ({"timed": True, "exact": True}, "both"),
        ({"timed": True}, "timed"),
        ({"exact": True}, "exact"),
        ({"pressure": "2x60%"}, "timed"),
        ({"kvm": "off"}, "exact"),
        ({}, None),
    ],
)
def test_the_options_say_which_passes_there_are(given: dict[str, object], passes: str | None) -> None:
    options = {"timed": False, "exact": False, "pressure": None, "kvm": "auto"} | given
    assert _mode.passes(**options) == passes  # type: ignore[arg-type]


def test_counts_under_memory_pressure_are_refused() -> None:
    with pytest.raises(UserError, match="--pressure needs timed mode"):
        _mode.passes(timed=True, exact=True, pressure="2x60%", kvm="auto")


def test_both_are_the_default_where_every_case_can_be_counted_as_it_is_timed() -> None:
    cases = parse_case("pipe", KNOWN)
    assert _passes.usual(cases, KNOWN, 1)
    assert not _passes.usual(cases, KNOWN, 4), "there a case would have other tasks"
    assert not _passes.usual(cases, KNOWN | {"pipe": replace(KNOWN["pipe"], exact_ops=0)}, 1)


class Machine(_session.Session):
    """A session that measures nothing and remembers what it was to measure; it cannot count where ``broken``."""

    ran: list[str]
    broken: bool

    def run(
        self,
        experiment: Experiment,
        progress: object,
        budget_s: float | None = None,
        resumed_as: object = None,
        again: str = "",
    ) -> None:
        if experiment.mode == "exact" and self.broken:
            raise HostError("QEMU takes no plugins")
        self.ran.append(f"{experiment.mode} for {getattr(resumed_as, 'mode', experiment.mode)}")


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Machine]:
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        made = Machine(store, True)
        object.__setattr__(made, "ran", [])
        object.__setattr__(made, "broken", False)
        yield made


def begun(session: Machine) -> Experiment:
    timed, exact = (replace(experiment(mode=mode), plan=plans.Compare(), id="") for mode in ("timed", "exact"))
    return _passes.begin(session, timed, exact, 7)


ARGS = FleetArgs(fleet=False, detach=False)


def test_the_times_name_the_counts_and_both_are_run(session: Machine) -> None:
    made = begun(session)
    assert made.mode == "timed" and session.store.experiment("last").id == made.id
    assert session.store.experiment(plans.counted_by(made.plan)).mode == "exact"
    assert _passes.run(session, made, ARGS, Quiet(), counts_asked=True)
    assert session.ran == ["exact for timed", "timed for timed"]


def test_a_machine_that_cannot_count_times_alone_unless_counts_were_asked_for(session: Machine) -> None:
    made = begun(session)
    object.__setattr__(session, "broken", True)
    assert _passes.run(session, made, ARGS, Quiet())
    assert session.ran == ["timed for timed"]
    with pytest.raises(HostError, match="no plugins"):
        _passes.run(session, made, ARGS, Quiet(), counts_asked=True)


def test_the_fleet_is_asked_for_both(session: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(_fleet, "opened", lambda: contextlib.nullcontext())
    monkeypatch.setattr(asking, "ask", lambda _store, _ledger, experiment, _progress: asked.append(experiment.mode))
    monkeypatch.setattr(asking, "begin", lambda *_: None)
    monkeypatch.setattr(asking, "told", lambda *_: None)
    made = begun(session)
    assert not _passes.run(session, made, FleetArgs(fleet=True, detach=True), Quiet(), counts_asked=True)
    assert asked == ["exact", "timed"] and session.ran == []


def test_an_experiment_without_counts_has_one_pass(session: Machine) -> None:
    made = _passes.begin(session, replace(experiment(mode="timed"), plan=plans.Compare(), id=""), None, 7)
    alone = replace(made, plan=plans.Compare(counted="not in this store"))
    assert _passes.run(session, made, ARGS, Quiet()) and _passes.run(session, alone, ARGS, Quiet())
    assert session.ran == ["timed for timed", "timed for timed"]


def test_a_trace_that_was_interrupted_goes_on_with_all_that_was_asked_for(
    session: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of ``--what locks,hold`` the second part was begun after the first one, and so never was."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    pipe = replace(experiment(), cases=tuple(parse_case("pipe", KNOWN)))
    asked, kernels = templates.asked_in(pipe), experiment().kernels
    with monkeypatch.context() as patched:
        patched.setattr(Machine, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            _tracing.run(session, asked, kernels, "locks,hold", None, Quiet())
    found = session.store.experiment("last")
    assert isinstance(found.plan, plans.Trace) and found.plan.sets == ("locks",)
    assert _passes.run(session, found, ARGS, Quiet())
    assert session.ran == ["timed for timed", "exact for timed"], "resumed as the experiment that names the other"
    rest = _passes.traced_beside(session.store, found)
    assert rest is not None and _reports._traced(session.store, found) == [found.id, rest.id]
    session.store.delete(rest.id)
    assert _reports._traced(session.store, found) == [found.id]


@pytest.mark.parametrize(("what", "modes"), [("sizes,locks", ["timed"]), ("hold", ["exact"])])
def test_a_trace_of_one_group_is_one_experiment(session: Machine, what: str, modes: list[str]) -> None:
    pipe = replace(experiment(), cases=tuple(parse_case("pipe", KNOWN)))
    made = _tracing.run(session, templates.asked_in(pipe), pipe.kernels, what, None, Quiet())
    assert [session.store.experiment(name).mode for name in made] == modes


def test_traces_of_a_comparison_leave_it_the_last_experiment(session: Machine) -> None:
    pipe = replace(experiment(), cases=tuple(parse_case("pipe", KNOWN)))
    session.store.create(pipe)
    made = _tracing.beside(session, pipe, "locks,hold", Quiet())
    assert session.store.experiment("last").id == pipe.id not in made
    assert _reports.beside(session.store, pipe) == made, "its report shows them below"
    told = Annotations(beside=(Beside(what="locks", cases=1, experiment=made[0]),))
    assert _reports.beside(session.store, replace(pipe, annotations=told)) == made[1:], "a review's own tells of it"
    assert len(_tracing.run(session, templates.asked_in(pipe), pipe.kernels, "locks", None, Quiet())) == 1
    assert isinstance(session.store.experiment("last").plan, plans.Trace), (
        "one that was asked for by itself is the last"
    )


def test_resume_goes_on_with_the_traces_of_a_comparison_before_it_decides(
    session: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are those of the comparison that was interrupted; what follows it has none."""
    made = session.begin(replace(experiment(mode="exact"), plan=plans.Compare(), id=""), 7)
    trace = session.begin(replace(experiment(mode="exact"), plan=plans.Trace(), id=""), 7)
    session.store.tag(trace.id, f"{BESIDE_TAG}{made.id}")
    after = replace(made, id="20270101-000000-0000")
    ran: list[str] = []

    def took(name: str, code: int) -> int:
        ran.append(name)
        return code

    monkeypatch.setattr(_session, "opened", lambda *_, **__: contextlib.nullcontext(session))
    monkeypatch.setattr(follow_up, "begin", lambda *_: after)
    monkeypatch.setattr(_passes, "run", lambda _, one, *__: took(one.id, 1))
    monkeypatch.setattr(_fleet, "run", lambda _, one, *__: took(one.id, 1))
    monkeypatch.setattr(_reports, "conclude", lambda _, one, __: took(f"report {one.id}", 0))
    resume.command.main([made.id, "--decide"], standalone_mode=False)
    assert ran == [made.id, trace.id, after.id, f"report {after.id}"]

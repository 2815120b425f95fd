# SPDX-License-Identifier: GPL-2.0-or-later
"""What a review checks beside speed: told where it could not be, and told anew once it was resumed."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from kdelta.cli import _beside, _session
from kdelta.cli._budget import Budget
from kdelta.errors import HostError, UserError
from kdelta.experiment import schedule, templates
from kdelta.kernel.touches import Touched
from kdelta.model import Annotations, Beside, BootResult, Case, Experiment, RunResult, Series
from kdelta.report import looked
from unit.serve.serve_store import experiment

COUNT = Series(metric="instructions", unit="instructions/op", better="lower", values=(1000.0,))


def test_what_cannot_be_checked_beside_is_told_and_costs_no_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KDELTA_STORE", f"sqlite:///{tmp_path / 'kdelta.sqlite'}")

    def fails(session: object, made: Experiment, *_: object) -> None:
        if made.plan.__class__.__name__ == "Leaks":
            raise HostError("no QEMU")

    monkeypatch.setattr(_session.Session, "run", fails)
    locks = _beside._CHECKS[1]
    shown = structs.replace(locks, shown=lambda *_: _beside.Shown("held: 3\n"))
    monkeypatch.setattr(_beside, "_CHECKS", (_beside._CHECKS[0], shown))
    touched = Touched(lifetimes=("kfree", "security_msg_msg_alloc", "security_msg_msg_free"), locks=("mutex_lock",))
    with _session.opened(quiet=True) as session:
        measured = experiment("first", ("6.12", "7.0"))
        session.store.create(measured)
        leaks, holds = _beside.checks(session, measured, touched, Budget(None))
        assert "lifetimes of objects (kfree," in leaks.text
        assert "which could not be checked: no QEMU" in " ".join(leaks.text.split())
        assert max(map(len, leaks.text.splitlines())) <= 72
        assert holds.text == "The series touches locks (mutex_lock):\n\nheld: 3\n"
        kept = session.store.experiment("last")
        assert kept.id == "first", "what belongs to a review is not the last one"
        assert [(one.what, one.experiment, one.why) for one in kept.annotations.beside] == [
            ("leaks", "", "no QEMU"),
            ("locks", holds.kept.experiment, ""),
        ]
        assert holds.kept.experiment and session.store.experiment(holds.kept.experiment).kind == "trace"
        assert _beside.checks(session, measured, Touched(), Budget(None)) == ()
        (spins,) = _beside.checks(session, measured, Touched(locks=("spin_lock",)), Budget(None))
        assert "touches locks (spin_lock), and no mutex" in spins.text and not spins.begun
        above = looked.above(session.store.experiment("first").annotations)
        assert above[0] == "What runs under locks: not counted, the series touches no mutex." and len(above) == 2
        assert _beside.checks(session, experiment("none", ("6.12", "7.0"), cases=()), touched, Budget(None)) == ()


def test_a_check_for_which_no_time_is_left_is_told_with_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KDELTA_STORE", f"sqlite:///{tmp_path / 'kdelta.sqlite'}")
    monkeypatch.setattr(_session.Session, "run", lambda *_: pytest.fail("it is run"))
    with _session.opened(quiet=True) as session:
        measured = experiment("first", ("6.12", "7.0"))
        session.store.create(measured)
        budget = Budget(60.0, iter((0.0, 60.0)).__next__)
        (leaks,) = _beside.checks(session, measured, Touched(lifetimes=("kfree",)), budget)
        made = session.store.experiment(leaks.kept.experiment)
        assert (made.kind, len(session.store.done(made.id))) == ("leaks", 0)
        assert f"no time is left of the budget; kdelta resume {made.id}" in " ".join(leaks.text.split())
        (line,) = looked.above(session.store.experiment("first").annotations)
        assert line == f"Leaks: not looked at, no time is left of the budget (kdelta resume {made.id})."
        _beside.resumed(session, made)
        assert looked.above(session.store.experiment("first").annotations) == (line,), "it did not come to its end"
        for plan in (plan for block in schedule.blocks(made) for plan in block):
            session.store.save_boot(made.id, BootResult(plan=plan, state="hung"))
        _beside.resumed(session, made)
        (line,) = looked.above(session.store.experiment("first").annotations)
        assert line.startswith("Leaks: could not be checked: of ") and f"(kdelta report {made.id})" in line


def test_cases_that_changed_are_checked_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pipes that a worker closed were not checked for leaks: eight that dup() spend more of theirs in close(2)."""
    monkeypatch.setenv("KDELTA_STORE", f"sqlite:///{tmp_path / 'kdelta.sqlite'}")
    cases = tuple(Case(workload="pipe", params={"writers": str(n)}) for n in range(1, 11))
    with _session.opened(quiet=True) as session:
        measured = experiment("first", ("6.12", "7.0"), cases=cases, blocks=5)
        session.store.create(measured)
        for plan in (plan for block in schedule.blocks(measured) for plan in block):
            runs = tuple(
                RunResult(
                    case=at,
                    state="ok",
                    series=(structs.replace(COUNT, values=(1000.0 - 90.0 * plan.kernel * (at == 9),)),),
                )
                for at in range(len(cases))
            )
            session.store.save_boot("first", BootResult(plan=plan, state="ok", runs=runs))
        assert _beside._first(session, measured)[0] == cases[9] and len(_beside._first(session, measured)) == 8


def test_leaks_are_looked_for_by_cases_and_not_by_hundreds_of_runs_of_programs() -> None:
    pipe = Case(workload="pipe")
    program = Case(workload="stress-ng/pipe", params={"pack": "x"})
    reviewed = experiment("first", ("6.12", "7.0"), cases=(program, pipe))
    asked = templates.asked_in(reviewed)
    assert _beside._leaks(reviewed, asked).cases == (pipe,)
    with pytest.raises(UserError, match="programs alone execute it"):
        _beside._leaks(reviewed, structs.replace(asked, cases=(program,)))


def test_of_locks_a_review_on_one_cpu_says_what_it_cannot_see() -> None:
    notes = Annotations(beside=(Beside(what="locks", experiment="x", cases=2),))
    assert [line for line in looked.above(notes) if "--smp 8" in line and "not looked at" in line]
    assert not [line for line in looked.above(notes, 8) if "--smp" in line]

# SPDX-License-Identifier: GPL-2.0-or-later
"""A followed sweep of a real git tree, really built; the boots are simulated. Each step is announced once."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kdelta.cli import _follow
from kdelta.cli.main import run
from kdelta.experiment import runner
from kdelta.kernel.sources import parse_kernel
from kdelta.model import Annotations, Because, BootResult, Experiment, PlannedBoot, RunResult
from kdelta.model.diary import Step
from kdelta.report import steps as layout
from kdelta.results import answer
from kdelta.results import compilers as by_compiler
from kdelta.results.types import CellName, Detail, Sweep, SweepPoint, SweepStep
from kdelta.store.store import Store
from unit.cli import test_sweep_gaps
from unit.cli.test_sweep_gaps import release
from unit.kernel.tiny_tree import PIPE, git
from unit.report.report_samples import experiment, kernel

tree = test_sweep_gaps.tree  # v6.8 to v6.11; v6.10 does not compile


def night(tree: Path, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    tags = ["--refs", "v6.8..", "--tree", str(tree)]
    argv = ["sweep", "--follow", *tags, "--case", "pipe", "--seeds", "5", "-q", *words]
    assert run(argv) == 0
    return capsys.readouterr().out


def steps() -> dict[str, tuple[str, str]]:
    with Store() as store:
        return {f"{one.last} {one.first}": (one.state, one.note) for one in store.steps()}


def test_only_new_versions_are_measured_and_each_step_is_announced_once(
    tree: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = night(tree, capsys)
    assert "2 new steps" in first and "between v6.8 and v6.9" in first and "because pipe_write +100" in first
    assert "No new step; 2 known" in night(tree, capsys)
    with Store() as store:
        assert len(store.experiments()) == 1  # nothing new: nothing is measured
    release(tree, "v6.12", PIPE.replace("LIMIT", "9"))
    second = night(tree, capsys)
    assert "1 new step\n" in second and "between v6.11 and v6.12" in second and "v6.9" not in second
    assert len(steps()) == 3
    with Store() as store:
        assert [kernel.label for kernel in store.experiment("last").kernels] == ["v6.8", "v6.9", "v6.11", "v6.12"]
        assert [gap.place for gap in store.experiment("last").annotations.gaps] == [2]


def test_a_night_that_was_cut_short_goes_on(
    tree: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "execute", lambda *_: None)
    assert "No new step; 0 known" in night(tree, capsys)
    monkeypatch.setattr(runner, "execute", test_sweep_gaps.execute)
    assert "2 new steps" in night(tree, capsys)
    with Store() as store:
        assert len(store.experiments()) == 1


def test_a_cell_that_hung_is_measured_again_once(
    tree: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hung = RunResult(case=0, state="hung", why="no end")

    def execute(experiment: Experiment, store: Store, _voice: Any) -> None:
        if broken and (1, 1) not in store.done(experiment.id):
            plan = PlannedBoot(block=1, slot=1, kernel=1)
            store.save_boot(experiment.id, BootResult(plan=plan, state="ok", runs=(hung,)))
        test_sweep_gaps.execute(experiment, store, _voice)

    def sweeps() -> int:
        with Store() as store:
            return len(store.experiments())

    broken = True
    monkeypatch.setattr(runner, "execute", execute)
    night(tree, capsys)
    night(tree, capsys)
    assert sweeps() == 2
    broken = False
    assert "No new step" in night(tree, capsys)
    assert sweeps() == 2, "what hung twice is no chance of the host"
    with Store() as store:
        store.delete("last")
    argv = ["sweep", "--follow", "--refs", "v6.8..", "--tree", str(tree), "--case", "pipe", "--seeds", "5"]
    assert run(argv) == 0
    assert "the host may have had a part in pipe on v6.9 (hung): measured again" in capsys.readouterr().err
    assert sweeps() == 2
    assert run(argv) == 0
    assert sweeps() == 2
    assert "measured again" not in capsys.readouterr().err


def test_a_step_from_zero_is_told_by_what_it_is_now_and_has_no_percentage_in_json() -> None:
    """It was announced as "-", and ``Infinity`` is no JSON."""
    made = Step(
        key="k" * 32, case="lseek", metric="transfers", last="6.12", first="7.0", effect_percent=math.inf, patched=3.0,
        verdict="regressed", because="", experiment="e", announced_at="",
    )  # fmt: skip
    assert "lseek: transfers now 3 (R)" in layout.announced([made], [], 1)
    (told,) = json.loads(layout.to_json([made]), parse_constant=pytest.fail)["steps"]
    assert (told["effect_percent"], told["patched"]) == (None, 3.0)


def test_what_becomes_of_a_step_is_said_and_kept(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = night(tree, capsys).split("\n")[2].split()[0]
    assert run(["triage", name, "acknowledged", "--note", "queued\nfor 6.13"]) == 0
    assert "acknowledged, " in capsys.readouterr().out
    assert steps()["v6.8 v6.9"] == ("acknowledged", "queued\nfor 6.13")
    assert run(["triage", "--state", "open", "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert [one["first"] for one in document["steps"]] == ["v6.11"]
    assert run(["triage"]) == 0
    listed = capsys.readouterr().out
    assert listed.index("v6.11") < listed.index("queued for 6.13") and max(map(len, listed.splitlines())) <= 72
    for words in ([name, "gone"], ["zz", "fixed"], ["--note", "x"], ["--state", "lost"]):
        assert run(["triage", *words]) == 1
    assert len(capsys.readouterr().err.strip().splitlines()) == 4


def test_a_version_that_disappears_from_the_archive_announces_nothing_again(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    night(tree, capsys)
    known = steps()
    git(tree, "tag", "-d", "v6.9")
    assert "No new step; 2 known" in night(tree, capsys)
    assert steps() == known


def test_a_step_that_a_late_version_narrows_is_the_same_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDELTA_STORE", f"sqlite:///{tmp_path / 'kdelta.sqlite'}")
    samples = sweep_of(swept(100.0, 110.0), "v0", "v1")
    monkeypatch.setattr(answer, "sweeps", lambda *_: samples[1].sweeps)
    with Store() as store:
        (first,), _ = _follow.announce(store, samples[0].experiment, lambda: "2026-11-22T03:00:00")
        store.judge(first.key, lambda one: replace(one, state="acknowledged", note="known"))
        late = swept(100.0, 100.0, 110.0)
        late = replace(late, points=(), steps=(replace(late.steps[0], last="v0.5", first="v1"),))
        samples = sweep_of(late, "v0", "v0.5", "v1")
        assert _follow.announce(store, samples[0].experiment, lambda: "2026-11-23T03:00:00") == ([], [])
        (kept,) = store.steps()
        assert (kept.last, kept.first, kept.state, kept.note) == ("v0.5", "v1", "acknowledged", "known")
        assert kept.announced_at == "2026-11-22T03:00:00"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--timed"], "--follow is for exact mode"),
        (["--add", "last"], "--follow does nothing beside --add"),
        (["--fresh"], "leave out --add and --fresh"),
    ],
)
def test_what_cannot_be_followed_is_refused(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sweep", "--follow", "debian:6.12..", *words]) == 1
    assert said in capsys.readouterr().err


def test_a_step_says_that_the_compiler_changed_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDELTA_STORE", f"sqlite:///{tmp_path / 'kdelta.sqlite'}")
    from unit.report.sweep_samples import sweep

    result, detail = sweep()
    labels = [one.label for one in result.experiment.kernels]
    compilers = tuple("gcc 16.1" if label == "6.12" else "gcc 14.2" for label in labels)
    one = replace(result.experiment, annotations=Annotations(compilers=compilers))
    monkeypatch.setattr(answer, "sweeps", lambda *_: detail.sweeps)
    with Store() as store:
        found, _ = _follow.announce(store, one, lambda: "2026-11-22T03:00:00")
        assert _follow.announce(store, one, lambda: "2026-11-23T03:00:00") == ([], [])
    told = {step.first: step.compiler for step in found}
    assert told["6.12"] == "gcc 14.2 before, gcc 16.1 from here on"


def sweep_of(sweep: Sweep, *labels: str) -> tuple[Any, Detail]:
    """A result whose kernels are ``labels``, each with an image of its own."""
    kernels = tuple(replace(kernel(label), image_sha256=label) for label in labels)
    made = type("Result", (), {"experiment": replace(experiment(), kernels=kernels, annotations=Annotations())})
    return made, Detail(sweeps=(sweep,))


def swept(*figures: float) -> Sweep:
    """Versions v0, v1, ... of one case; every change is a step."""
    name = CellName(case="pipe", metric="instructions", cgroup="root", mitigations="default")
    steps = tuple(
        SweepStep(last=f"v{i}", first=f"v{i + 1}", baseline=a, patched=b, effect_percent=100 * (b / a - 1))
        for i, (a, b) in enumerate(pairwise(figures))
        if a != b
    )
    points = tuple(SweepPoint(kernel=f"v{i}", value=value) for i, value in enumerate(figures))
    return Sweep(cell=name, unit="1", better="lower", points=points, steps=steps)


@pytest.mark.parametrize(
    ("figures", "compilers", "explained"),
    [
        ((3044.0, 2947.0, 3043.0), "ABA", {"v1", "v2"}),  # pidfd_open on 7.1.13, 7.2.13 (gcc 16) and 7.3.4
        ((3044.0, 2947.0, 2947.0, 3040.0), "ABBA", {"v1", "v3"}),
        ((3044.0, 2947.0, 3043.0), "ABC", set()),
        ((3044.0, 2947.0, 3043.0), "AAA", set()),
        ((3044.0, 2947.0, 2900.0), "ABA", set()),  # goes on although the compiler is back
        ((3044.0, 2947.0, 3000.0), "ABA", set()),  # half of it stays
        ((3044.0, 2947.0, 2900.0, 3043.0), "ABBA", set()),  # something else moved it in between
        ((3044.0, 2947.0, 3043.0), "A?A", set()),
    ],
)
def test_a_figure_that_goes_and_comes_back_with_the_compiler_is_explained(
    figures: tuple[float, ...], compilers: str, explained: set[str]
) -> None:
    known = {f"v{i}": "" if letter == "?" else f"gcc {letter}" for i, letter in enumerate(compilers)}
    assert set(by_compiler.explained(swept(*figures), known)) == explained


def test_a_known_step_is_told_again_once_when_the_compiler_explains_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KDELTA_STORE", f"sqlite:///{tmp_path / 'kdelta.sqlite'}")
    kernels = tuple(kernel(f"v{i}") for i in range(3))
    asked = replace(experiment("v0", mode="exact"), kernels=kernels)
    one = replace(asked, annotations=Annotations(compilers=("gcc 14", "gcc 16", "gcc 14")))

    def at(*figures: float) -> tuple[list[Step], list[Step]]:
        monkeypatch.setattr(answer, "sweeps", lambda *_: (swept(*figures),))
        with Store() as store:
            return _follow.announce(store, one, lambda: "2026-11-22T03:00:00")

    (first,), told = at(3044.0, 2947.0)
    assert not told and "may explain it" in layout.announced([first], [], 1)
    (second,), (again,) = at(3044.0, 2947.0, 3043.0)
    assert (again.key, again.first, second.first) == (first.key, "v1", "v2")
    said = " ".join(layout.announced([second], [again], 2).split())
    assert "1 known step explained now" in said and "is back with it at v2" in said
    assert f"kdelta triage {first.key[:10]} explained" in said
    assert at(3044.0, 2947.0, 3043.0) == ([], [])
    assert run(["triage", first.key[:10], "explained"]) == 0
    assert "explained by the compiler: gcc 14 before, gcc 16" in " ".join(capsys.readouterr().out.split())


def test_a_range_may_be_open() -> None:
    spec = parse_kernel("debian:6.12..")
    assert spec.is_range and spec.target == "6.12"
    from kdelta.kernel.sources import written

    assert written(spec) == "debian:6.12.."
    assert parse_kernel(written(spec)) == spec


def test_other_cases_or_kernels_are_followed_on_their_own() -> None:
    def tag(*names: str) -> str:
        return _follow.tag_of(names, ())

    assert tag("debian:6.12..") != tag("debian:6.11..") and tag("a", "b") != tag("ab")


def test_a_step_is_announced_with_what_string_instructions_moved() -> None:
    """A report said that 392 bytes of REP came back with a step; what was announced of it each night did not."""
    made = experiment("6.1", "6.12", mode="exact")
    points = tuple(SweepPoint(kernel=label, value=9.0, rep_bytes=rep) for label, rep in (("6.1", 0.0), ("6.12", 392.0)))
    because = Because(changed=(("kfree", 12),))
    step = SweepStep(
        last="6.1",
        first="6.12",
        baseline=9.0,
        patched=9.3,
        effect_percent=3.3,
        verdict="regressed",
        because_line=because,
    )
    cell = CellName(case="a", metric="instructions")
    of = Sweep(cell=cell, unit="instructions", better="lower", points=points, steps=(step,))
    alone = replace(of, steps=(replace(step, because_line=None),))
    told = [one.because for one in _follow._steps(made, (of, alone), "2026-11-26T19:00:00+00:00")]
    assert told == ["kfree +12; REP bytes 0 B before, 392.0 B from here on", ""]

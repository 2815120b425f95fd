# SPDX-License-Identifier: GPL-2.0-or-later
"""What sweep, bisect and bisect-step refuse before anything is booted, and with which exit code."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kdelta.cli import _bisection, bisect, calibrate
from kdelta.cli._session import Session
from kdelta.cli.main import run
from kdelta.model import Case, Experiment, Kernel, plans
from kdelta.store.store import Store


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDELTA_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("KDELTA_STORE", raising=False)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    root.mkdir()
    empty = ["commit", "-q", "--allow-empty", "-m"]
    for words in (["init", "-q"], [*empty, "one"], [*empty, "two"]):
        who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", str(root), *who, *words], check=True, capture_output=True)
    return root


PLANS = {
    "compare": plans.Compare(),
    "sweep": plans.Sweep(),
    "bisect": plans.Bisect(tree="t", good="g", bad="b", metric="m"),
    "calibrate": plans.Calibrate(),
}


def stored(mode: str, kind: str) -> None:
    kernels = tuple(Kernel(label=x, spec=x, release=x, image_path="/i", image_sha256=x) for x in ("6.1", "6.12"))
    with Store() as store:
        store.create(
            Experiment(id="old", plan=PLANS[kind], mode=mode, kernels=kernels, cases=(Case(workload="pipe"),))  # type: ignore[arg-type]
        )


def test_changes_that_a_bisection_leaves_out_are_told(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a ref the tree is its HEAD there, and with what is changed in it anywhere else."""
    (tree / "Makefile").write_text("VERSION = 6\n")
    for words in (["add", "-A"], ["-c", "user.name=A", "-c", "user.email=a@b", "commit", "-q", "-m", "three"]):
        subprocess.run(["git", "-C", str(tree), *words], check=True, capture_output=True)
    plan = plans.Bisect(tree=str(tree), good="HEAD~1", bad="HEAD", metric="instructions")
    with Store("sqlite://") as store:
        session = Session(store, False)
        bisect._tell(session, f"src:{tree}@HEAD~1", f"src:{tree}", plan)
        assert "left out" not in capsys.readouterr().err
        (tree / "Makefile").write_text("VERSION = 7\n")
        bisect._tell(session, f"src:{tree}@HEAD~1", f"src:{tree}", plan)
        assert "uncommitted changes of 1 file are left out" in capsys.readouterr().err
        bisect._tell(session, f"src:{tree}@HEAD~1", f"src:{tree}@HEAD", plan)
        assert "left out" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sweep", "debian:6.1"], "needs a range"),
        (["sweep"], "needs a range"),
        (["sweep", "running", "debian:6.1"], "cannot be booted"),
        (["sweep", "--refs", "v6.1", "debian:6.1"], "not a range of tags"),
        (["sweep", "debian:6.1", "debian:6.2", "--format", "nonsense"], "nonsense"),
        (["sweep", "--add", "nothing", "debian:6.1"], "is not in the store"),
        (["bisect", "src:./a"], "takes GOOD and BAD"),
        (["bisect", "debian:6.1", "debian:6.12", "--case", "pipe"], "needs commits of a git tree"),
        (["bisect", "src:./a@x", "src:./b@y", "--case", "pipe"], "must name one tree"),
        (["bisect", "src:./a@x", "src:./a+p.patch", "--case", "pipe"], "the same patches"),
        (["bisect", "src:./a@x", "src:./a@y"], "needs one case"),
        (["bisect", "src:./a@x", "src:./a@y", "-c", "pipe:writers=1|2"], "one case, not 2"),
        (["bisect", "src:./a@x", "src:./a@y", "-c", "pipe", "--metric", "speed"], "no such exact metric"),
        (["bisect", "src:./nowhere@x", "src:./nowhere@y", "-c", "pipe"], "no such tree"),
        (["bisect", "--resume", "nothing"], "is not in the store"),
        (["bisect", "--resume", "x", "src:./a", "src:./b"], "leave out GOOD"),
    ],
)
def test_refused_input_is_one_line_and_exit_code_1(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 1
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1 and "Traceback" not in err


def test_a_bisection_between_swapped_ends_is_refused(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bisect", f"src:{tree}@HEAD", f"src:{tree}@HEAD~1", "-c", "pipe"]) == 1
    assert "are they swapped?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("mode", "kind", "said"),
    [("timed", "sweep", "none can be added later"), ("exact", "compare", "is a compare, not a sweep")],
)
def test_only_an_exact_sweep_can_grow(mode: str, kind: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    stored(mode, kind)
    assert run(["sweep", "--add", "old", "debian:7.0"]) == 1
    assert said in capsys.readouterr().err


def test_resume_searches_a_bisection_on(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It named the command that does, and exited 1: of a search that was killed nobody knows that it is another."""
    stored("exact", "bisect")
    found = []

    def shown(_store: object, answer: str, as_json: bool) -> None:
        found.append((answer, as_json))

    monkeypatch.setattr(bisect, "_search", lambda _session, experiment, *_: experiment.id)
    monkeypatch.setattr(_bisection, "show", shown)
    assert run(["resume"]) == 0
    assert run(["resume", "old", "--json", "-q"]) == 0
    assert found == [("old", False), ("old", True)]
    assert run(["resume", "old", "--time-budget", "5m"]) == 1
    assert "--time-budget does nothing here: old is a bisection" in capsys.readouterr().err


def test_an_imported_bisection_is_vouched_for_where_its_refusal_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """kdelta resume ID --trust is what the refusal names, also of a bisection."""
    stored("exact", "bisect")
    assert run(["export", "old", "-o", str(tmp_path / "old.kdelta")]) == 0
    monkeypatch.setenv("KDELTA_STATE", str(tmp_path / "other"))
    assert run(["import", str(tmp_path / "old.kdelta")]) == 0
    assert run(["resume", "old"]) == 1
    assert "kdelta resume old --trust" in capsys.readouterr().err
    monkeypatch.setattr(bisect, "_search", lambda _session, experiment, *_: experiment.id)
    monkeypatch.setattr(_bisection, "show", lambda *_: None)
    assert run(["resume", "old", "--trust"]) == 0
    assert run(["resume", "old"]) == 0


def test_resume_of_a_calibration_comes_to_its_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    """It made the boots and reported them: the floor, for which they are, was not stored."""
    stored("timed", "calibrate")
    done = []

    def concluded(_store: object, experiment: Experiment, as_json: bool) -> int:
        done.append((experiment.id, as_json))
        return 0

    monkeypatch.setattr(Session, "run", lambda _session, experiment, _progress: done.append(experiment.id))
    monkeypatch.setattr(calibrate, "_conclude", concluded)
    assert run(["resume", "old", "--json"]) == 0
    assert done == ["old", ("old", True)]


@pytest.mark.parametrize(
    "words",
    [
        ["--no-such-option"],
        ["--case", "nothing", "--good", "1", "--bad", "2"],
        ["--case", "pipe"],
        ["--case", "pipe", "--good", "5", "--bad", "5"],
        ["--case", "pipe", "--good", "many", "--bad", "5"],
        ["--case", "pipe", "--like", "last"],
        ["--case", "pipe", "--like", "nothing"],
        ["debian:6.1..6.12", "--case", "pipe", "--good", "1", "--bad", "2"],
        ["src:./nowhere", "--case", "pipe", "--good", "1", "--bad", "2"],
    ],
)
def test_bisect_step_stops_git_instead_of_calling_a_typo_a_bad_commit(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["bisect-step", *words]) == 128
    assert capsys.readouterr().err.startswith("kdelta: ")

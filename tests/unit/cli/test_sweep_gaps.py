# SPDX-License-Identifier: GPL-2.0-or-later
"""A sweep of a real git tree with versions that do not build, really built; the boots are simulated."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kdelta.cli.main import run
from kdelta.errors import HostError
from kdelta.experiment import prepare, runner
from kdelta.kernel import debian, source, toolchain
from kdelta.kernel.sources import parse_kernel
from kdelta.model import BootResult, Experiment, PlannedBoot, Profile, Quiet, RunResult, Series
from kdelta.store.store import Store
from unit.guest.objects import with_all_compiled
from unit.kernel.tiny_tree import PIPE, TREE

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None or shutil.which("make") is None, reason="needs gcc and make"
)
TAGS = ("v6.8", "v6.9", "v6.10", "v6.11")


def git(tree: Path, *words: str) -> None:
    argv = ["git", "-C", str(tree), "-c", "user.name=a", "-c", "user.email=a@b", *words]
    subprocess.run(argv, check=True, capture_output=True)


def release(tree: Path, tag: str, text: str) -> None:
    (tree / "fs/pipe.c").write_text(text)
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", tag)
    git(tree, "tag", "-f", tag)


def execute(experiment: Experiment, store: Store, _voice: Any) -> None:
    """Every boot of the plan: each kernel costs 100 instructions more than the one before."""
    for block in range(experiment.blocks):
        for slot, _ in enumerate(experiment.kernels):
            if (block, slot) in store.done(experiment.id):
                continue
            cost = 3000 + 100 * slot
            series = Series(metric="instructions", unit="instructions/op", better="lower", values=(float(cost),) * 7)
            vector = (cost, 0, 0, 0, 0, 0, 0)
            profile = Profile(ops=1, functions={"pipe_write": vector}, total=vector)
            plan = PlannedBoot(block=block, slot=slot, kernel=slot)
            runs = (RunResult(case=0, state="ok", series=(series,), profile=profile),)
            store.save_boot(experiment.id, BootResult(plan=plan, state="ok", runs=runs))


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four releases, of which v6.10 does not compile."""
    monkeypatch.setenv("KDELTA_STATE", str(tmp_path / "state"))
    with_all_compiled(tmp_path / "cache")
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("KDELTA_STORE", raising=False)
    monkeypatch.setattr(toolchain, "missing", lambda arch: [])
    monkeypatch.setattr(prepare, "prepare", lambda experiment, *_a, **_k: experiment)
    monkeypatch.setattr(runner, "execute", execute)
    root = tmp_path / "linux"
    for name, text in TREE.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        # the kernel's own build names files by their whole path
        (root / name).write_text(text.replace("-o $@ $<", "-o $@ $(abspath $<)"))
    git(root, "init", "-q", "-b", "main")
    for number, tag in enumerate(TAGS):
        release(root, tag, PIPE.replace("LIMIT", str(number)) + ("#error not finished\n" if tag == "v6.10" else ""))
    return root


def swept(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    capsys.readouterr()
    case = [] if "--add" in words else ["--case", "pipe"]  # an added version is measured with the sweep's own cases
    assert run(["sweep", *words, *case, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def figures(document: dict[str, Any]) -> dict[str, float | None]:
    return {point["kernel"]: point["value"] for point in document["points"]}


def test_a_version_that_does_not_build_is_a_gap_and_is_tried_again(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--refs", "v6.8..v6.11", "--tree", str(tree), "--seeds", "5"]
    document = swept(capsys, *words)
    assert figures(document) == {"v6.8": 3000.0, "v6.9": 3100.0, "v6.10": None, "v6.11": 3200.0}
    gap = document["points"][2]
    assert gap["state"] == "failed" and "not finished" in gap["why"]
    assert gap["why"].startswith("does not build: fs/pipe.c:")  # of the tree, not of the directory where it is built
    assert [(step["last"], step["first"]) for step in document["steps"]] == [("v6.8", "v6.9"), ("v6.9", "v6.11")]
    assert [warning["code"] for warning in document["warnings"]] == ["gap"]
    for form in ("terminal", "mail", "markdown", "html", "csv"):
        assert run(["report", "last", "--format", form]) == 0
        assert "not finished" in " ".join(capsys.readouterr().out.split()), form
    git(tree, "checkout", "-q", "v6.10")
    release(tree, "v6.10", PIPE.replace("LIMIT", "2"))
    assert figures(swept(capsys, *words))["v6.10"] == 3200.0


def test_what_is_to_be_built_is_told_before_the_first_build(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    specs = [f"src:{tree}@{tag}" for tag in ("v6.8", "v6.9")]
    assert run(["sweep", *specs, "--case", "pipe"]) == 0
    said = capsys.readouterr().err.splitlines()
    assert said.index("2 kernels are to be built: v6.8, v6.9") < said.index(
        next(line for line in said if line.startswith("checking out"))
    )
    assert run(["sweep", *specs, f"src:{tree}@v6.11", "--case", "pipe"]) == 0
    assert "1 kernel is to be built: v6.11" in capsys.readouterr().err
    assert run(["sweep", *specs, "--case", "pipe"]) == 0
    assert "built:" not in capsys.readouterr().err


def test_what_keeps_a_kernel_from_being_built_is_told_where_it_is_built(
    tree: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise HostError("no compiler for it")

    monkeypatch.setattr(source, "_wanted", broken)
    kernels = [parse_kernel(f"src:{tree}@{tag}") for tag in ("v6.8", "v6.9")]
    assert source.to_build(kernels, Quiet()) == []


def series(tree: Path, tmp_path: Path, *texts: str) -> str:
    """The tree at its first release with a series whose patches make fs/pipe.c each of ``texts`` in turn."""
    git(tree, "checkout", "-q", TAGS[0])
    for number, text in enumerate(texts, 1):
        (tree / "fs/pipe.c").write_text(text)
        git(tree, "commit", "-qam", f"step {number}")
    argv = ["git", "-C", str(tree), "format-patch", "--stdout", f"{TAGS[0]}..HEAD"]
    (tmp_path / "s.mbox").write_bytes(subprocess.run(argv, check=True, capture_output=True).stdout)
    return f"src:{tree}@{TAGS[0]}+{tmp_path / 's.mbox'}"


def test_a_patch_that_does_not_build_alone_is_told_and_the_rest_of_the_series_measured(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ended there, and of patch 2, 3 and 4 nothing was heard."""
    texts = [PIPE.replace("LIMIT", str(number)) for number in (11, 12, 13)]
    words = ["compare", series(tree, tmp_path, texts[0], texts[1] + "#error later\n", texts[2]), "--each"]
    assert run([*words, "--case", "pipe", "--seeds", "5", "--kvm", "off", "--json"]) == 0
    told = capsys.readouterr()
    document = json.loads(told.out)
    names = ["0/3 before the series", "1/3 step 1", "2/3 step 2", "3/3 step 3"]
    assert figures(document) == dict(zip(names, (3000.0, 3100.0, None, 3200.0), strict=True))
    (gap,) = (warning["text"] for warning in document["warnings"] if warning["code"] == "gap")
    assert gap.startswith("2/3 step 2 left out: does not build: fs/pipe.c:")
    assert gap.endswith("; its change counts with 3/3 step 3")
    assert "\n2/3 step 2 does not build: fs/pipe.c:" in f"\n{told.err}" and "; going on with the next" in told.err


@pytest.mark.full
def test_where_a_series_as_a_whole_does_not_build_what_comes_before_is_measured(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = PIPE.replace("LIMIT", "11")
    words = ["compare", series(tree, tmp_path, text, text + "#error later\n"), "--each"]
    assert run([*words, "--case", "pipe", "--seeds", "5", "--kvm", "off", "--json"]) == 2
    told = capsys.readouterr()
    figure = figures(json.loads(told.out))
    assert figure == {"0/2 before the series": 3000.0, "1/2 step 1": 3100.0, "2/2 step 2": None}
    assert "the series as a whole does not build: fs/pipe.c:" in told.err.splitlines()[-1]


def test_adding_to_a_sweep_tries_its_gaps_again_in_their_place(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    swept(capsys, "--refs", "v6.8..v6.10", "--tree", str(tree))
    assert list(figures(swept(capsys, "--add", "last", f"v6.11=src:{tree}@v6.11"))) == list(TAGS)
    git(tree, "checkout", "-q", "v6.10")
    release(tree, "v6.10", PIPE.replace("LIMIT", "2"))
    document = swept(capsys, "--add", "last")
    assert list(figures(document)) == list(TAGS)
    assert None not in figures(document).values() and not document["warnings"]
    assert run(["sweep", "--add", "last"]) == 1
    assert "--add needs a kernel to add" in capsys.readouterr().err


def test_a_kernel_that_cannot_be_fetched_is_a_gap_and_exit_code_2(
    tree: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: Any) -> None:
        raise HostError("apt could not update its index: no route to host")

    monkeypatch.setattr(debian, "find", unreachable)
    specs = [f"{tag}=src:{tree}@{tag}" for tag in ("v6.8", "v6.9")]
    assert run(["sweep", specs[0], "debian:7.9", specs[1], "--case", "pipe", "--json"]) == 2
    out, err = capsys.readouterr()
    assert figures(json.loads(out)) == {"v6.8": 3000.0, "7.9": None, "v6.9": 3100.0}
    last = err.splitlines()[-1]
    assert last.startswith("kdelta: left out: 7.9: apt could not update") and "tries again" in last


def test_a_sweep_of_which_one_kernel_is_left_ends_with_the_reason(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    specs = [f"{tag}=src:{tree}@{tag}" for tag in ("v6.8", "v6.10")]
    assert run(["sweep", *specs, "--case", "pipe", "-q"]) == 2
    err = capsys.readouterr().err
    assert "1 could be fetched or built; v6.10: does not build" in err and err.count("\n") == 1
    with Store() as store:
        assert not store.experiments()


def test_a_typo_is_refused_before_anything_is_built(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sweep", f"src:{tree}@v6.8", f"src:{tree}@v6.99", "--case", "pipe", "-q"]) == 1
    assert "no commit 'v6.99'" in capsys.readouterr().err
    assert not (tree.parent / "cache" / "build" / "products").exists()

# SPDX-License-Identifier: GPL-2.0-or-later
"""A bundle from a stranger is shown; nothing that it names is run or read until the user says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kdelta.cli.main import run
from kdelta.errors import UserError
from kdelta.experiment import imported
from kdelta.kernel.resolve import resolve
from kdelta.kernel.sources import parse_kernel
from kdelta.model import Experiment, Gap, Kernel, MachineOptions, plans
from kdelta.results import definitions
from kdelta.spec.cases import parse_case
from kdelta.spec.workloads import catalogue
from kdelta.store.store import Store
from unit.kernel import synthetic
from unit.store.store_builders import boot, experiment

CASES = tuple(parse_case("getppid", catalogue()))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's own store and cache, and a kernel of theirs."""
    monkeypatch.setenv("KDELTA_STORE", f"sqlite:///{tmp_path / 'mine.sqlite'}")
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vmlinux").write_bytes(synthetic.vmlinux())
    return tmp_path


@pytest.fixture
def kernel(home: Path) -> Kernel:
    return resolve(parse_kernel(f"{home / 'vmlinux'}"))


@pytest.fixture
def trap(home: Path) -> Iterator[str]:
    """A program that the bundle names as QEMU; whoever runs it leaves a mark."""
    program = home / "trap"
    program.write_text(f"#!/bin/sh\ntouch {home / 'sprung'}\n")
    program.chmod(0o755)
    yield str(program)
    assert not (home / "sprung").exists(), "the bundle's program was run"


def bundle(home: Path, **more: Any) -> Path:
    """What a stranger exported."""
    sent = experiment("theirs", **{"cases": CASES, "blocks": 2, **more})
    path = home / "theirs.kdelta"
    with Store(f"sqlite:///{home / 'theirs.sqlite'}") as store:
        store.create(replace(sent, imported=False))
        if sent.kernels:
            store.save_boot("theirs", replace(boot(0, 0), runs=()))
        store.export("theirs", path)
    return path


def taken_in(home: Path, **more: Any) -> Experiment:
    assert run(["import", str(bundle(home, **more))]) == 0
    with Store() as store:
        return store.experiment("theirs")


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert run(list(words)) == 1
    (said,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("kdelta: ")]
    return said


def test_it_is_not_resumed_as_it_is(home: Path, trap: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert taken_in(home, machine=MachineOptions(qemu=trap)).imported
    for words in (["resume", "theirs"], ["resume", "theirs", "--decide"]):
        said = refused(capsys, *words)
        assert "was imported" in said and "--kernel LABEL=KERNEL" in said and "--trust" in said


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (plans.Calibrate(), ["calibrate", "--resume", "theirs"]),
        (
            plans.Bisect(tree="/theirs", good="a" * 40, bad="b" * 40, metric="ns_per_op", max_boots=20),
            ["bisect", "--resume", "theirs"],
        ),
        (plans.Sweep(), ["sweep", "--add", "theirs", "debian:6.12"]),
    ],
)
def test_no_other_command_goes_on_with_it(
    home: Path, plan: plans.Plan, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    gap = Gap(label="x", spec="src:/theirs", why="", by_host=True)
    sent = experiment(annotations=replace(experiment().annotations, gaps=(gap,)))
    mode = "exact" if isinstance(plan, plans.Sweep) else "timed"
    taken_in(home, plan=plan, mode=mode, annotations=sent.annotations)
    assert "was imported" in refused(capsys, *words)


def test_its_folders_are_not_read_for_its_report(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = home / "theirs"
    folder.mkdir()
    (folder / "broken.c").write_text("")
    (folder / "broken.toml").write_text("no toml at all [")
    found = taken_in(home, folders=(str(folder),), definitions={})
    with pytest.raises(UserError, match="broken"):
        definitions.of(replace(found, imported=False))
    assert "getppid" in definitions.of(found)
    assert run(["report", "theirs"]) == 0
    assert "Imported: measured elsewhere" in capsys.readouterr().out


def test_a_bundle_cannot_say_that_it_is_not_imported(home: Path) -> None:
    taken_in(home)
    with Store() as store:
        again = store.annotate("theirs", lambda known: known)
        assert again.imported and store.experiment("theirs").imported
        assert store.import_(home / "theirs.kdelta").created is False
        assert store.experiment("theirs").imported


def test_ones_own_stays_ones_own_after_an_import_over_it(home: Path) -> None:
    path = bundle(home)
    with Store() as store:
        store.create(experiment("theirs", cases=CASES, blocks=2))
        assert not store.import_(path).created
        assert not store.experiment("theirs").imported


def test_own_kernels_take_the_place_of_its_paths(home: Path, kernel: Kernel, trap: str) -> None:
    named = [replace(kernel, label=x, image_path="/theirs", vmlinux_path="/theirs", cmdline="quiet") for x in "ab"]
    sent = taken_in(home, kernels=tuple(named), machine=MachineOptions(qemu=trap), folders=("/theirs",))
    with Store() as store:
        own = [replace(kernel, label=x) for x in "ab"]
        mine = store.vouch("theirs", lambda stored: imported.with_own(stored, own))
        assert mine == store.experiment("theirs") and not mine.imported
    assert [one.image_path for one in mine.kernels] == [kernel.image_path] * 2
    assert [(one.label, one.cmdline) for one in mine.kernels] == [("a", "quiet"), ("b", "quiet")]
    assert (mine.machine.qemu, mine.folders) == ("", ())
    assert "/theirs" not in str(mine) and sent.machine.qemu == trap


@pytest.mark.parametrize(
    ("change", "label", "said"),
    [
        ({"image_sha256": "00" * 32}, "k", "is another image"),
        ({"cmdline": "quiet"}, "k", "was measured with the command line 'quiet'"),
        ({}, "other", "has the kernels k"),
    ],
)
def test_own_kernels_have_to_be_the_same(
    home: Path, kernel: Kernel, change: dict[str, Any], label: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    taken_in(home, kernels=(replace(kernel, label="k", **change),))
    text = f'{label}={home / "vmlinux"},cmdline="nokaslr"' if "cmdline" in change else f"{label}={home / 'vmlinux'}"
    assert said in refused(capsys, "resume", "theirs", "--kernel", text)
    with Store() as store:
        assert store.experiment("theirs").imported


def test_all_its_kernels_are_needed(home: Path, kernel: Kernel, capsys: pytest.CaptureFixture[str]) -> None:
    taken_in(home, kernels=tuple(replace(kernel, label=x) for x in "ab"))
    assert "needs --kernel b=KERNEL too" in refused(capsys, "resume", "--kernel", f"a={home / 'vmlinux'}")
    assert "say which kernel" in refused(capsys, "resume", "--kernel", str(home / "vmlinux"))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"machine": MachineOptions(native=True)}, "it measures a machine itself"),
        ({"cases": (replace(CASES[0], workload="wis/theirs"),), "folders": ("/theirs",)}, "compiled from /theirs"),
    ],
)
def test_own_kernels_vouch_for_nothing_else(
    home: Path, kernel: Kernel, more: dict[str, Any], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    taken_in(home, kernels=(replace(kernel, label="k"),), **more)
    assert said in refused(capsys, "resume", "theirs", "--kernel", f"k={home / 'vmlinux'}")


def test_who_trusts_it_gets_it_as_it_is(home: Path, kernel: Kernel, capsys: pytest.CaptureFixture[str]) -> None:
    Path(kernel.image_path).write_bytes(b"another kernel")
    taken_in(home, kernels=(replace(kernel, label="k", spec="/nowhere"),), plan=plans.Run())
    assert "has changed" in refused(capsys, "resume", "theirs", "--trust")  # gone on with: its image is looked at
    with Store() as store:
        assert not store.experiment("theirs").imported
    assert "is your own: leave out --trust" in refused(capsys, "resume", "theirs", "--trust")
    assert "exclude each other" in refused(capsys, "resume", "theirs", "--trust", "--kernel", "k=x")

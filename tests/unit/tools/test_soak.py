# SPDX-License-Identifier: GPL-2.0-or-later
"""make soak: disjoint seeds, five against five others by the users' engine, pieces kept, false calls counted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

import soak
from kdelta.attribution.exact import Names
from kdelta.experiment.measure import Measuring
from kdelta.model import Effort, Experiment, PlannedBoot, RunResult, Series, plans
from kdelta.spec.suites import suites
from kdelta.store.store import Store
from unit.report.report_samples import cell
from unit.store.store_builders import boot, experiment, run

MADE = "soak 0123456789abcdef"
CASES = experiment("x").cases


def counted(case: int, count: float) -> RunResult:
    series = Series(metric="instructions", unit="instructions/op", better="lower", values=(count, count))
    return run(case, series=(series,), histograms={}, profile=None)


def stored(store: Store, name: str, counts: Sequence[tuple[float, ...]], note: str = MADE) -> None:
    """A whole piece: the counts of its cases under each of ten seeds."""
    piece = soak.Piece("debian:6.12", "syscalls", int(name[1:]))
    asked = experiment(name, mode="exact", plan=plans.Run(), blocks=10, looks=())
    store.create(replace(asked, kernels=asked.kernels[:1], command=" ".join(["kdelta", *piece.command])))
    for block, row in enumerate(counts):
        store.save_boot(name, boot(block, 0, runs=tuple(counted(case, count) for case, count in enumerate(row))))
    store.note(name, note)


def _measuring(asked: Experiment) -> Measuring:
    effort = {index: Effort() for index in range(len(asked.cases))}
    nothing: dict[str, Path] = {}
    return Measuring(
        experiment=asked, efforts=effort, exact_ops=dict.fromkeys(effort, 1), metrics={}, data=nothing, own=nothing,
        programs=nothing, trees=(), names=lambda kernel: Names(),
    )  # fmt: skip


def test_no_seed_is_in_two_pieces() -> None:
    seen: set[int] = set()
    for number in range(1, 8):
        words = soak.Piece("debian:6.12", "syscalls", number).command
        boots, seed = (int(words[words.index(option) + 1]) for option in ("--boots", "--seed"))
        asked = experiment("e", mode="exact", plan=plans.Run(), seed=seed)
        places = [PlannedBoot(block=block, slot=0, kernel=0, mitigations="default") for block in range(boots)]
        seeds = {_measuring(asked).work(place).jobs.seed for place in places}
        assert len(seeds) == 2 * soak.SEEDS and not seeds & seen
        seen |= seeds


def test_five_seeds_stand_against_five_others(tmp_path: Path) -> None:
    same = [(1000.0, 5000.0 + block % 5) for block in range(10)]
    moved = [(1000.0 + 10 * (block >= 5), 500.0 + 40 * (block % 3)) for block in range(10)]
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        stored(store, "e1", same)
        stored(store, "e2", moved)
        stored(store, "e3", moved, note="soak of another guest")
        judged: soak.Judged = {}
        rows, called = soak.gathered(store, MADE, judged)
        assert set(judged) == {"e1", "e2"}
        judged["e2"] = judged["e1"]
        assert soak.gathered(store, MADE, judged)[1] == [], "a piece is judged once, however many follow"
    (row,) = rows
    assert (row.suite, row.cases, row.compared, row.false) == ("syscalls", 2, 4, 1)
    assert (row.words["same"], row.words["more seeds"], row.words["regressed"]) == (2, 1, 1)
    assert len(called) == 1 and "instructions: regressed +1.000 %" in called[0] and called[0].endswith("(e2)")
    assert "4 comparisons, 1 false calls: at most 75 % (95 %)." in soak.table(rows, called)


@pytest.mark.parametrize(
    ("false", "compared", "percent"), [(0, 1000, 0.3), (0, 2, 100.0), (0, 0, 100.0), (1, 1000, 0.4735), (3, 3, 100.0)]
)
def test_the_bound_is_the_rule_of_three_or_exact(false: int, compared: int, percent: float) -> None:
    assert soak.at_most_percent(false, compared) == pytest.approx(percent, abs=1e-3)


def test_a_whole_piece_is_not_measured_again_and_a_cut_one_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed: list[list[str]] = []

    def fails(words: Sequence[str]) -> int:
        typed.append(list(words))
        return 1

    monkeypatch.setattr("kdelta.cli.main.run", fails)
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        stored(store, "e1", [(1.0, 1.0)] * 10)
        stored(store, "e2", [(1.0, 1.0)] * 4, note="")
        soak.measured(store, soak.Piece("debian:6.12", "syscalls", 1), MADE)
        assert not typed
        for number in (2, 3):
            with pytest.raises(SystemExit):
                soak.measured(store, soak.Piece("debian:6.12", "syscalls", number), MADE)
        with pytest.raises(SystemExit):  # whole, of another guest: made again
            soak.measured(store, soak.Piece("debian:6.12", "syscalls", 1), "soak of another")
    assert [words[:2] for words in typed] == [["resume", "e2"], ["run", "debian:6.12"], ["run", "debian:6.12"]]


def test_suites_that_lack_a_program_or_a_directory_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None if name == "fio" else f"/usr/bin/{name}")
    names = soak.at_hand(suites(), "")
    assert {"patches", "syscalls", "stress-ng"} <= set(names) and not {"fio", "wis", "contention"} & set(names)
    assert "wis" in soak.at_hand(suites(), "will-it-scale/tests")


def test_guests_of_several_cpus_run_their_suite_and_are_told_apart() -> None:
    assert soak.at_hand(suites(), "", 8) == ["contention"]
    found = soak.pieces("debian:6.12", "contention", 2, "", 8)
    cases = [case for piece in found for case in piece.cases]
    assert len(cases) > 30 and len(set(cases)) == len(cases)
    assert max(len(piece.cases) for piece in found) == soak.TOGETHER < len(cases) / 5, "one may be cut off"
    words = found[0].command
    assert words[words.index("--smp") + 1] == "8" and words.count("--case") == soak.TOGETHER
    assert words[words.index("--case") + 1] == found[0].cases[0]
    (whole,) = soak.pieces("debian:6.12", "contention", 2, "", 1)
    assert "--smp" not in whole.command and "--suite" in whole.command
    row = replace(cell("contention/dup_threads", "transfers"), primary=True)
    assert soak.suite_of(words, row) == "contention, 8 CPUs"
    assert soak.suite_of(words, replace(row, primary=False)) == "contention, 8 CPUs, single lines"

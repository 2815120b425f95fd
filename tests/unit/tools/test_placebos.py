# SPDX-License-Identifier: GPL-2.0-or-later
"""What the placebos are made of: patches that apply and change nothing that was there, pairs judged one by one."""

from __future__ import annotations

from pathlib import Path

import pytest

import placebos
from kdelta.kernel import mail, patch
from kdelta.model import Experiment, RunResult, Series, plans
from kdelta.store.store import Store
from unit.store.store_builders import boot, experiment, kernel, run

TEXT = "".join(f"int line_{n};\n" for n in range(40))


def counted(case: int, count: float) -> RunResult:
    series = Series(metric="instructions", unit="instructions/op", better="lower", values=(count, count))
    return run(case, series=(series,), histograms={}, profile=None)


def test_padding_only_adds_to_the_end_and_each_differs() -> None:
    seen = set()
    for number, (name, kind) in enumerate(placebos.PADDED):
        (step,) = mail.steps(placebos.padding(TEXT, name, kind, number).encode(), "p.patch")
        applied = patch.apply_series([(step, False)], {name: TEXT}.get)
        text = applied.files[name].text or ""
        assert text.startswith(TEXT) and f"{kind} kdelta_placebo_{number}(void)\n{{\n\tasm" in text
        seen.add(text)
    assert len(seen) == 10


def test_thirty_placebos_of_debians_kernels_are_all_different() -> None:
    lines = {line for name in placebos.KERNELS for line in placebos.command_lines(name).placebos}
    assert len(lines) + len(placebos.KERNELS) == 30, "and an initramfs for each"


def three_kernels(store: Store) -> Experiment:
    """A base, a placebo that counts the same in both cases, and one that counts 1 % more in the first."""
    asked = experiment("e", mode="exact", plan=plans.Compare(), kernels=tuple(map(kernel, "abc")), blocks=5, looks=(5,))
    store.create(asked)
    for block in range(5):
        for slot, count in enumerate((1000.0, 1000.0, 1010.0)):
            store.save_boot("e", boot(block, slot, runs=(counted(0, count), counted(1, 5.0))))
    return asked


def test_a_placebo_is_judged_against_the_base_alone(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        asked = three_kernels(store)
        words = {k: [row.verdict for row in placebos.judged(store, asked, asked, k)] for k in (1, 2)}
    assert words == {1: ["same", "same"], 2: ["regressed", "same"]}


def test_programs_have_a_row_each_and_a_column_for_each_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        asked = three_kernels(store)
        words: list[tuple[str, ...]] = []

        def found(_: Store, command: list[str], seeds: int, cases: tuple[str, ...]) -> Experiment:
            words.append((*command, str(seeds), *cases))
            return asked

        monkeypatch.setattr(placebos, "measured", found)
        placebos.programs(store, ["debian:6.12"], [["a/*"], ["b/c"]], 2, 20)
    assert [one[1] for one in words] == ["base=debian:6.12"] * 2 and [one[-1] for one in words] == ["a/*", "b/c"]
    rows = capsys.readouterr().out.splitlines()
    assert rows[0] == "| program | debian:6.12 |" and len(rows) == 4
    assert rows[2].endswith("| 2 regressed, 2 same; +1.00 %, spread 0.00 % |")
    assert rows[3].endswith("| 4 same; +0.00 %, spread 0.00 % |")

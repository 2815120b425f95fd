# SPDX-License-Identifier: GPL-2.0-or-later
"""A scaling that was killed goes on with the experiments that it began, one for each number of CPUs."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.cli import _scaled, common
from kdelta.model import Case, Experiment, Kernel, MachineOptions, plans
from kdelta.store.store import Store

KERNEL = Kernel(label="6.12", spec="debian:6.12", release="6.12", image_path="/i", image_sha256="a")


def templates(blocks: int) -> list[Experiment]:
    one = Experiment(
        id="", plan=plans.Run(), mode="exact", kernels=(KERNEL,), cases=(Case(workload="pipe"),), blocks=blocks
    )
    return [replace(one, machine=MachineOptions(smp=cpus)) for cpus in (1, 2, 4)]


def ids(store: Store, wanted: list[Experiment]) -> list[str]:
    return [one.id for one in _scaled.begun(store, wanted)]


@pytest.mark.parametrize("blocks", [0, 1])  # all boots of none are done
def test_the_same_command_goes_on_with_what_it_began(tmp_path: Path, blocks: int) -> None:
    """Begun anew it counted all again, and kdelta resume had the guests of one number of CPUs alone."""
    wanted, made = templates(blocks), []
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        assert ids(store, wanted) == []
        store.create(replace(wanted[0], id="of-another", command="kdelta run", created_at="2026-11-29T10:00:00+00:00"))
        for number, one in enumerate(wanted):
            made.append(f"x{number}")
            when = f"2026-11-29T10:00:0{number + 1}+00:00"
            store.create(replace(one, id=made[-1], command=common.command_line(), created_at=when))
            whole = number == 2 and not blocks
            assert ids(store, wanted) == ([] if whole else made)
        assert ids(store, [replace(one, kernels=(replace(KERNEL, image_sha256="b"),)) for one in wanted]) == []
        assert ids(store, [replace(one, folders=("/cases",)) for one in wanted]) == []
        assert ids(store, wanted[:2]) == []
        assert ids(store, wanted[1:]) == ([] if not blocks else made[1:])

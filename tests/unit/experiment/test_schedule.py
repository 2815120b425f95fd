# SPDX-License-Identifier: GPL-2.0-or-later
"""The schedule of blocks."""

from hypothesis import given
from hypothesis import strategies as st

from kdelta.experiment import schedule
from kdelta.model import Case, Experiment, Kernel, plans


def experiment(kernels: int, seed: int, blocks: int = 8, mode: str = "timed") -> Experiment:
    return Experiment(
        id="x",
        plan=plans.Compare(),
        mode=mode,  # type: ignore[arg-type]
        kernels=tuple(
            Kernel(label=f"k{i}", spec="s", release="6", image_path="p", image_sha256="0") for i in range(kernels)
        ),
        cases=(Case(workload="getppid"),),
        seed=seed,
        blocks=blocks,
    )


@given(st.integers(1, 6), st.integers(0, 2**31 - 1))
def test_every_block_boots_every_kernel_once(kernels: int, seed: int) -> None:
    for block in schedule.blocks(experiment(kernels, seed)):
        assert sorted(boot.kernel for boot in block) == list(range(kernels))
        assert [boot.slot for boot in block] == list(range(kernels))


@given(st.integers(0, 2**31 - 1))
def test_two_kernels_are_balanced_in_each_pair_of_blocks(seed: int) -> None:
    blocks = list(schedule.blocks(experiment(2, seed)))
    for first, second in zip(blocks[::2], blocks[1::2], strict=True):
        assert [b.kernel for b in first] == [b.kernel for b in reversed(second)]


def test_the_same_seed_gives_the_same_plan_and_seeds_differ() -> None:
    plans = [[[b.kernel for b in block] for block in schedule.blocks(experiment(2, seed, 40))] for seed in (1, 1, 2)]
    assert plans[0] == plans[1] != plans[2]


def test_exact_blocks_are_not_shuffled() -> None:
    for block in schedule.blocks(experiment(3, 7, mode="exact")):
        assert [boot.kernel for boot in block] == [0, 1, 2]

# SPDX-License-Identifier: GPL-2.0-or-later
"""What two experiments have in common, and what of their circumstances differs."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kdelta.errors import UserError
from kdelta.model import Case, MachineOptions
from kdelta.results.agreement.common import Measured, differences, shared
from kdelta.results.agreement.types import Fact
from unit.store.store_builders import experiment, kernel

OLD, NEW = kernel("6.1", image_sha256="a" * 64), kernel("7.0", image_sha256="b" * 64)
PIPE, LOOKUP = Case(workload="pipe"), Case(workload="path_lookup")
HERE = experiment(kernels=(OLD, NEW), cases=(PIPE, LOOKUP))


def test_kernels_are_the_same_by_image_and_command_line_whatever_their_label() -> None:
    there = replace(HERE, kernels=(replace(NEW, label="x"), replace(OLD, cmdline="quiet")), cases=(LOOKUP,))
    common = shared(HERE, there)
    assert (common.kernels, common.cases) == ([(1, 0)], [(1, 0)])
    assert common.only_here == (f"kernel 6.1 (image {'a' * 12})", "case pipe")
    assert common.only_there == (f"kernel 6.1 (image {'a' * 12}, cmdline quiet)",)


def test_twice_the_same_kernel_is_two_kernels() -> None:
    twice = replace(HERE, kernels=(replace(OLD, label="A"), replace(OLD, label="B")))
    assert shared(twice, twice).kernels == [(0, 0), (1, 1)]


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ({"kernels": (kernel("x", image_sha256="c" * 64),)}, "no kernel"),
        ({"cases": (replace(PIPE, params={"writers": "2"}),)}, "no case"),
        ({"mitigations": ("off",)}, "no mitigations"),
    ],
)
def test_without_anything_in_common_one_line_says_what_each_has(other: dict[str, object], what: str) -> None:
    with pytest.raises(UserError, match=f"^--against: {what}.* in common: first has .*; first has ") as error:
        shared(HERE, replace(HERE, **other))
    assert "\n" not in str(error.value)


def test_two_cases_of_one_name_are_told_apart() -> None:
    """\"No case in common: one has t; the other has t\" was said of a program whose files had changed."""
    t = Case(workload="program", label="t", params={"pack": "0c6b"})
    here, there = replace(HERE, cases=(t, PIPE)), replace(HERE, cases=(replace(t, params={"pack": "4c4c"}), PIPE))
    assert shared(here, there).only_here == shared(here, there).only_there == ("case t (with other files)",)
    other = replace(PIPE, label="t", params={"writers": "2"})
    with pytest.raises(UserError, match=r"has t \(with other files, workload, writers\)$"):
        shared(replace(here, cases=(t,)), replace(here, cases=(other,)))


def test_only_what_differs_is_told() -> None:
    here = Measured(experiment=HERE, boots=(), numbers=(), argv=("qemu", "-cpu", "max", "-plugin", "/x/one.so,out=/y"))
    there = Measured(experiment=replace(HERE, seed=9), boots=(), numbers=(), argv=("qemu", "-cpu", "max"))
    assert differences(here, there) == (
        Fact(what="counting plugin", here="one.so", there=""),
        Fact(what="seed", here=str(HERE.seed), there="9"),
    )
    assert differences(here, here) == ()


def test_guests_of_several_cpus_are_told_in_the_plural() -> None:
    alone, four = (
        Measured(experiment=replace(HERE, machine=MachineOptions(smp=smp)), boots=(), numbers=()) for smp in (1, 4)
    )
    assert differences(alone, four) == (Fact(what="guest", here="1 CPU, 1024 MiB", there="4 CPUs, 1024 MiB"),)

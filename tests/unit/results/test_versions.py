# SPDX-License-Identifier: GPL-2.0-or-later
"""Versions in order, the absent ones among them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kdelta.model import Annotations, Experiment, Gap, Kernel, plans
from kdelta.report.sentences import sentence
from kdelta.results import versions
from kdelta.results.versions import Version
from kdelta.results.warnings import CompilerChange, LeftOut


def kernel(label: str) -> Kernel:
    return Kernel(label=label, spec="", release=label, image_path="", image_sha256=label)


def absent(label: str, why: str = "does not build: x.c:1: error", place: int = 0) -> Gap:
    return Gap(label=label, spec="src:./linux@v6.9+-a.patch", why=why, by_host=False, place=place)


def experiment(line: list[Version]) -> Experiment:
    kernels = tuple(one for one in line if isinstance(one, Kernel))
    told = Annotations(gaps=versions.gaps_in(line))
    return Experiment(id="s", plan=plans.Sweep(), mode="exact", kernels=kernels, cases=(), annotations=told)


@given(st.lists(st.booleans(), max_size=12))
def test_what_was_asked_for_comes_back_in_order(there: list[bool]) -> None:
    line: list[Version] = [kernel(f"6.{i}") if yes else absent(f"6.{i}") for i, yes in enumerate(there)]
    assert [one.label for one in versions.versions_of(experiment(line))] == [one.label for one in line]


def test_an_experiment_without_gaps_is_its_kernels() -> None:
    line: list[Version] = [kernel("6.1"), kernel("6.6")]
    assert versions.gaps_in(line) == ()
    assert versions.versions_of(experiment(line)) == tuple(line)


def test_places_that_cannot_be_are_the_nearest_that_can() -> None:
    found = replace(experiment([kernel("6.1")]), annotations=Annotations(gaps=(absent("a", place=-5),)))
    assert [one.label for one in versions.versions_of(found)] == ["a", "6.1"]
    found = replace(found, annotations=Annotations(gaps=(absent("a", place=99),)))
    assert [one.label for one in versions.versions_of(found)] == ["6.1", "a"]


def test_an_absent_version_stays_behind_its_kernel_when_kernels_are_sorted() -> None:
    line: list[Version] = [absent("a"), kernel("6.1"), absent("b"), kernel("6.12"), kernel("6.6"), absent("c")]
    assert [one.label for one in versions.oldest_first(line)] == ["a", "6.1", "b", "6.6", "c", "6.12"]


def test_absent_versions_are_told_once_per_reason() -> None:
    line: list[Version] = [kernel("6.1"), absent("6.6"), absent("6.9"), absent("7.0", "apt could not download it")]
    assert versions.remarks(experiment(line)) == (
        LeftOut(("6.6", "6.9"), "does not build: x.c:1: error"),
        LeftOut(("7.0",), "apt could not download it"),
    )


def test_of_a_patch_that_does_not_build_alone_it_is_told_with_which_it_counts() -> None:
    gaps = [replace(absent(f"{i}/4 x"), spec=f"src:./linux+a.mbox#{i}") for i in (1, 2, 4)]
    assert versions.remarks(experiment([kernel("0/4"), *gaps[:2], kernel("3/4 y"), gaps[2]])) == (
        LeftOut(("1/4 x", "2/4 x"), "does not build: x.c:1: error", "3/4 y"),
        LeftOut(("4/4 x",), "does not build: x.c:1: error"),
    )


def test_a_change_of_compiler_between_neighbours_is_said() -> None:
    line: list[Version] = [kernel(f"6.{i}") for i in range(4)]
    one = replace(experiment(line), annotations=Annotations(compilers=("gcc 14.2.0", "", "gcc 14.2.0", "gcc 16.2.0")))
    (warning,) = versions.remarks(one)
    assert warning == CompilerChange(last="6.2", last_compiler="gcc 14.2.0", first="6.3", first_compiler="gcc 16.2.0")
    assert versions.remarks(experiment(line)) == ()


def test_in_a_comparison_each_compiler_is_held_against_that_of_the_baseline() -> None:
    """debian:6.1 (gcc 12) against debian:6.12 (gcc 14) had no word of it; the sweep of both had."""
    line: list[Version] = [kernel(f"6.{i}") for i in range(4)]
    plain = replace(experiment(line), plan=plans.Compare())
    built = ("gcc 12.2.0", "gcc 14.2.0", "", "gcc 12.2.0")
    (warning,) = versions.remarks(replace(plain, annotations=Annotations(compilers=built)))
    assert warning == CompilerChange("6.0", "gcc 12.2.0", "6.1", "gcc 14.2.0", steps=False)
    told = "6.1 was built by gcc 14.2.0, 6.0 by gcc 12.2.0: part of each effect may be the compiler's"
    assert sentence(warning) == told
    assert versions.remarks(replace(plain, annotations=Annotations(compilers=("", *built[1:])))) == ()

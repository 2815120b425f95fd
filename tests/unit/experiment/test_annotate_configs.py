# SPDX-License-Identifier: GPL-2.0-or-later
"""What is kept of configs of kernels that others built: how they differ, or that it is not known."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.experiment import annotate
from kdelta.kernel import kconfig, source
from kdelta.model import Quiet, Remark
from kdelta.model.experiment import UNLIKE
from kdelta.store.store import Store
from unit.store.store_builders import experiment, kernel


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as opened:
        yield opened


def test_configs_of_one_version_are_told_apart_before_its_code(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two images of one source, one for debugging: its functions were blamed, and of its options no word was said."""
    options = ("CC_HAS_ASM_GOTO", "CC_VERSION_TEXT", "DEBUG_LIST", "KCOV", "LD_VERSION", "PROVE_LOCKING")
    few = ("CONFIG_A_DRIVER: m -> n", *(f"CONFIG_{name}: n -> y" for name in options))
    many = tuple(f"CONFIG_DRIVER_{number}: n -> y" for number in range(1000))
    every = "CONFIG_PROVE_LOCKING: n -> y, CONFIG_KCOV: n -> y, CONFIG_DEBUG_LIST: n -> y"
    for release, hz, lines, about, told in (
        ("7.3.4-debug", "100", few, UNLIKE, f": {every}"),
        ("7.3.4-cloud", "100", many, UNLIKE, " in 1,000 options, among them: CONFIG_HZ: 250 -> 100"),
        ("7.3.4-other", "250", many, UNLIKE, " in 1,000 options"),
        ("7.3.5", "100", few, "config", " in what moves figures: CONFIG_HZ: 250 -> 100"),
    ):
        monkeypatch.setattr(source, "config_differences", lambda *_, lines=lines: lines)
        monkeypatch.setattr(source, "options", lambda _: {"HZ": "250"})
        first = kernel("a", spec="./a", release="7.3.4+", config={"HZ": "250"})
        last = kernel("b", spec="./b", release=release, config={"HZ": hz})
        made = experiment(release, kernels=(first, last))
        store.create(made)
        (note,) = annotate.note_code(store, made, Quiet()).annotations.notes
        assert note == Remark(about, f"b: its config differs from that of a{told}")


def test_images_whose_configs_nobody_knows_are_told_to_be_so(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A defconfig has no IKCONFIG: that nothing was said of options looked as if none differed."""
    monkeypatch.setattr(source, "options", lambda one: {"HZ": "250"} if one.label == "a" else {})
    images_of = (
        kernel(name, spec=spec) for name, spec in (("a", "./a"), ("b", "./b"), ("c", "debian:6.12"), ("d", "d"))
    )
    kernels = tuple(replace(one, image_sha256=one.label) for one in images_of)
    made = experiment("first", kernels=kernels)
    store.create(made)
    (note,) = annotate.note_code(store, made, Quiet()).annotations.notes
    assert note.about == "config" and note.text.startswith("b, d: no config is known (by CONFIG_IKCONFIG")
    same = experiment("same", kernels=tuple(replace(one, image_sha256="a") for one in kernels))
    store.create(same)
    assert not annotate.note_code(store, same, Quiet()).annotations.notes


def test_of_configs_of_two_builds_what_matters_is_told_first(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the alphabet BINARY_PRINTF and what else PREEMPT_RT brings filled the line, and itself was not on it."""
    brought = ("ARCH_HAS_LAZY", "BINARY_PRINTF", "CC_HAS_UBSAN", "DEBUG_SG", "PREEMPTION", "PREEMPT_COUNT")
    options = (*brought, "KASAN", "PREEMPT_RT", "ZSWAP")
    lines = tuple(f"CONFIG_{name}: n -> y" for name in sorted(options))
    monkeypatch.setattr(source, "config_differences", lambda *_: lines)
    for config, told in (
        ("", "PREEMPT_RT KASAN BINARY_PRINTF DEBUG_SG PREEMPTION"),
        (',config="ZSWAP=y PREEMPT_RT=y"', "PREEMPT_RT ZSWAP KASAN BINARY_PRINTF DEBUG_SG"),
        (",config=gone", "PREEMPT_RT KASAN BINARY_PRINTF DEBUG_SG PREEMPTION"),
    ):
        kernels = (kernel("a", spec="src:.", release="7.0"), kernel("b", spec=f"src:.{config}", release="7.0"))
        (line,) = annotate._configs(*kernels)
        first = ", ".join(f"CONFIG_{name}: n -> y" for name in told.split())
        assert line == f"b: its config differs from that of a: {first} and 4 more"
    moving = ["PREEMPT_NONE", "PREEMPT_VOLUNTARY", "NO_HZ_FULL", "KFENCE", "KASAN", "SMP", "SLUB_TINY"]
    lines = tuple(f"CONFIG_{name}: n -> y" for name in (*options, *moving))
    assert "CONFIG_SLUB_TINY: n -> y and 7 more" in annotate._configs(*kernels)[0], "all that is known to move figures"


def test_the_kernel_with_the_same_config_is_told_with_that(store: Store) -> None:
    """Of one built by config="SMP=n" was said that src:debian:7.3, with SMP, has its config."""
    here = kernel("a", spec='src:debian:7.3+x.patch,config="SMP=n"', release="7.3")
    made = experiment(kernels=(here, kernel("b", spec="debian:7.3", release="7.3-amd64")))
    (note,) = annotate._of_builders(made)
    assert note.text.endswith('; src:debian:7.3,config="SMP=n" has its source and the config of a')


def test_what_moves_figures_is_told_by_the_whole_config(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a kernel without memory cgroups, mitigations and stack protector preemption alone was named.

    What was stored with a kernel by an older kdelta lacks the options that are looked for today.
    """
    options = {"a": {"MMU": "y", "MEMCG": "y", "CPU_MITIGATIONS": "y"}, "b": {"MMU": "y", "STACKPROTECTOR": "y"}}
    options["b"]["CPU_MITIGATIONS"] = "n"
    monkeypatch.setattr(source, "options", lambda one: options[one.label])
    made = experiment("old", kernels=(kernel("a", release="6.12"), kernel("b", release="7.0")))
    told = [one.text for one in annotate._of_figures(made)]
    every = "CONFIG_CPU_MITIGATIONS: y -> n, CONFIG_STACKPROTECTOR: n -> y, CONFIG_MEMCG: y -> n"
    assert told == [f"b: its config differs from that of a in what moves figures: {every}"]


@pytest.mark.parametrize(("older", "told"), [("y", ()), ("n", ("CONFIG_CPU_MITIGATIONS: n -> y",)), (None, ())])
def test_an_option_of_another_name_before_is_the_same_one(older: str | None, told: tuple[str, ...]) -> None:
    """6.6 mitigates as 6.12 does, and its option is SPECULATION_MITIGATIONS; 5.10 does so without any."""
    before = {"MMU": "y"} | ({"SPECULATION_MITIGATIONS": older} if older else {})
    after = {"MMU": "y", "CPU_MITIGATIONS": "y"}
    assert kconfig.figures_differ(kconfig.facts_of(before), kconfig.facts_of(after)) == told

# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernels that a recipe is checked on, and what this machine can measure of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kdelta.cli import _kernels, _mode, common
from kdelta.errors import UserError

if TYPE_CHECKING:
    from kdelta.model import Kernel, Mode, Progress
    from kdelta.spec.kernels import KernelSpec
    from kdelta.spec.recipes import Recipe, Setting

    Sides = Mapping[str, KernelSpec]  # ``baseline`` and ``patched``, where there is one


@dataclass(frozen=True, kw_only=True)
class SettingArgs(common.MachineArgs):
    """The options that say which kernels and how."""

    patches: tuple[str, ...]
    tree: str | None
    baseline: str | None
    patched: str | None
    timed: bool
    exact: bool


def sides(recipe: Recipe, asked: SettingArgs) -> Sides:
    """The kernels at hand by side: ``baseline``, ``patched``; a side that only a patch could make is missing."""
    kernels = recipe.kernels
    if not kernels.patch and (asked.patches or asked.tree):
        raise UserError(f"recipe {recipe.name} takes no patch: name its kernels with --baseline and --patched")
    tree = asked.tree or kernels.tree
    if tree and not tree.startswith("src:"):
        raise UserError(f"--tree {tree!r}: a source is written src:TREE or src:debian:VERSION")
    found: dict[str, str] = {}
    baseline = asked.baseline or kernels.baseline or (tree if asked.patches or asked.patched else "")
    patched = asked.patched or kernels.patched or (f"{tree}+{'+'.join(asked.patches)}" if asked.patches else "")
    if baseline:
        found["baseline"] = baseline
    if patched:
        found["patched"] = patched
    specs = dict(zip(found, _kernels.named(list(found.values())), strict=True))
    _kernels.look(list(specs.values()))
    return specs


def _modes(asked: SettingArgs) -> tuple[Mode, ...]:
    """The modes that may come out of ``of_machine``."""
    if asked.timed or asked.exact:
        return ("timed",) if asked.timed else ("exact",)
    return ("exact",) if asked.kvm == "off" or not os.access("/dev/kvm", os.R_OK | os.W_OK) else ("timed", "exact")


def hopeless(recipe: Recipe, asked: SettingArgs, specs: Sides) -> list[str]:
    """For each claim why no kernel need be fetched for it, "" where one must."""
    from kdelta.spec import recipes

    found = []
    for claim in recipe.claims:
        whys = []
        for mode in _modes(asked):
            arch = next((spec.arch for spec in specs.values()), "x86_64")
            possible = recipes.Setting(
                mode=mode,
                cores=os.cpu_count() or 1,
                smp=asked.smp,
                accel="kvm" if "timed" in _modes(asked) and asked.kvm != "off" else "tcg",
                arch=arch,  # type: ignore[arg-type]
                baseline="baseline" in specs,
                patched="patched" in specs,
                built=_built(specs),
            )
            whys.append(recipes.obstacle(claim, recipe, possible))
        found.append("" if not all(whys) else whys[0])
    return found


def _built(specs: Sides) -> bool:
    return len(specs) == 2 and all(spec.kind in ("src", "src-debian") for spec in specs.values())


def fetched(specs: Sides, progress: Progress) -> tuple[Kernel, ...]:
    """The kernels of both sides, or of the one there is.

    Raises:
        UserError: a range, or the running kernel.
    """
    kernels = _kernels.to_measure(list(specs.values()), progress)
    if len(kernels) != len(specs) or any(not kernel.image_path for kernel in kernels):
        raise UserError("a recipe compares two kernels with images: no range, and not the running one")
    return kernels


def of_machine(asked: SettingArgs, specs: Sides, kernels: tuple[Kernel, ...]) -> Setting:
    """What this machine can do with ``kernels``; may boot a trial guest."""
    from kdelta.spec import recipes

    modes, accel = _modes(asked), "tcg"
    if "timed" in modes:
        accel = _mode.accelerator(kernels, asked.kvm, asked.qemu, ())
    mode: Mode = modes[0] if len(modes) == 1 else ("timed" if accel == "kvm" else "exact")
    return recipes.Setting(
        mode=mode,
        cores=os.cpu_count() or 1,
        smp=asked.smp,
        accel=accel,  # type: ignore[arg-type]
        arch=kernels[0].arch,
        baseline="baseline" in specs,
        patched="patched" in specs,
        built=_built(specs),
    )

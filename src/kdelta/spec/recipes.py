# SPDX-License-Identifier: GPL-2.0-or-later
"""Published claims as recipes: a TOML file each, and what it takes to measure them. See docs/reference/recipes.md."""

from __future__ import annotations

import math
import re
import shlex
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from kdelta import paths
from kdelta.errors import UserError
from kdelta.model import Arch, Case, Mode
from kdelta.spec import toml
from kdelta.spec.cases import parse_case
from kdelta.spec.workloads import catalogue
from kdelta.units import Better

_ROUNDED = 0.25  # of a change: by how much a percentage may differ from the figures that it is of
_HUNK = re.compile(rb"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@", re.MULTILINE)
_COUNTED = re.compile(  # a unit of instructions, and not of instructions a second
    r"(?:[kMG]|kernel|retired|executed)?\s*(?:instructions?|insns?)\b(?!\s*(?:/|per)\s*(?:s|sec|second|cycle)\b)", re.I
)
_READ_BYTES = 1 << 20  # of a file that may be a patch
Factor = Annotated[float, Meta(ge=1.0, le=2.0)]


class Kernels(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The kernels of a recipe. With ``patch`` the patched one is ``tree`` with a patch that the user supplies."""

    baseline: str = ""  # with patch: "" is the tree without it
    patched: str = ""  # "" without patch: claims about one kernel
    patch: str = ""  # what the user must supply: its subject, where it can be had
    tree: str = ""
    why: str = ""  # how these kernels stand for the published ones


class Claim(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One published figure. ``before`` and ``after`` are in ``unit``; ``percent`` is as published where it differs.

    Compared are two kernels in ``case``; with ``from_case``, two cases on the kernel ``on``; with ``function``, the
    share of one function in all kernel instructions, in percent.
    """

    text: str
    case: str = ""
    from_case: str = ""
    on: Literal["both", "baseline", "patched"] = "both"
    function: str = ""
    selftests: str = ""  # suites that pass on both kernels alike
    metric: str = ""  # of timed mode; "" is the case's primary one
    before: float | None = None
    after: float | None = None
    percent: float | None = None
    interval_percent: tuple[float, float] | None = None  # of the change, where one was published
    unit: str = ""
    better: Better = "lower"
    same: bool = False  # the claim is that nothing changes
    same_percent: float = 1.0  # how much that leaves
    within: Factor | None = None
    exact: bool = True  # instructions can stand in for the figure
    cores: int = 1  # processors without which the claim is about something else
    arch: Arch | None = None
    pressure: str = ""
    needs: str = ""  # what cannot be had here at all


class Recipe(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A publication with its claims."""

    name: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]*$")]
    title: str
    source: str
    measured_on: str
    about: str = ""
    exact: str = ""  # what exact mode can and cannot say of it
    within: Factor = 2.0
    kernels: Kernels
    claims: Annotated[tuple[Claim, ...], Meta(min_length=1)]

    def factor(self, claim: Claim) -> float:
        """By how much a measured size may differ from the claimed one."""
        return claim.within or self.within


class Setting(Struct, frozen=True, kw_only=True):
    """What this machine and this call offer."""

    mode: Mode
    cores: int
    accel: Literal["kvm", "tcg"]
    arch: Arch = "x86_64"
    smp: int = 1  # CPUs of a guest: on several, exact mode counts what crosses between them
    baseline: bool = True  # there is a kernel for it
    patched: bool = True
    built: bool = False  # both are built from source


def parse(text: str, where: str) -> Recipe:
    """A recipe from its TOML text; ``[claim]`` holds what all ``[[claims]]`` have in common.

    Raises:
        UserError: naming the file and the key.
    """
    try:
        table = toml.decode(text, dict[str, Any])
        shared = table.pop("claim", {})
        table["claims"] = [{**shared, **claim} for claim in table.get("claims", [])]
        recipe = msgspec.convert(table, Recipe)
    except (ValueError, TypeError, AttributeError) as error:
        raise UserError(f"recipe {where}: {error}; see docs/reference/recipes.md") from None
    for number, claim in enumerate(recipe.claims, 1):
        if complaint := _complaint(claim):
            raise UserError(f"recipe {where}: claim {number} ({claim.text!r}): {complaint}")
    if complaint := _kernels_complaint(recipe.kernels):
        raise UserError(f"recipe {where}: kernels: {complaint}")
    return recipe


def shipped() -> list[str]:
    """The names of the recipes that kdelta ships."""
    return sorted(found.stem for found in paths.shipped("recipes").glob("*.toml"))


def load(name: str) -> Recipe:
    """A recipe by its shipped name or by its file.

    Raises:
        UserError: there is none, or it is damaged.
    """
    path = paths.expanded(name)
    if _is_patch(path):
        raise UserError(
            f"recipe {name}: it is a patch, and a recipe is a TOML file (docs/reference/recipes.md); "
            f"what the patch does, with the figures that it claims: kdelta review {shlex.quote(name)} --tree TREE"
        )
    if path.suffix != ".toml" and "/" not in name:
        names = shipped()
        if name not in names:
            raise UserError(f"recipe {name!r}: not one of {', '.join(names)}, nor a file ending in .toml")
        path = paths.shipped("recipes") / f"{name}.toml"
    try:
        text = paths.written(path)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"recipe {path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return parse(text, str(path))


def _is_patch(path: Path) -> bool:
    """Whether a file that is no TOML file holds a diff."""
    try:
        return path.suffix != ".toml" and path.is_file() and bool(_HUNK.search(path.read_bytes()[:_READ_BYTES]))
    except (OSError, ValueError):
        return False


def _kernels_complaint(kernels: Kernels) -> str:
    if kernels.patch and not kernels.tree:
        return "patch needs the tree it applies to, as in src:debian:6.12"
    if kernels.patch and kernels.patched:
        return "patch and patched cannot be combined"
    return "" if kernels.patch or kernels.baseline else "baseline is missing"


def _complaint(claim: Claim) -> str:
    """What is wrong with a claim beyond its types, or ""."""
    if not claim.needs and bool(claim.case) == bool(claim.selftests):
        return "name a case, or selftests"
    if claim.from_case and claim.on == "both":
        return "from_case compares two cases of one kernel: say on = baseline or patched"
    if claim.on != "both" and not claim.from_case:
        return "on needs from_case: a claim about one kernel compares two cases"
    if claim.from_case and claim.function:
        return "from_case and function cannot be combined"
    if complaint := _impossible(claim):
        return complaint
    if claim.needs or claim.selftests or claim.same:
        return ""
    if claim.percent is None and (claim.before is None or (claim.after is None and claim.before != 0)):
        return "give before and after, or percent"
    if unchanged(claim):
        return "its figures do not differ: say so with same = true (and same_percent, how much that leaves)"
    return _contradiction(claim)


def _impossible(claim: Claim) -> str:
    """What no publication can mean by the figures of a claim, which would be judged by the wrong sign or size."""
    percent, (low, high) = published_percent(claim), claim.interval_percent or (-math.inf, math.inf)
    if min(claim.before or 0.0, claim.after or 0.0) < 0:
        return "before and after are amounts, of which none is below zero"
    if percent is None:
        return ""
    if percent < -100 or (percent == -100 and claim.after is None):
        return f"percent is {percent:+g}: what vanishes has before and after = 0, and nothing falls by more"
    if claim.same and abs(percent) > claim.same_percent:
        return (
            f"same = true, and its figures differ by {percent:+.3g} %: more than same_percent, {claim.same_percent:g}"
        )
    if low > high:
        return f"interval_percent is [low, high], not [{low:g}, {high:g}]"
    if not low - 0.5 <= percent <= high + 0.5:
        return f"interval_percent [{low:g}, {high:g}] does not hold the change of {percent:+.3g} %"
    return ""


def _contradiction(claim: Claim) -> str:
    """What is wrong with a percentage beside figures: of "5.12 to 3.41, 33 % faster" it is -33."""
    if claim.percent is None or not claim.before or claim.after is None:
        return ""
    change = 100.0 * (claim.after / claim.before - 1.0)
    if abs(change - claim.percent) <= max(1.0, _ROUNDED * abs(change)):
        return ""
    return (
        f"before and after are {change:+.1f} %, percent is {claim.percent:+g}: it is the change of the figure, rounded"
    )


def in_time(claim: Claim) -> bool:
    """Whether the claim is about time or rates, for which counts can only give a direction."""
    return not (claim.function or claim.selftests or _COUNTED.match(claim.unit))


def published_percent(claim: Claim) -> float | None:
    """The claimed change in percent, of the figure as published; None where it has none (from zero)."""
    if claim.percent is not None:
        return claim.percent
    if not claim.before or claim.after is None:
        return None
    return 100.0 * (claim.after / claim.before - 1.0)


def unchanged(claim: Claim) -> bool:
    """Whether the published figures are a change of nothing, which has no size; from zero to zero is an amount."""
    percent = published_percent(claim)
    return percent is not None and 1.0 + percent / 100.0 == 1.0


def obstacle(claim: Claim, recipe: Recipe, setting: Setting) -> str:
    """Why ``claim`` cannot be measured in ``setting``, with the remedy where there is one; "" if it can."""
    if claim.needs:
        return f"needs {claim.needs}"
    wanted = {"both": ("baseline", "patched"), "baseline": ("baseline",), "patched": ("patched",)}[claim.on]
    if any(not getattr(setting, side) for side in wanted):
        return f"needs a patch: give it with --patch FILE ({recipe.kernels.patch})"
    if claim.arch is not None and claim.arch != setting.arch:
        return f"needs {claim.arch} kernels: name them with --baseline and --patched"
    if claim.selftests:
        return "" if setting.built else "needs kernels built from source, whose selftests belong to them"
    if setting.mode == "timed" and not in_time(claim):
        does = "sees functions" if claim.function else "counts instructions"
        return f"needs exact mode, which {does}: leave out --timed"
    if claim.cores > 1:
        return _contended(claim, setting)
    if setting.mode == "exact" and not claim.exact:
        return "needs times or memory figures, which exact mode does not measure: add --timed"
    return ""


def _contended(claim: Claim, setting: Setting) -> str:
    """A claim about several processors is never answered by one; emulated ones tell what crosses, and no time."""
    if setting.mode == "exact" and setting.smp > 1:
        return ""
    crosses = ""
    if setting.arch == "x86_64":
        crosses = f"--exact --smp {claim.cores} counts what crosses between as many emulated ones"
    if setting.mode == "exact" and crosses:
        return f"needs {claim.cores} cores: {crosses}"
    if setting.cores < claim.cores:
        return f"needs {claim.cores} cores; this machine has {setting.cores}" + (f": {crosses}" if crosses else "")
    if setting.accel != "kvm":
        return f"needs {claim.cores} cores under KVM: emulated processors do not contend as real ones do"
    return f"needs {claim.cores} cores at once: add --timed" if setting.mode == "exact" else ""


def cases_of(claim: Claim) -> list[Case]:
    """The cases that ``claim`` is measured by.

    Raises:
        UserError: one of them is not a case, or a grid of several.
    """
    return [_case(text, claim) for text in (claim.from_case, claim.case) if text]


def _case(text: str, claim: Claim) -> Case:
    cases = parse_case(text, catalogue())
    if len(cases) != 1:
        raise UserError(f"claim {claim.text!r}: case {text!r} is a grid; a claim is about one case")
    return msgspec.structs.replace(cases[0], pressure=claim.pressure)

# SPDX-License-Identifier: GPL-2.0-or-later
"""Two accounts of string instructions: REP as one instruction, and REP as one for each 8 bytes moved. Pure.

One ``rep movsb`` copies a page as one instruction that a loop copies as hundreds, so a kernel that moves work into
string instructions looks better by the one account and worse by the other. Which is right depends on the CPU
(ERMS, FSRM: Intel SDM, "Fast-String Operation"), so a verdict holds only where both agree in sign.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kdelta.model import CellResult
from kdelta.stats import counts, exact, paired
from kdelta.units import size
from kdelta.verdict.counts import Used, of_baseline, seed_pairs
from kdelta.verdict.pairing import Floats, Observation, values_of
from kdelta.verdict.warnings import BelowDelta, MixedAccounts, Strings

INSTRUCTIONS, EXECUTIONS, BYTES = "instructions", "rep_executions", "rep_bytes"
BRANCHES = "taken_branches"
WORD_BYTES = 8.0
_FAR_TIMES, _FAR = 2.0, 0.01  # in logarithms: what the second account says is told from there on
_FAR_LESS = 0.25  # of a change that the second account does not have, told too


def floor_among(floor: float | None, part: Floats, instructions: Floats) -> float | None:
    """The floor of a count of some of the instructions, in percent: as much as the floor lets pass of all of them.

    Where a kernel finds what it looks for hangs on where memory lies. Of one image a longer command line moved 13 of
    163 system calls by one to six taken branches, up to 2 % of these, and by less than 0.5 % of their instructions.
    """
    if not floor or not part.size or not instructions.size:
        return floor
    level = exact.median(part)
    return max(floor, floor * exact.median(instructions) / level) if level > 0 else floor


def per_word(
    instructions: Sequence[Observation], executions: Sequence[Observation], moved: Sequence[Observation]
) -> tuple[Observation, ...]:
    """The second account, by seed; a seed that lacks one of the three is left as the first account has it."""
    once = {boot.block: boot.value for boot in executions if boot.state == "ok"}
    by = {boot.block: boot.value for boot in moved if boot.state == "ok"}
    found = []
    for boot in instructions:
        one, size = once.get(boot.block), by.get(boot.block)
        if boot.value is None or one is None or size is None:
            found.append(boot)
        else:
            found.append(replace(boot, value=boot.value - one + size / WORD_BYTES))
    return tuple(found)


def both_accounts(
    result: CellResult, a: Sequence[Observation], b: Sequence[Observation], looks: tuple[int, ...]
) -> CellResult:
    """``result``, judged with REP as one, held against the second account ``a``, ``b``: mixed where they disagree."""
    pairs = seed_pairs(result, a, b)
    n = int(result.extra.get("seeds", 0.0))
    if result.verdict not in ("improved", "regressed", "same") or not n or len(pairs.a) < n:
        return result
    delta = result.extra["delta_percent"]
    used = Used(values_of(pairs.a[:n]), values_of(pairs.b[:n]))
    second = counts.look(used.a, used.b, looks or counts.LOOKS, delta)
    effect, _ = of_baseline(second, used)
    if effect is None or result.effect_percent is None:
        return result
    told = replace(result, extra=result.extra | {"effect_rep8_percent": effect})
    if _agree(told, second, delta):
        said = result.verdict != "same" and _far(result, effect, used)
        return replace(told, warnings=(*told.warnings, Strings(effect))) if said else told
    mixed = MixedAccounts(result.effect_percent, effect)
    kept = tuple(warning for warning in told.warnings if not isinstance(warning, BelowDelta))
    return replace(told, verdict="inconclusive", p_value=None, warnings=(*kept, mixed))


def _far(result: CellResult, second_percent: float, second: Used) -> bool:
    """Whether the second account says so much more of a change than the first, or less, that it is told.

    Less: Linux 6.1 copies by "rep movsq" what 6.12 copies in a loop (arch/x86/lib/memcpy_64.S), which is more
    instructions for the same bytes. What is moved on both kernels alike is no part of a change.
    """
    once, per_word = size(result.effect_percent or 0.0), size(second_percent)
    if per_word > _FAR_TIMES * once + _FAR:
        return True
    if result.baseline is None or result.patched is None or once - per_word <= _FAR:
        return False
    left = exact.median(second.b) - exact.median(second.a)
    return abs(left) < (1 - _FAR_LESS) * abs(result.patched - result.baseline)


def _agree(result: CellResult, second: counts.CountLook, delta: float) -> bool:
    effect = result.effect_percent or 0.0
    if result.verdict == "same":
        significant = second.finished and second.call in (paired.LOWER, paired.HIGHER)
        return not (significant and abs(second.effect or 0.0) > delta)
    return effect * (second.effect or 0.0) > 0.0

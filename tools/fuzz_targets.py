# SPDX-License-Identifier: GPL-2.0-or-later
"""What reads bytes that others wrote, for a fuzzer: each raises what its docstring declares, or nothing."""

from __future__ import annotations

import random
from importlib import import_module
from pathlib import Path

import fuzz_one
from fuzz_one import Target

ROOT = Path(__file__).resolve().parents[1]
FOUND = ROOT / "tests" / "data" / "fuzz"  # inputs that once broke a target: TARGET/NAME
TARGETS: dict[str, Target] = {
    name: target for group in fuzz_one.GROUPS for name, target in import_module(group).TARGETS.items()
}
_MOST_BYTES = 1 << 16  # of a seed


def seeds(name: str) -> list[bytes]:
    """Inputs from which a target's others are made, and those that once broke it."""
    of_group: list[bytes] = fuzz_one.group_of(name).seeds(name)
    found = sorted(path for path in (FOUND / name).glob("*")) if (FOUND / name).is_dir() else []
    return [data[:_MOST_BYTES] for data in (*of_group, *(path.read_bytes() for path in found))]


def mutated(data: bytes, dice: random.Random) -> bytes:
    """``data`` with one to four small injuries."""
    made = bytearray(data)
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(made) + 1)
        kind = dice.randrange(6)
        if kind == 0 and made:
            made[at - 1] ^= 1 << dice.randrange(8)
        elif kind == 1:
            del made[at : at + dice.randint(1, 64)]
        elif kind == 2:
            made[at:at] = dice.choice((b"\0", b"\xff" * 8, b"\n", b"\r\n", b":", b'"', b"\xe2\x80\xae", b"9" * 20))
        elif kind == 3:
            other = dice.randrange(len(made) + 1)
            made[at:at] = made[other : other + dice.randint(1, 64)]
        elif kind == 4:
            del made[at:]
        else:
            made[at : at + 8] = dice.randbytes(dice.randint(0, 8))
    return bytes(made)


def run(name: str, data: bytes) -> None:
    """One input; what the target declares is no failure."""
    fuzz_one.run(TARGETS[name], data)

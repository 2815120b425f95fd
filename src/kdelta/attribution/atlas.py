# SPDX-License-Identifier: GPL-2.0-or-later
"""The atlas: all functions that the shipped cases executed on several kernels, told without counting on another one.

It answers one question, and only with no: that no case executes any function of a driver. ``tools/atlas.py`` makes it
of maps (``experiment/reach.py``) and of stored counts. Left out one at a time, eleven kernels from 6.1 to 7.3 executed
no function below drivers/ in a file of which the other ten executed none (2026-11-22); of other directories they did,
which is why it is not asked about those. Beside that it names cases of which few kernels have what they need (a
disk), for functions that these alone execute, or on another way.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

_PATH = Path(__file__).with_name("atlas.txt")
_VERSION = re.compile(r"^(\d+)\.(\d+)")
_OTHERS = ("drivers/", "sound/")  # only what nobody calls but who uses the device
_NO_CODE = ("Documentation/", "MAINTAINERS", "tools/testing/")


class Atlas(Struct, frozen=True, kw_only=True):
    """``cases`` ran on at least one of ``kernels`` (releases, rising), ``failed`` on none; ``made_on`` is a date.

    Each case has the digest of what it was then (``spec/sameness.py``). ``functions`` are named as in the source.
    ``rare`` has a case for functions that kernels without what that case needs have, too (``needs.rare``).
    """

    made_on: str
    kernels: tuple[str, ...]
    cases: Mapping[str, str]
    failed: Mapping[str, str]
    functions: frozenset[str]
    rare: Mapping[str, str] = {}

    def knows(self, case: str, digest: str) -> bool:
        """Whether it answers for a case: seen, and still what it was."""
        return digest in (self.cases.get(case), self.failed.get(case))

    @property
    def title(self) -> str:
        """What it was made of, for people."""
        return f"{len(self.kernels)} kernels, {self.kernels[0]} to {self.kernels[-1]}, {self.made_on}"

    def covers(self, release: str) -> bool:
        """Whether a kernel is no older than its oldest and no newer than its newest one."""
        asked = version(release)
        return bool(asked) and version(self.kernels[0]) <= asked <= version(self.kernels[-1])

    def silent(self, functions: Collection[str], callers: Iterable[str]) -> bool:
        """Whether no case executed any of a driver's ``functions``, nor of the functions elsewhere that call them."""
        return bool(functions) and self.functions.isdisjoint(functions) and self.functions.isdisjoint(callers)


def version(release: str) -> tuple[int, ...]:
    """``6.12.117+deb13`` -> (6, 12); () where that is no release."""
    match = _VERSION.match(release)
    return (int(match[1]), int(match[2])) if match else ()


def answers_for(path: str) -> bool:
    """Whether the atlas may be asked about a change of this file."""
    if path.endswith((".h", "Makefile", "Kbuild")) or "Kconfig" in path:
        return False
    return path.startswith((*_OTHERS, *_NO_CODE))


def parse(text: str) -> Atlas:
    """The atlas that ``written`` wrote.

    Raises:
        ValueError: it is none.
    """
    found: dict[str, list[str]] = {"made": [], "kernel": [], "case": [], "failed": [], "rare": [], "function": []}
    for line in text.splitlines():
        kind, blank, value = line.partition(" ")
        if line.startswith("#"):
            continue
        if not blank or kind not in found:
            raise ValueError(f"atlas: no such line: {line[:80]!r}")
        found[kind].append(value)
    if len(found["made"]) != 1 or not found["kernel"]:
        raise ValueError("atlas: no date, or no kernel")
    return Atlas(
        made_on=found["made"][0],
        kernels=rising(found["kernel"]),
        cases=_digests(found["case"]),
        failed=_digests(found["failed"]),
        functions=frozenset(found["function"]),
        rare=dict(_pairs(found["rare"])),
    )


def _digests(lines: Iterable[str]) -> dict[str, str]:
    """``name digest`` a line; a name may have blanks."""
    return dict(_pairs(lines))


def _pairs(lines: Iterable[str]) -> list[tuple[str, str]]:
    pairs = [line.rpartition(" ") for line in lines]
    if not all(name for name, _, _ in pairs):
        raise ValueError("atlas: a case without its digest, or a function without its case")
    return [(name, of) for name, _, of in pairs]


def rising(releases: Iterable[str]) -> tuple[str, ...]:
    """Releases by their numbers."""
    return tuple(sorted(releases, key=lambda one: ([int(number) for number in re.findall(r"\d+", one)], one)))


def written(atlas: Atlas) -> str:
    """As a text of one name a line, so that two of them can be compared."""
    groups = (
        ("made", [atlas.made_on]), ("kernel", atlas.kernels), ("case", _lines(atlas.cases)),
        ("failed", _lines(atlas.failed)), ("rare", _lines(atlas.rare)), ("function", sorted(atlas.functions)),
    )  # fmt: skip
    head = "# SPDX-License-Identifier: GPL-2.0-or-later\n# Made by make atlas; see attribution/atlas.py.\n"
    return head + "".join(f"{kind} {value}\n" for kind, values in groups for value in values)


def _lines(pairs: Mapping[str, str]) -> list[str]:
    return [f"{name} {of}" for name, of in sorted(pairs.items())]


@lru_cache(maxsize=1)
def shipped() -> Atlas:
    """The atlas that ships with kdelta."""
    return parse(_PATH.read_text("utf-8"))

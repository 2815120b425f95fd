# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions that the kernel's start calls as well."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from kdelta.attribution import starting
from kdelta.attribution.disassembly import Image

SECTIONS = {"init": ".init.text", "leave": ".exit.text"}


def called(function: str, **callers: tuple[str, ...]) -> bool:
    names = {function, *callers, *(one for many in callers.values() for one in many)}
    sources = {name: (SimpleNamespace(section=SECTIONS.get(name, ".text")),) for name in names}
    image = cast(Image, SimpleNamespace(sources=sources))
    return starting.calls(image, [function], lambda name: callers.get(name, ()))


def test_what_the_start_calls_directly_or_through_others_is_known() -> None:
    assert called("sizes", sizes=("init",))
    assert called("sizes", sizes=("makes",), makes=("wraps", "other"), wraps=("init",))


def test_what_runs_later_alone_is_not() -> None:
    assert not called("sizes", sizes=("makes",), makes=("sizes",))
    assert not called("sizes", sizes=("leave",)), "what a module does at its end is no start"
    assert not called("sizes", sizes=tuple(f"many{i}" for i in range(200)), many1=("init",)), (
        "nothing is asked for ever"
    )

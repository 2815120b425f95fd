# SPDX-License-Identifier: GPL-2.0-or-later
"""A case with one of its knobs set otherwise. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kdelta.errors import UserError
from kdelta.model import Case
from kdelta.spec.workloads import Param, Workload

_TIMES = 4  # a larger and a smaller number
_TIMES_SIZE = 16
_FROM_NONE = {"int": 16, "size": 64 << 10}  # where a knob is 0 by default


def variants(case: Case, workload: Workload) -> tuple[Case, ...]:
    """``case`` with one knob otherwise: each other choice, of a number the least, a smaller and a larger one.

    A knob that means nothing without certain values of another is set together with the first of these; where that does
    not do, it is left as it is.
    """
    found: dict[str, Case] = {}
    for name, param in workload.params.items():
        for value in _others(param, case.params.get(name, param.default_text)):
            try:
                one = workload.case({**case.params, **_needed(case, param), name: value})
            except UserError:  # it has no effect with these
                continue
            found.setdefault(one.name, one)
    return tuple(found.values())


def _needed(case: Case, param: Param) -> dict[str, str]:
    """Other knobs without which this one means nothing."""
    return {other: values[0] for other, values in param.only_with.items() if case.params.get(other) not in values}


def _others(param: Param, value: str) -> Iterator[str]:
    if param.type == "choice":
        yield from (choice for choice in param.choices if choice != value)
    elif param.type == "bool":
        yield "1" if value == "0" else "0"
    else:
        yield from (str(number) for number in _numbers(param, int(value)) if number != int(value))


def _numbers(param: Param, now: int) -> tuple[int, ...]:
    least, most = param.min or 0, param.max
    times = _TIMES_SIZE if param.type == "size" else _TIMES
    larger = now * times if now else _FROM_NONE[param.type]
    return least, max(least, now // times), larger if most is None else min(most, larger)

# SPDX-License-Identifier: GPL-2.0-or-later
"""What is worked out of a profile once, as long as the profile lives: in a sweep each is compared many times."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from kdelta.model import Profile

P = ParamSpec("P")
T = TypeVar("T")


def once(function: Callable[Concatenate[Profile, P], T]) -> Callable[Concatenate[Profile, P], T]:
    """``function``, whose value of a profile and further (hashable) arguments is kept; nobody may change it."""
    known: dict[int, tuple[weakref.ref[Profile], dict[object, T]]] = {}

    @wraps(function)
    def asked(profile: Profile, /, *args: P.args, **kwargs: P.kwargs) -> T:
        number = id(profile)
        if number not in known:
            known[number] = weakref.ref(profile, lambda _: known.pop(number)), {}
        values, key = known[number][1], (args, *kwargs.items())
        if key not in values:
            values[key] = function(profile, *args, **kwargs)
        return values[key]

    return asked

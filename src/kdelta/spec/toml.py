# SPDX-License-Identifier: GPL-2.0-or-later
"""TOML that somebody wrote. Python's own reader recurses into values, and does not say which error a long number is."""

from __future__ import annotations

import math
from datetime import date, datetime, time
from typing import TypeVar

import msgspec

T = TypeVar("T")


def decode(data: str | bytes, kind: type[T]) -> T:
    """``data`` as a ``kind``.

    Raises:
        ValueError: it is no TOML, or no ``kind``, or one of its numbers is nan or inf; the message says why.
    """
    try:
        table = msgspec.toml.decode(data)
        strange = _not_finite(table)
        found = msgspec.convert(table, kind, builtin_types=(datetime, date, time), str_keys=True)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise
    except RecursionError:
        raise ValueError("its values are nested too deeply") from None
    except ValueError:
        raise ValueError("one of its numbers has too many digits") from None
    if strange:
        raise ValueError(f"{strange}: give a number")
    return found


def _not_finite(value: object, name: str = "") -> str:
    """The first number in ``value`` that is none, as in ``claims.percent is nan``; "" where all are."""
    if isinstance(value, float):
        return "" if math.isfinite(value) else f"{name} is {value}"
    if isinstance(value, dict):
        inner = [(one, f"{name}.{key}" if name else str(key)) for key, one in value.items()]
    else:
        inner = [(one, name) for one in value] if isinstance(value, list) else []
    return next((strange for one, key in inner if (strange := _not_finite(one, key))), "")

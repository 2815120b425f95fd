# SPDX-License-Identifier: GPL-2.0-or-later
"""TOML that somebody wrote. Python's own reader recurses into values, and does not say which error a long number is."""

from __future__ import annotations

from typing import TypeVar

import msgspec

T = TypeVar("T")


def decode(data: str | bytes, kind: type[T]) -> T:
    """``data`` as a ``kind``.

    Raises:
        ValueError: it is no TOML, or no ``kind``; the message says why.
    """
    try:
        return msgspec.toml.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise
    except RecursionError:
        raise ValueError("its values are nested too deeply") from None
    except ValueError:
        raise ValueError("one of its numbers has too many digits") from None

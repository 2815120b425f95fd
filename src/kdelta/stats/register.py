# SPDX-License-Identifier: GPL-2.0-or-later
"""The names of the estimators, for those who must not wait for numpy (``kdelta --help``)."""

from __future__ import annotations

from pathlib import Path


def names() -> tuple[str, ...]:
    """The registered estimators: modules of ``stats/estimators`` whose name does not start with ``_``."""
    modules = (Path(__file__).parent / "estimators").glob("[a-z]*.py")
    return tuple(sorted(path.stem.replace("_", "-") for path in modules))

# SPDX-License-Identifier: GPL-2.0-or-later
"""Readings of the same samples by rules: other tools', or your own. One file each; none of them decides a verdict.

A module of this package with ``ESTIMATOR`` is registered under the module's name with ``-`` for ``_``; names that start
with ``_`` are helpers. See docs/how-to/add-an-estimator.md; what the rules get wrong is in docs/methodology.md.
"""

from __future__ import annotations

from importlib import import_module

from kdelta.stats.estimators._common import Boots, Call, Estimate, Estimator
from kdelta.stats.register import names

__all__ = ["Boots", "Call", "Estimate", "Estimator", "estimate", "estimator", "names"]
_SWAPPED: dict[Call, Call] = {"improved": "regressed", "regressed": "improved", "none": "none"}
_MARKS = {"(I) ": "(R) ", "(R) ": "(I) "}


def estimator(name: str) -> Estimator:
    """The estimator of that name.

    Raises:
        KeyError: there is none.
    """
    if name not in names():
        raise KeyError(name)
    found = import_module(f"{__name__}.{name.replace('-', '_')}").ESTIMATOR
    assert isinstance(found, Estimator)
    return found


def estimate(name: str, baseline: Boots, patched: Boots, lower_is_better: bool = True) -> Estimate:
    """Apply the named estimator; where higher is better the words are exchanged.

    Raises:
        KeyError: there is none of that name.
        ValueError: a side has no boot, or a boot no sample.
    """
    if not baseline or not patched or any(len(boot) == 0 for boot in (*baseline, *patched)):
        raise ValueError("an estimator needs a boot with samples on both sides")
    found = estimator(name)(baseline, patched)
    if lower_is_better or found.call == "none":
        return found
    text = _MARKS.get(found.text[:4], found.text[:4]) + found.text[4:]
    return Estimate(_SWAPPED[found.call], text, found.warnings)

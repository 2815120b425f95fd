# SPDX-License-Identifier: GPL-2.0-or-later
"""The figures that a series gives itself, below what was measured."""

from __future__ import annotations

from collections.abc import Iterable

from kdelta.report.mail import safe
from kdelta.report.scrub import clean
from kdelta.report.sections import bullets
from kdelta.report.text import WIDTH


def quoted(claims: Iterable[str]) -> str:
    """A part of a plain-text report, at most 72 columns wide."""
    lines = ["", "Figures that the series gives itself (quoted, not checked)", *bullets(map(clean, claims), WIDTH - 1)]
    return "\n".join(map(safe, lines)) + "\n"

# SPDX-License-Identifier: GPL-2.0-or-later
"""How many inputs a fuzzing target has had since one broke it: kept beside the corpora, over all runs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

_KEPT = "clean.tsv"


def clean(corpus: Path) -> dict[str, int]:
    """Inputs in a row that broke nothing, by target."""
    try:
        lines = (corpus / _KEPT).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    return {name: int(tried) for name, _, tried in (line.partition("\t") for line in lines)}


def add(corpus: Path, name: str, tried: int, broke: bool) -> int:
    """Keep a round of ``tried`` inputs; returns how many are clean now. One that broke it begins anew."""
    known = clean(corpus)
    known[name] = 0 if broke else known.get(name, 0) + tried
    made = corpus / f".{_KEPT}.{os.getpid()}"
    made.write_text("".join(f"{one}\t{count}\n" for one, count in sorted(known.items())), encoding="utf-8")
    made.replace(corpus / _KEPT)
    return known[name]


def table(known: dict[str, int], native: Iterable[str], python: Iterable[str]) -> str:
    """All targets in Markdown, with their clean inputs."""
    rows = [(name, "C") for name in native] + [(name, "Python") for name in python]
    lines = [f"| {name} | {kind} | {known.get(name, 0):,} |" for name, kind in rows]
    return "\n".join(["| target | written in | inputs since one broke it |", "|---|---|---:|", *lines])

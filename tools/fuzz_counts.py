# SPDX-License-Identifier: GPL-2.0-or-later
"""How many inputs a fuzzing target has had since one broke it: kept beside the corpora, over all runs.

Where corpora are new, as on another machine, it goes on from what the document says.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

_KEPT = "clean.tsv"
_ROW = re.compile(r"^\| ([a-z0-9-]+) \| (?:C|Python) \| ([0-9,]+) \|$", re.MULTILINE)  # of ``table``


def clean(corpus: Path) -> dict[str, int]:
    """Inputs in a row that broke nothing, by target."""
    try:
        lines = (corpus / _KEPT).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    return {name: int(tried) for name, _, tried in (line.partition("\t") for line in lines)}


def go_on(corpus: Path, document: str) -> None:
    """Take the counts of the table in ``document`` for targets of which ``corpus`` has none."""
    told = {name: int(tried.replace(",", "")) for name, tried in _ROW.findall(document)}
    with _alone(corpus):
        _keep(corpus, told | clean(corpus))


@contextmanager
def _alone(corpus: Path) -> Iterator[None]:
    """While no other run counts: several may go on at once, each with targets of its own."""
    corpus.mkdir(parents=True, exist_ok=True)
    with (corpus / f".{_KEPT}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _keep(corpus: Path, known: dict[str, int]) -> None:
    made = corpus / f".{_KEPT}.{os.getpid()}"
    made.write_text("".join(f"{one}\t{count}\n" for one, count in sorted(known.items())), encoding="utf-8")
    made.replace(corpus / _KEPT)


def add(corpus: Path, name: str, tried: int, broke: bool) -> int:
    """Keep a round of ``tried`` inputs; returns how many are clean now. One that broke it begins anew."""
    with _alone(corpus):
        known = clean(corpus)
        known[name] = 0 if broke else known.get(name, 0) + tried
        _keep(corpus, known)
    return known[name]


def table(known: dict[str, int], native: Iterable[str], python: Iterable[str]) -> str:
    """All targets in Markdown, with their clean inputs."""
    rows = [(name, "C") for name in native] + [(name, "Python") for name in python]
    lines = [f"| {name} | {kind} | {known.get(name, 0):,} |" for name, kind in rows]
    return "\n".join(["| target | written in | inputs since one broke it |", "|---|---|---:|", *lines])

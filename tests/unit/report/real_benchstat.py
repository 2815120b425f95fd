# SPDX-License-Identifier: GPL-2.0-or-later
"""The real benchstat (golang.org/x/perf): found, or installed into the cache with Go where that is here."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

SOURCE = "golang.org/x/perf/cmd/benchstat@v0.0.0-20230113213139-801c7ef9e5c5"


class Missing(Exception):
    """There is no benchstat and none can be installed."""


class Line(Struct, frozen=True):
    """A benchmark in one unit: the medians of all kernels, and the others' changes as printed ("~", "?": none)."""

    medians: tuple[float, ...]
    changes: tuple[str, ...]


def program(cache: Path) -> str:
    """The path of a benchstat: the one on PATH, else the one in ``cache``, installed there now if Go is at hand.

    Raises:
        Missing: neither benchstat nor Go is here, or Go could not install it.
    """
    known = shutil.which("benchstat") or shutil.which("benchstat", path=str(cache / "go" / "bin"))
    if known is not None:
        return known
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if go is None:
        raise Missing("no benchstat and no Go to install it with: apt-get install golang-go")
    folder = cache / "go"
    folder.mkdir(parents=True, exist_ok=True)
    places = {"GOPATH": folder, "GOBIN": folder / "bin", "GOCACHE": folder / "build"}
    env = {**os.environ, **{name: str(path) for name, path in places.items()}, "GOFLAGS": "-mod=mod -modcacherw"}
    try:
        done = subprocess.run([go, "install", SOURCE], capture_output=True, text=True, env=env, cwd=folder, timeout=900)
    except subprocess.TimeoutExpired:
        raise Missing("go took too long to install benchstat") from None
    if done.returncode:
        raise Missing(f"go could not install benchstat: {(done.stderr.strip().splitlines() or ['no word'])[-1]}")
    return str(folder / "bin" / "benchstat")


def _run(benchstat: str, export: Path, *words: str) -> str:
    done = subprocess.run([benchstat, *words, "-col", "kernel", str(export)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def text(benchstat: str, export: Path) -> str:
    """What a person reads of ``export``, kernels side by side."""
    return _run(benchstat, export)


def table(benchstat: str, export: Path) -> dict[tuple[str, str], Line]:
    """What benchstat makes of an export, by (benchmark, unit)."""
    return lines(csv.reader(_run(benchstat, export, "-format", "csv").splitlines()))


def lines(rows: Iterable[list[str]]) -> dict[tuple[str, str], Line]:
    """The rows of benchstat's CSV: a head ``,UNIT,CI,UNIT,CI,vs base,P,...`` per unit, then a benchmark a line."""
    found: dict[tuple[str, str], Line] = {}
    unit = ""
    for row in rows:
        if len(row) > 2 and row[0] == "" and row[2] == "CI":
            unit = row[1]
        elif len(row) > 2 and row[0] not in ("", "geomean"):
            found[row[0], unit] = Line(tuple(map(float, row[1:2] + row[3::4])), tuple(row[5::4]))
    return found

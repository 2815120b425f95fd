# SPDX-License-Identifier: GPL-2.0-or-later
"""Who calls whom among the C files, from their object files: nobody may call upwards."""

from __future__ import annotations

import subprocess
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from kdelta.paths import shipped


def _names(object_file: Path) -> tuple[set[str], set[str]]:
    """(defined, wanted) global names."""
    defined: set[str] = set()
    wanted: set[str] = set()
    listing = subprocess.run(["nm", "-g", str(object_file)], capture_output=True, text=True, check=True).stdout
    for line in listing.splitlines():
        *_, kind, name = line.split()
        (wanted if kind in "Uw" else defined).add(name)
    return defined, wanted


def _calls(sources: list[Path], folder: Path) -> dict[str, set[str]]:
    """File -> the files whose names it uses."""
    names = {}
    for source in sources:
        made = folder / f"{source.stem}.o"
        subprocess.run(["gcc", "-D_GNU_SOURCE", "-w", "-c", str(source), "-o", str(made)], check=True)
        names[source.name] = _names(made)
    home = {name: source for source, (defined, _) in names.items() for name in defined}
    return {source: {home[name] for name in wanted if name in home} for source, (_, wanted) in names.items()}


@pytest.mark.parametrize("tree", [shipped("guest"), shipped("plugin")], ids=["guest", "plugin"])
def test_no_file_calls_one_that_calls_it(tree: Path, tmp_path: Path) -> None:
    calls = _calls(sorted(tree.glob("*.c")), tmp_path)
    assert sum(map(len, calls.values())) > 10
    TopologicalSorter(calls).prepare()  # raises CycleError

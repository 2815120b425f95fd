# SPDX-License-Identifier: GPL-2.0-or-later
"""make bench AGAINST=REVISION: the sections of tools/bench.py with the code of now and of then, in turn, in one run.

The revision's files are laid beside the checkout's; the same bench measures both, so a figure means the same twice.
Sections that call kdelta's modules and not its commands may find those of then otherwise: their figures are missing.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BENCH = ROOT / "tools" / "bench.py"
Figures = dict[str, tuple[float, str]]  # by name: the value and its unit


@contextlib.contextmanager
def tree_of(revision: str) -> Iterator[Path]:
    """A directory with the files of a revision; ``SystemExit`` with git's own words where there is none."""
    packed = subprocess.run(["git", "-C", str(ROOT), "archive", revision], capture_output=True, check=False)
    if packed.returncode:
        raise SystemExit(f"no files of {revision}: {packed.stderr.decode('utf-8', 'replace').strip()}")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["tar", "-x", "-C", folder], input=packed.stdout, check=True)  # tarfile's filters: Python 3.11.4
        yield Path(folder)


def figures_of(section: str, tree: Path) -> Figures:
    """What the bench of this checkout measures in one section with the code of ``tree``."""
    with tempfile.NamedTemporaryFile() as told:
        argv = [sys.executable, str(BENCH), section, "--figures", told.name]
        done = subprocess.run(
            argv, env={**os.environ, "PYTHONPATH": str(tree / "src")}, capture_output=True, text=True, check=False
        )
        lines = Path(told.name).read_text("utf-8").splitlines()
    if not lines:
        print(
            f"  {section}: nothing measured: {(done.stderr.strip() or 'no reason given').splitlines()[-1]}", flush=True
        )
    return {name: (value, unit) for name, value, unit in map(json.loads, lines)}


def table(now: Figures, then: Figures, revision: str) -> list[str]:
    """Lines with the figures of now, of then, and their ratio; "-" where one has none."""
    rows = []
    for name in {**now, **then}:
        new, old = now.get(name), then.get(name)
        unit = (new or old or (0.0, ""))[1]
        ratio = f"{new[0] / old[0]:7.2f}" if new and old and old[0] else f"{'-':>7}"
        told = [f"{figure[0]:10.2f}" if figure else f"{'-':>10}" for figure in (new, old)]
        rows.append(f"  {name:46} {told[0]} {told[1]} {unit:3} {ratio}")
    return [f"  {'':46} {'now':>10} {revision[:10]:>10}     {'ratio':>7}", *rows]


def run(sections: Sequence[str], revision: str) -> None:
    """Measure and print; which tree comes first changes from section to section."""
    now: Figures = {}
    then: Figures = {}
    with tree_of(revision) as old:
        for turn, section in enumerate(sections):
            print(f"  {section}", file=sys.stderr, flush=True)
            pair = [(now, ROOT), (then, old)]
            for figures, tree in pair if turn % 2 else reversed(pair):
                figures.update(figures_of(section, tree))
    print("\n".join(table(now, then, revision)))

# SPDX-License-Identifier: GPL-2.0-or-later
"""The tests mirror the parts of the source, and each module of the rooms below has a test that imports it.

Exit 1 and a line for each breach.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("experiment", "results")  # where what is measured and found is decided


def imported(path: Path) -> Iterator[str]:
    """The modules of kdelta that a file imports, and the names it takes from them, in dotted form."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{one.name}" for one in node.names)


def untested(source: Path, tests: Path) -> list[str]:
    """A line for each module of the rooms that no test imports."""
    seen = {name for path in tests.rglob("*.py") for name in imported(path)}
    modules = [path for room in ROOMS for path in sorted((source / "kdelta" / room).rglob("*.py"))]
    names = {".".join(path.relative_to(source).with_suffix("").parts) for path in modules if path.stem != "__init__"}
    return [f"{name}: no test imports it" for name in sorted(names - seen)]


def misplaced(source: Path, tests: Path) -> list[str]:
    """A line for each unit test in the directory of a part that it has nothing to do with."""
    wrong = []
    for path in sorted((tests / "unit").glob("*/**/test_*.py")):
        name, part = path.relative_to(tests), path.relative_to(tests / "unit").parts[0]
        if part == "tools":
            continue
        text = path.read_text(encoding="utf-8")
        by_text = f"kdelta.{part}" in text or f'shipped("{part}")' in text  # run as a command; its C sources
        if not (source / "kdelta" / part).exists():
            wrong.append(f"tests/{name}: kdelta has no part {part!r}")
        elif not by_text and not any(one.startswith(f"kdelta.{part}") for one in imported(path)):
            wrong.append(f"tests/{name}: imports nothing of kdelta.{part}")
    return wrong


def main() -> int:
    wrong = untested(ROOT / "src", ROOT / "tests") + misplaced(ROOT / "src", ROOT / "tests")
    sys.stdout.writelines(line + "\n" for line in wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

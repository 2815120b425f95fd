# SPDX-License-Identifier: GPL-2.0-or-later
"""Holds the imports of kdelta against the layers of ARCHITECTURE.md. Exit 1 and a line for each breach."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1] / "src"
# Lower layers first. A module may import its own part and any part of a lower layer.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors",),
    ("units",),
    ("model", "paths"),
    ("samples", "spec", "workloads", "collectors"),
    ("guest",),
    ("stats", "schedule", "kernel", "machine", "store"),
    ("verdict", "attribution", "versions"),
    ("report",),
    ("harvest", "calibration", "leaking", "scaling", "drawing", "gates", "claims", "ktap", "sweeping", "deciding"),
    ("runner", "analysis", "bisecting"),
    ("session", "agreement"),
    ("serve",),
    ("tracing",),
    ("commits", "selftesting"),
    ("cli",),
)
# Extra rules: (part, forbidden part) where the layer alone would allow it.
FORBIDDEN = {
    ("verdict", "attribution"): "the why must not change the which",
    ("stats", "model"): "statistics take arrays (only model.Warn is allowed)",
    ("stats", "kernel"): "statistics know no kernel",
    ("report", "stats"): "a report computes no statistics",
    ("report", "store"): "a report opens no database",
    ("report", "machine"): "a report starts no process",
    ("kernel", "guest"): "kernel and guest meet only in model.Kernel",
}
PRINTERS = ("print(", "sys.exit(")


def part_of(module: str) -> str:
    """The top part of ``kdelta.part.rest``; the package itself is ''."""
    pieces = module.split(".")
    return pieces[1] if len(pieces) > 1 else ""


def imports(tree: ast.AST) -> list[tuple[int, str, tuple[str, ...]]]:
    """(line, module, names) of every import of kdelta in ``tree``, also those inside functions."""
    found: list[tuple[int, str, tuple[str, ...]]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, a.name, ()) for a in node.names if a.name.startswith("kdelta")]
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("kdelta"):
            names = tuple(a.name for a in node.names)
            if node.module == "kdelta":
                found += [(node.lineno, f"kdelta.{name}", ()) for name in names]
            else:
                found.append((node.lineno, node.module, names))
    return found


def breaches(path: Path, ranks: dict[str, int]) -> list[str]:
    """What is wrong with one file."""
    relative = path.relative_to(ROOT)
    part = relative.parts[1].removesuffix(".py") if len(relative.parts) > 1 else ""
    if part == "__init__":
        return []
    if part not in ranks:
        return [f"{relative}: {part!r} is in no layer; add it to tools/check_imports.py and ARCHITECTURE.md"]
    wrong = []
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    for line, module, names in imports(tree):
        other = part_of(module)
        if other in ("", "__version__") or other == part:
            continue
        where = f"{relative}:{line}: {part} imports {module}"
        if other not in ranks:
            wrong.append(f"{where}: unknown part")
        elif ranks[other] >= ranks[part]:
            wrong.append(f"{where}: {other} is not below {part}")
        elif (part, other) in FORBIDDEN and not (part == "stats" and set(names) <= {"Warn"}):
            wrong.append(f"{where}: {FORBIDDEN[part, other]}")
    if part != "cli":
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
                wrong.append(f"{relative}:{node.lineno}: only cli prints")
    return wrong


def main() -> int:
    ranks = {part: rank for rank, layer in enumerate(LAYERS) for part in layer}
    wrong = [b for path in sorted((ROOT / "kdelta").rglob("*.py")) for b in breaches(path, ranks)]
    sys.stdout.writelines(line + "\n" for line in wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

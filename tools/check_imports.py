# SPDX-License-Identifier: GPL-2.0-or-later
"""Holds the imports of kdelta against the layers of ARCHITECTURE.md. Exit 1 and a line for each breach."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1] / "src"
# Lower layers first. A module may import its own part and any part of a lower layer. ARCHITECTURE.md shows the same.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors",),
    ("units",),
    ("digests", "distributions", "locks", "model", "paths", "vouched"),
    ("spec", "stats"),
    ("guest",),
    ("kernel", "machine", "store"),
    ("verdict", "attribution", "inbox", "lab"),
    ("results",),
    ("experiment",),
    ("fleet",),
    ("report",),
    ("serve", "post"),
    ("cli",),
    ("__main__",),
)
# Extra rules: (part, forbidden part below it), where the layers alone would allow it.
FORBIDDEN = {
    ("stats", "model"): "statistics take arrays",
    ("results", "machine"): "results are read from the store: nothing is started for them",
    ("report", "stats"): "a report computes no statistics",
    ("report", "store"): "a report opens no database",
    ("report", "machine"): "a report starts no process",
    ("report", "experiment"): "a report starts no process",
    ("serve", "experiment"): "pages only show what is stored",
    ("kernel", "guest"): "kernel and guest meet only in model.Kernel",
}
# What these rules let through: (part, module) -> the names, None for all.
ALLOWED: dict[tuple[str, str], frozenset[str] | None] = {
    ("stats", "kdelta.model"): frozenset({"Warn", "Remark"}),  # a value with its warnings goes out
    ("report", "kdelta.stats.warnings"): None,  # which it makes sentences of
}
PRINTERS = ("print", "exit")


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


def allowed(part: str, module: str, names: tuple[str, ...]) -> bool:
    """Whether a rule lets this import through. ``from kdelta.part import module`` names the module by its last word."""
    told = [f"{module}.{name}" for name in names]
    if told and all(ALLOWED.get((part, name), frozenset()) is None for name in told):
        return True
    let = ALLOWED.get((part, module), frozenset())
    return let is None or (bool(names) and set(names) <= let)


def breaches(path: Path, ranks: dict[str, int], root: Path = ROOT) -> list[str]:
    """What is wrong with one file of the source tree ``root``."""
    relative = path.relative_to(root)
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
        elif (part, other) in FORBIDDEN and not allowed(part, module, names):
            wrong.append(f"{where}: {FORBIDDEN[part, other]}")
    if part != "cli":
        wrong += [f"{relative}:{line}: only cli prints or exits" for line in printing(tree)]
    return wrong


def printing(tree: ast.AST) -> list[int]:
    """Lines that call ``print``, ``exit`` or ``sys.exit``."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [c.lineno for c in calls if getattr(c.func, "id", getattr(c.func, "attr", "")) in PRINTERS]


def drawn() -> tuple[tuple[str, ...], ...]:
    """The layers as ARCHITECTURE.md shows them: the fenced block ``layers``, lowest first."""
    text = (ROOT.parent / "ARCHITECTURE.md").read_text(encoding="utf-8")
    block = text.partition("```layers\n")[2].partition("```")[0]
    return tuple(tuple(line.split()) for line in block.splitlines())


def ranked() -> dict[str, int]:
    """The layer of each part."""
    return {part: rank for rank, layer in enumerate(LAYERS) for part in layer}


def main() -> int:
    ranks = ranked()
    wrong = [b for path in sorted((ROOT / "kdelta").rglob("*.py")) for b in breaches(path, ranks)]
    if drawn() != LAYERS:
        wrong.append("ARCHITECTURE.md: its layers are not those of tools/check_imports.py")
    sys.stdout.writelines(line + "\n" for line in wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

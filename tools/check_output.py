# SPDX-License-Identifier: GPL-2.0-or-later
"""Everything that kdelta prints goes through cli/_say.py, which makes it harmless. Exit 1 and a line for each breach.

What guests, patches, packages and imported files said must not move a terminal's cursor or change its title; a call
of ``click.echo`` beside that one way out is how it gets forgotten.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1] / "src" / "kdelta"
WAY_OUT = Path("cli/_say.py")
CALLS = frozenset({"echo", "secho", "echo_via_pager", "print", "pprint"})
STREAMS = frozenset({"stdout", "stderr", "__stdout__", "__stderr__"})
WRITES = frozenset({"write", "writelines", "buffer"})


def breaches(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, what) of every way to print that is not ``say``; a rich console's print takes ``harmless`` text only."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in ("click", "sys"):
            yield from ((node.lineno, f"imports {a.name}") for a in node.names if a.name in CALLS | STREAMS)
        elif isinstance(node, ast.Attribute) and node.attr in WRITES and _name(node.value) in STREAMS:
            yield node.lineno, f"{_name(node.value)}.{node.attr}"
        elif isinstance(node, ast.Call) and _name(node.func) in CALLS and not _is_clean_console(node):
            yield node.lineno, f"calls {_name(node.func)}"


def _name(node: ast.AST) -> str:
    return str(getattr(node, "id", getattr(node, "attr", "")))


def _is_clean_console(call: ast.Call) -> bool:
    console = isinstance(call.func, ast.Attribute) and _name(call.func.value) == "console"
    first = call.args[0] if call.args else None
    return console and isinstance(first, ast.Call) and _name(first.func) == "harmless"


def main() -> int:
    wrong = []
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT)
        if name != WAY_OUT:
            found = breaches(ast.parse(path.read_text(encoding="utf-8")))
            wrong += [f"src/kdelta/{name}:{line}: {what}: print with cli/_say.py" for line, what in found]
    sys.stdout.writelines(line + "\n" for line in wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: GPL-2.0-or-later
"""File rules: at most 400 lines, an SPDX header, nothing unfinished. Exit 1 and a line for each breach."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MAX_LINES = 400
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError)\b")
SHELL = re.compile(r"shell\s*=\s*True|os\.system\(|trusted=yes")
CODE = (".py", ".c", ".h", ".sh", ".S")


def tracked() -> list[Path]:
    """Files of the project: tracked, or new and not ignored."""
    done = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True
    )
    return [ROOT / line for line in done.stdout.splitlines() if (ROOT / line).is_file()]


def main() -> int:
    wrong = []
    for path in tracked():
        name = str(path.relative_to(ROOT))
        if path.suffix not in CODE or name.startswith("tests/data/"):
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        lines = text.splitlines()
        if len(lines) > MAX_LINES:
            wrong.append(f"{name}: {len(lines)} lines (at most {MAX_LINES})")
        if lines and not any("SPDX-License-Identifier" in line for line in lines[:3]):
            wrong.append(f"{name}: no SPDX header")
        if name.startswith(("src/", "guest/", "plugin/")):
            wrong += [f"{name}:{n}: unfinished: {x.strip()}" for n, x in enumerate(lines, 1) if UNFINISHED.search(x)]
            wrong += [f"{name}:{n}: unsafe: {x.strip()}" for n, x in enumerate(lines, 1) if SHELL.search(x)]
    sys.stdout.writelines(line + "\n" for line in wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

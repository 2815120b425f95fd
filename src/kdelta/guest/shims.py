# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that stand for others: shims of version managers (pyenv, rbenv, nodenv, goenv, asdf), proxies of rustup.

A shim is a script in a directory ``shims`` that hands its words to ``MANAGER exec NAME``; ``MANAGER which NAME`` says
what it would start (https://github.com/pyenv/pyenv, "Understanding shims"). A proxy is rustup itself under another
name, by a link, and ``rustup which NAME`` says the same (rust-lang.github.io/rustup/concepts/proxies.html). A guest
has no manager.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from kdelta.errors import UserError

_HANDED_OVER = re.compile(r'^exec "?([^"\s]+)"? exec ', re.MULTILINE)
_MOST_BYTES = 4096
_LIMIT_S = 20.0
_RUSTUP = "rustup"


def meant(path: Path) -> Path:
    """The program that the shim or proxy ``path`` would start here; ``path`` itself where it is none.

    Raises:
        UserError: the manager knows of none, or does not say.
    """
    manager = _manager(path)
    if not manager:
        return path
    try:
        done = subprocess.run(
            (manager, "which", path.name), capture_output=True, text=True, timeout=_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"program {path}: a shim of {manager}, which does not say of what ({error})") from None
    found = Path(done.stdout.strip())
    if done.returncode or not found.is_absolute() or not found.is_file():
        said = (done.stderr.strip().splitlines() or ["it said nothing"])[0]
        raise UserError(f"program {path}: a shim of {manager}, which names no program ({said}); give its path")
    return found


def _manager(path: Path) -> str:
    """Who knows what ``path`` stands for; "" of a program that is itself."""
    rustup = path.parent / _RUSTUP
    if path.name != _RUSTUP and rustup.is_file() and path.is_file() and path.samefile(rustup):
        return str(rustup)
    if path.parent.name != "shims" or not path.is_file():
        return ""
    with path.open("rb") as file:
        text = file.read(_MOST_BYTES).decode("utf-8", "replace")
    found = _HANDED_OVER.search(text)
    return found[1] if found and text.startswith("#!") else ""

# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that commands name, of ``sh -c``, of scripts and of ``timeout 9 ls``: by their words, so rather too many."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from kdelta.guest.here import MOST_BYTES, MOUNTED

_OWN = ("/", "//", "/tmp", "/var/tmp")  # which it may write to
_SHELLS = frozenset(("sh", "bash", "dash", "ash", "csh", "fish", "ksh", "mksh", "tcsh", "yash", "zsh"))
# What starts the program that its words name, of coreutils, util-linux and what measures or traces.
_STARTERS = frozenset((
    "bwrap", "cgexec", "chroot", "chrt", "cpulimit", "dbus-run-session", "doas", "dumb-init", "eatmydata", "env",
    "expect", "faketime", "fakeroot", "find", "flock", "gdb", "heaptrack", "hyperfine", "ionice", "linux32",
    "linux64", "ltrace", "memusage", "multitime", "nice", "nohup", "nsenter", "numactl", "parallel", "perf",
    "prlimit", "rr", "runuser", "script", "setarch", "setpriv", "setsid", "stdbuf", "strace", "su", "sudo",
    "taskset", "time", "timeout", "tini", "trace-cmd", "uftrace", "unbuffer", "unshare", "valgrind", "watch",
    "xargs", "xvfb-run",
))  # fmt: skip
_WORD = re.compile(r"[\w./+:@-]+")
_MOST_BYTES = 64 << 10  # of a script; longer ones are rather data behind a shell's head


def _text(argv: Sequence[str], cwd: Path) -> str:
    """The commands that the shell ``argv[0]`` reads from its words."""
    options = [i for i, word in enumerate(argv[1:], 1) if re.fullmatch(r"-[a-z]*c", word)]
    if options:
        return argv[options[0] + 1] if options[0] + 1 < len(argv) else ""
    script = next((cwd / word for word in argv[1:] if not word.startswith("-")), None)
    return _script(script) if script is not None and os.path.isfile(script) else ""


def _script(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_MOST_BYTES).decode("utf-8", "replace")


def _is_script(path: Path) -> bool:
    """Whether a shell is the interpreter of the file."""
    first = _script(path).partition("\n")[0] if path.is_file() else ""
    return first.startswith("#!") and any(word.rpartition("/")[2] in _SHELLS for word in first[2:].split())


def programs(argv: Sequence[str], cwd: Path, search: str) -> tuple[str, ...]:
    """Programs that a command of a shell, or of what starts another, may start: words in ``search``, or absolute.

    Args:
        argv: the command, its program by absolute path.
    """
    if Path(argv[0]).name in _SHELLS:
        text = _text(argv, cwd)
    elif Path(argv[0]).name in _STARTERS:
        scripts = (cwd / word for word in argv[1:] if os.path.isfile(cwd / word))
        text = "\n".join(("sh", *argv[1:], *(_script(script) for script in scripts if _is_script(script))))
    else:
        text = _script(Path(argv[0])) if _is_script(Path(argv[0])) else ""
    found = (shutil.which(word, path=search) for word in dict.fromkeys(_WORD.findall(text)) if _may_be(word))
    return tuple(dict.fromkeys(path for path in found if path))


def typed(argv: Sequence[str]) -> tuple[str, ...]:
    """Absolute paths that commands on the command line name, as ``sh -c 'tar c /etc/apt | wc -c'``.

    Not those of scripts, whose comments name much that no run reads; nor what a guest has itself, or would be too much.
    """
    if Path(argv[0]).name not in _SHELLS | _STARTERS:
        return ()
    found = dict.fromkeys(
        word.removeprefix("file://") for text in argv[1:] if " " in text for word in _WORD.findall(text)
    )
    return tuple(word for word in found if word.startswith("/") and _is_readable(word))


def _is_readable(path: str) -> bool:
    plain = os.path.normpath(path)
    if plain in _OWN or any(plain == one or plain.startswith(f"{one}/") for one in MOUNTED):
        return False
    return os.path.isdir(path) or (os.path.isfile(path) and os.path.getsize(path) <= MOST_BYTES)


def _may_be(word: str) -> bool:
    return word.startswith("/") or ("/" not in word and not word.startswith(("-", ".")))

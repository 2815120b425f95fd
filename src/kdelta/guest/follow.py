# SPDX-License-Identifier: GPL-2.0-or-later
"""Which files a program opens: it is run once on this machine under strace, and what it found there is listed."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kdelta import distributions
from kdelta.errors import HostError, UserError

_LIMIT_S = 120
_CALLS = "execve,open,openat,openat2,stat,lstat,newfstatat,statx,access,faccessat,faccessat2,readlink,readlinkat,chdir"
# Of a call that went well: its name, the directory of its first argument where strace -y tells it, the path.
_CALL = re.compile(r'^(\w+)\((?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"((?:[^"\\]|\\.)*)"(\.\.\.)?(.*)\) = (?:0x)?[0-9]')
_ESCAPE = re.compile(r"\\([0-7]{1,3}|.)")
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "v": "\v", "f": "\f"}
_NOT_PACKED = ("/proc", "/dev", "/sys")


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda m: chr(int(m[1], 8)) if m[1][0] in "01234567" else _PLAIN.get(m[1], m[1]), text)


def opened(trace: str, cwd: Path) -> Iterator[Path]:
    """The paths that calls of one process found, as strace -y printed them; not what it made itself. Pure."""
    here = cwd
    for line in trace.splitlines():
        match = _CALL.match(line)
        if match is None or match[4] or "O_CREAT" in match[5] or "O_TRUNC" in match[5]:
            continue
        path = Path(match[2] or here) / _unescaped(match[3])
        if match[1] == "chdir":
            here = path
        if not str(path).startswith(_NOT_PACKED) and match[3]:
            yield path


def files_of(argv: Sequence[str], cwd: Path, env: Mapping[str, str], stdin: Path | None) -> list[Path]:
    """Run ``argv`` here and list the files that it and its children found, each once; its output is dropped.

    Raises:
        HostError: there is no strace, or it may not trace.
        UserError: the program does not end.
    """
    strace = shutil.which("strace")
    if strace is None:
        remedy = distributions.install("strace")
        raise HostError(f"--follow needs strace, which is not installed; install it with: sudo {remedy}")
    with tempfile.TemporaryDirectory(prefix="kdelta-follow-") as folder:
        command = [strace, "-ff", "-qq", "-y", "-s", "4096", "-e", f"trace={_CALLS}", "-o", f"{folder}/trace", *argv]
        with (stdin or Path("/dev/null")).open("rb") as source:
            try:
                done = subprocess.run(
                    command, cwd=cwd, env=dict(env), stdin=source, capture_output=True, timeout=_LIMIT_S, check=False
                )
            except subprocess.TimeoutExpired:
                raise UserError(f"--follow: {argv[0]} did not end within {_LIMIT_S} s on this machine") from None
        traces = sorted(Path(folder).iterdir())
        if not traces:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise HostError(f"--follow: strace did not work: {said[-1] if said else f'exit status {done.returncode}'}")
        found = (p for one in traces for p in opened(one.read_text(encoding="utf-8", errors="replace"), cwd))
        return list(dict.fromkeys(found))

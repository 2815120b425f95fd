# SPDX-License-Identifier: GPL-2.0-or-later
"""Stand-ins that speak what machines speak: U-Boot on a serial line, and adb and fastboot as programs."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Callable
from pathlib import Path

# Says what it was told; a shell command runs here. A file "refuse" beside it is what it answers with status 1.
_TOLD = """#!/bin/sh
{{ echo {name}; for word; do echo "<$word>"; done; }} >>'{told}'
[ ! -e '{told}.refuse' ] || {{ cat '{told}.refuse' >&2; exit 1; }}
"""
_ADB = _TOLD + '[ "$3" != shell ] || exec sh -c "$4"\n'


def program(folder: Path, name: str) -> None:
    """``adb`` or ``fastboot`` in ``folder``; what it is told is in its file ``told``."""
    folder.mkdir(exist_ok=True)
    text = _ADB if name == "adb" else _TOLD
    (folder / name).write_text(text.format(name=name, told=folder / "told"))
    (folder / name).chmod(0o755)


class UBootLine:
    """A serial line with U-Boot at its other end, from its first words until it starts a kernel.

    ``answer``: what a command says, and its status.
    """

    def __init__(self, answer: Callable[[str], tuple[str, int]] = lambda _: ("", 0)) -> None:
        self.commands: list[str] = []
        self._answer = answer
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        line, _ = self._server.accept()
        with line, line.makefile("rb") as typed:
            line.sendall(b"[ 9.1] reboot: Restarting system\r\n\r\nU-Boot 2023.01\r\nHit any key to stop autoboot:  2 ")
            typed.readline()
            line.sendall(b"\r\n=> ")
            for row in typed:
                if not self._said(line, row.decode().strip()):
                    return

    def _said(self, line: socket.socket, row: str) -> bool:
        """Answer one line; false where U-Boot is left by it."""
        line.sendall(row.encode() + b"\r\n")
        marked = re.fullmatch(r"echo '(.*)''(.*)'; (.*); echo \"\$\?\"; echo '.*''.*';", row)
        probe = re.fullmatch(r"echo '(.*)''(.*)'", row)
        if marked:
            self.commands.append(marked[3])
            said, status = self._answer(marked[3])
            marker = marked[1] + marked[2]
            line.sendall(f"{marker}\r\n{said}{status}\r\n{marker}\r\n=> ".encode())
        elif probe:
            line.sendall(f"{probe[1]}{probe[2]}\r\n=> ".encode())
        elif row:
            self.commands.append(row)
            with contextlib.suppress(OSError):  # nobody may listen any more
                line.sendall(b"Starting kernel ...\r\n\r\n")
            return False
        else:
            line.sendall(b"=> ")
        return True

    def close(self) -> None:
        """Wait for the end of what was said."""
        self._server.close()
        self._thread.join(timeout=10)

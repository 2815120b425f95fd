# SPDX-License-Identifier: GPL-2.0-or-later
"""A line to PostgreSQL that breaks at random: before an order arrives there, or before its answer does."""

from __future__ import annotations

import contextlib
import random
import select
import socket
import socketserver
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Literal

from sqlalchemy.engine import make_url

Fate = Literal["heard", "unsent", "unanswered"]
_SYNC = b"S\0\0\0\4"  # ends an order of the extended protocol (PostgreSQL's documentation, "Message Formats")
_READY = b"Z\0\0\0\5"  # ends the answer; one byte follows
_SOCKET = ".s.PGSQL.5432"
_CERTAIN: dict[int, Fate] = {3: "unsent", 6: "unanswered"}  # of COMMITs, which are too few to leave both to chance


class BadLine(socketserver.ThreadingUnixStreamServer):
    """Serves ``folder`` as the server in ``behind`` does; ``broken`` counts (fate, whether it was a COMMIT).

    ``at_commit`` is called beside each COMMIT that is on its way.
    """

    daemon_threads = True

    def __init__(self, behind: Path, folder: Path, share: float, dice: random.Random) -> None:
        self.behind, self.share, self.dice = behind / _SOCKET, share, dice
        self.broken: Counter[tuple[Fate, bool]] = Counter()
        self.commits = 0  # while the line is bad
        self.at_commit: Callable[[], None] | None = None
        super().__init__(str(folder / _SOCKET), _Connection)

    def fate(self, order: bytes) -> Fate:
        commit = order.startswith(b"Q") and b"COMMIT" in order
        if commit and self.at_commit is not None:
            Thread(target=self.at_commit).start()
        self.commits += commit and self.share > 0
        certain = _CERTAIN.get(self.commits) if commit and self.share > 0 else None
        if certain is None and self.dice.random() >= self.share:
            return "heard"
        fate: Fate = self.dice.choice(("unsent", "unanswered")) if certain is None else certain
        self.broken[fate, commit] += 1
        return fate


class _Connection(socketserver.BaseRequestHandler):
    server: BadLine

    def handle(self) -> None:
        with socket.socket(socket.AF_UNIX) as far, contextlib.suppress(OSError):  # an end that is gone is a broken line
            far.connect(str(self.server.behind))
            self._carry(self.request, far)

    def _carry(self, near: socket.socket, far: socket.socket) -> None:
        """Until one end hangs up, or the line breaks."""
        fate: Fate = "heard"
        while True:
            ready, _, _ = select.select([near, far], [], [])
            if near in ready:
                said = near.recv(1 << 16)
                if said.startswith(b"Q") or said.endswith(_SYNC):
                    fate = self.server.fate(said)
                if not said or fate == "unsent":
                    return
                far.sendall(said)
            if far in ready:
                said = far.recv(1 << 16)
                if fate == "heard" and said:
                    near.sendall(said)
                elif not said or said[-6:-1] == _READY:  # all of it is done there
                    return


@contextmanager
def bad_line(url: str, folder: Path, share: float, dice: random.Random) -> Iterator[tuple[str, BadLine]]:
    """(The URL of the same database over a line of which so large a ``share`` of all orders breaks, that line)."""
    parsed = make_url(url)
    with BadLine(Path(str(parsed.query["host"])), folder, share, dice) as line:
        thread = Thread(target=line.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield parsed.set(query={"host": str(folder)}).render_as_string(hide_password=False), line
        finally:
            line.shutdown()
            thread.join()

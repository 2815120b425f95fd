# SPDX-License-Identifier: GPL-2.0-or-later
"""The little of QEMU's monitor protocol that snapshots need (docs/interop/qmp-spec.rst)."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from kdelta.errors import HostError
from kdelta.machine import links

_GONE = "QEMU exited while its monitor was in use"


class Monitor:
    """A connection to one QEMU; events that arrive between answers are kept."""

    def __init__(
        self,
        path: Path,
        deadline: float,
        clock: Callable[[], float] = time.monotonic,
        alive: Callable[[], bool] = lambda: True,
    ) -> None:
        """``alive`` says whether QEMU still runs: one that ended at its start is not waited for until the deadline."""
        self._clock, self._alive = clock, alive
        self._deadline = deadline
        self._buffer = b""
        self.events: list[str] = []
        self.from_outside = False  # whether a signal to QEMU shut the guest down
        self._socket = self._connect(path)
        self._line()  # greeting
        self.command("qmp_capabilities")

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def _connect(self, path: Path) -> socket.socket:
        while True:
            try:
                return links.connected(path)
            except OSError as error:
                if not self._alive():
                    raise HostError("QEMU ended before its monitor answered") from None
                if self._clock() > self._deadline:
                    raise HostError(f"QEMU's monitor did not answer: {error}") from None
                time.sleep(0.002)

    def _line(self) -> dict[str, Any]:
        while b"\n" not in self._buffer:
            left = self._deadline - self._clock()
            if left <= 0:
                raise HostError("QEMU's monitor went silent")
            self._socket.settimeout(left)
            try:
                chunk = self._socket.recv(65536)
            except OSError as error:
                raise HostError(f"QEMU's monitor went silent: {error}") from None
            if not chunk:
                raise HostError(_GONE)
            self._buffer += chunk
        line, self._buffer = self._buffer.split(b"\n", 1)
        message: dict[str, Any] = msgspec.json.decode(line)
        if "event" in message:
            self.events.append(str(message["event"]))
            self.from_outside |= message.get("data", {}).get("reason") == "host-signal"
        return message

    def command(self, name: str, arguments: dict[str, Any] | None = None, fd: int | None = None) -> Any:
        """Run one command, with a file descriptor passed along when given; returns its ``return`` value."""
        body = msgspec.json.encode({"execute": name, "arguments": arguments or {}}) + b"\n"
        try:
            if fd is None:
                self._socket.sendall(body)
            else:
                socket.send_fds(self._socket, [body], [fd])
        except OSError:
            raise HostError(_GONE) from None
        while True:
            message = self._line()
            if "error" in message:
                raise HostError(f"QEMU refused {name}: {message['error'].get('desc', message['error'])}")
            if "return" in message:
                return message["return"]

    def wait_event(self, names: frozenset[str]) -> str:
        """The first event of ``names``, already seen or still to come."""
        while True:
            for event in self.events:
                if event in names:
                    return event
            self._line()

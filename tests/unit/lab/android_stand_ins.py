# SPDX-License-Identifier: GPL-2.0-or-later
"""A phone, as the real programs adb(1) and fastboot(1) see one: the server of the former, and a boot loader on TCP.

Source: the Android tree, packages/modules/adb (OVERVIEW.TXT, SERVICES.TXT, shell_protocol.h) and
system/core/fastboot/README.md.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import subprocess
import threading
from collections.abc import Callable

_SERVER_VERSION = b"0029"  # 41, of adb 1.0.41: a client of another version would start a server of its own
_STDOUT, _STDERR, _EXIT = 1, 2, 3


class _Served:
    """Connections on a port of its own, each answered by ``answer`` until it ends."""

    def __init__(self, answer: Callable[[socket.socket], None]) -> None:
        self._answer = answer
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                line, _ = self._server.accept()
            except OSError:
                return
            with line, contextlib.suppress(OSError, EOFError):
                self._answer(line)

    def close(self) -> None:
        self._server.close()


def _whole(line: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = line.recv(count - len(data))
        if not more:
            raise EOFError
        data += more
    return data


class Bootloader(_Served):
    """fastboot on TCP: what it was told, and the last file that it was sent."""

    def __init__(self) -> None:
        self.commands: list[str] = []
        self.image = b""
        super().__init__(self._talk)

    def _talk(self, line: socket.socket) -> None:
        line.sendall(b"FB01")
        _whole(line, 4)
        expected = 0
        while True:
            packet = _whole(line, int.from_bytes(_whole(line, 8), "big"))
            if expected:
                self.image += packet
                expected -= len(packet)
                said = b"" if expected else b"OKAY"
            else:
                self.commands.append(packet.decode())
                said = b"OKAY"
                if packet.startswith(b"download:"):
                    expected, self.image = int(packet[9:], 16), b""
                    said = b"DATA" + packet[9:]
                elif packet == b"getvar:product":
                    said = b"OKAYboard"
                elif packet.startswith(b"getvar:"):
                    said = b"FAILunknown variable"
            if said:
                line.sendall(len(said).to_bytes(8, "big") + said)


class AdbServer(_Served):
    """The server that adb(1) asks for the device 0123, whose shell is this machine's; it knows what it was told."""

    def __init__(self) -> None:
        self.services: list[str] = []
        super().__init__(self._talk)

    def _talk(self, line: socket.socket) -> None:
        """One request, or one for the device that the request before it has chosen."""
        service = self._asked(line)
        if service.startswith("host:tport:"):
            line.sendall(struct.pack("<Q", 1))
            service = self._asked(line)
        if service == "host:version" or service.endswith("features"):
            text = _SERVER_VERSION if service == "host:version" else b"shell_v2,cmd"
            line.sendall(b"%04x" % len(text) + text)
        elif ":wait-for-" in service:
            line.sendall(b"OKAY")
        elif service.startswith("shell,"):
            self._shell(line, service.partition(":")[2])

    def _asked(self, line: socket.socket) -> str:
        service = _whole(line, int(_whole(line, 4), 16)).decode()
        self.services.append(service)
        line.sendall(b"OKAY")
        return service

    def _shell(self, line: socket.socket, command: str) -> None:
        done = subprocess.run(["sh", "-c", command], capture_output=True, check=False)
        for kind, data in ((_STDOUT, done.stdout), (_STDERR, done.stderr), (_EXIT, bytes([done.returncode]))):
            if data:
                line.sendall(struct.pack("<BI", kind, len(data)) + data)
        line.shutdown(socket.SHUT_WR)
        while line.recv(4096):  # its input: closed before that is read, the line would be reset
            pass


def boot_image(image: bytes) -> tuple[bytes, bytes, str]:
    """Kernel, ramdisk and command line of an Android boot image of version 0 to 2 (bootimg.h)."""
    magic, kernel, ramdisk, page = struct.unpack("<8sI4xI16xI", image[:40])
    assert magic == b"ANDROID!"
    line = image[64:576].split(b"\0")[0] + image[608:1632].split(b"\0")[0]
    at = page + -(-kernel // page) * page
    return image[page : page + kernel], image[at : at + ramdisk], line.decode()

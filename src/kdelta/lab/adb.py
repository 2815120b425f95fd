# SPDX-License-Identifier: GPL-2.0-or-later
"""A machine whose own system is an Android: commands by adb(1), as labgrid's SSHDriver gives them for ssh.

labgrid has an ADBDriver in its tree, but not in what PyPI has (26.0). Nothing is copied there: fastboot takes the
kernel from here.
"""

from __future__ import annotations

import subprocess

from kdelta.errors import HostError
from kdelta.machine.process import find_program

_RESTART_S = 60


class Adb:
    """The device with this serial number (adb devices)."""

    def __init__(self, serial: str) -> None:
        self._argv = (str(find_program("adb", "adb")), "-s", serial)
        self.connection_timeout = 30.0

    def on(self) -> None:
        """Wait for it.

        Raises:
            HostError: it does not answer in time.
        """
        try:
            done = self._run("wait-for-device", timeout=self.connection_timeout)
        except subprocess.TimeoutExpired:
            raise HostError("nobody answered on adb") from None
        if done.returncode:
            raise HostError(f"adb: {done.stderr.strip() or done.returncode}")

    def run(self, line: str, timeout: float, decodeerrors: str) -> tuple[list[str], list[str], int]:
        """What a line of the shell says there; ``line`` may not need a terminal.

        Raises:
            subprocess.TimeoutExpired: it did not end.
        """
        done = self._run("shell", line, timeout=timeout, errors=decodeerrors)
        return done.stdout.splitlines(), done.stderr.splitlines(), done.returncode

    def reboot(self, mode: str) -> None:
        """Restart it, into its ``bootloader`` for one.

        Raises:
            HostError: adb refuses.
        """
        done = self._run("reboot", *filter(None, [mode]), timeout=_RESTART_S)
        if done.returncode:
            raise HostError(f"adb reboot: {done.stderr.strip() or done.returncode}")

    def _run(self, *words: str, timeout: float, errors: str = "replace") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._argv, *words],
            capture_output=True,
            text=True,
            errors=errors,
            timeout=timeout,
            check=False,
            stdin=subprocess.DEVNULL,
        )

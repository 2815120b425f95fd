# SPDX-License-Identifier: GPL-2.0-or-later
"""Boot loaders that are told from here what to start, by labgrid's drivers: U-Boot, its TFTP server, fastboot."""

from __future__ import annotations

import io
import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from kdelta.errors import HostError

_COMMAND_S = 300  # to load a file over a slow line
_ASK_AGAIN_S = 2.0


class Loaders:
    """``drivers``: labgrid's, by their kind; ``on`` and ``off`` activate one, and give it up."""

    def __init__(self, name: str, drivers: Mapping[str, Any], on: Callable[[Any], Any], off: Callable[[Any], None]):
        self._name, self._drivers, self._on, self._off = name, drivers, on, off

    def u_boot(self, commands: Sequence[str], last: str, limit_s: float) -> None:
        """Stop U-Boot as it starts (within ``limit_s``), run ``commands``, and leave it with the ``last``.

        Raises:
            HostError: its prompt does not come, or a command fails.
        """
        import pexpect

        driver = self._drivers["UBootDriver"]
        driver.login_timeout = max(driver.login_timeout, int(limit_s))
        try:
            self._on(driver)
            for command in commands:
                said, _, status = driver.run(command, timeout=_COMMAND_S)
                if status:
                    raise HostError(f"{self._name}: U-Boot: {command}: {' '.join(said[-1:]) or f'status {status}'}")
            driver.console.sendline(last)
        except pexpect.TIMEOUT:
            raise HostError(f"{self._name}: U-Boot's prompt {driver.prompt!r} did not come") from None
        except OSError as error:
            raise HostError(f"{self._name}: its serial console: {error}") from None
        finally:
            self._off(driver)

    def staged(self, path: Path) -> str:
        """Put a file on the TFTP server under its own name; returns the name that U-Boot asks for.

        Raises:
            HostError: it cannot be put there.
        """
        driver = self._on(self._drivers["TFTPProviderDriver"])
        try:
            name: str = driver.stage(str(path))
        except Exception as error:  # noqa: BLE001 - what ssh, the file system and labgrid raise
            raise HostError(f"{self._name}: {path.name} cannot be put on its TFTP server: {error}") from None
        return name

    def fastboot(
        self, words: Sequence[str], files: Sequence[Path], left_s: Callable[[], float], sleep: Callable[[float], None]
    ) -> None:
        """Run fastboot(1) with ``words`` and ``files`` once the device answers it; ``left_s``: until it must have.

        Raises:
            HostError: it does not answer, or fastboot fails.
        """
        driver = self._drivers["AndroidFastbootDriver"]
        while not self._answers(driver):
            if left_s() <= 0:
                raise HostError(f"{self._name}: nobody answered fastboot")
            sleep(_ASK_AGAIN_S)
        remote = bool(driver.fastboot.command_prefix)  # by ssh, where a shell reads the words
        quoted = [shlex.quote(word) if remote else word for word in words]
        try:
            with redirect_stdout(io.StringIO()):  # where labgrid prints what fastboot says
                driver(*quoted, *(_at(driver, path) for path in files))
        except subprocess.CalledProcessError as error:
            said = (error.output or b"").decode(errors="replace").strip().splitlines()
            raise HostError(f"{self._name}: fastboot: {' '.join(said[-1:]) or error.returncode}") from None

    def _answers(self, driver: Any) -> bool:
        try:
            with redirect_stdout(io.StringIO()):
                self._on(driver)("getvar", "product")
        except FileNotFoundError:
            raise HostError("fastboot is not installed: apt-get install fastboot") from None
        except Exception:  # noqa: BLE001 - no such device yet, in as many ways as labgrid has resources
            return False
        return True


def _at(driver: Any, path: Path) -> str:
    """The file on the host that has the device."""
    from labgrid.util.managedfile import ManagedFile

    file = ManagedFile(str(path), driver.fastboot)
    file.sync_to_resource()
    return str(file.get_remote_path())

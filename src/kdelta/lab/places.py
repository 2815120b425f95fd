# SPDX-License-Identifier: GPL-2.0-or-later
"""The machines that a worker of the fleet drives, and whether it may have one now.

A target of labgrid with a RemotePlace is its coordinator's: who uses it acquires the place first, by labgrid's own
program (its documentation, "labgrid-client"). Others are free unless another kdelta of this user has them.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from kdelta import distributions
from kdelta.errors import HostError
from kdelta.lab.boot import held, identity
from kdelta.lab.control import places_of
from kdelta.lab.describe import Described, described

_CLIENT_S = 60.0
_OURS = "You have already acquired"


class Places:
    """Machines by name, as ``FILE:NAME`` on this host; a place that was acquired by hand is not released here.

    Raises:
        UserError: a description is wrong, or two have one name.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = {described(text).name: text for text in texts}
        self._machines = {name: described(text) for name, text in self.texts.items()}
        self._places = {name: places_of(machine) for name, machine in self._machines.items()}
        self._acquired: dict[str, list[str]] = {}

    def survey(self) -> dict[str, dict[str, str]]:
        """What each machine is; see ``boot.identity``.

        Raises:
            HostError: one does not answer, or somebody else has it.
        """
        found = {}
        for name, machine in self._machines.items():
            if why := self.acquire(name):
                raise HostError(f"--on {self.texts[name]}: {why}")
            try:
                found[name] = identity(machine)
            finally:
                self.release(name)
        return found

    def acquire(self, name: str) -> str:
        """Have the machine for a while: "", or why it cannot be had now."""
        machine = self._machines[name]
        try:
            held(machine).close()
        except HostError as error:
            return str(error)
        mine = self._acquired.setdefault(name, [])
        for place in self._places[name]:
            why = _client(machine, place, "acquire")
            if not why:
                mine.append(place)
            elif _OURS not in why:
                self.release(name)
                return why
        return ""

    def release(self, name: str) -> None:
        """Let others have it."""
        for place in self._acquired.pop(name, []):
            _client(self._machines[name], place, "release")


def _client(machine: Described, place: str, what: str) -> str:
    """What labgrid-client complains of, "" where it obeyed."""
    beside = Path(sys.executable).with_name("labgrid-client")
    program = str(beside) if beside.exists() else shutil.which("labgrid-client")
    if program is None:
        return f"labgrid-client is not installed: {distributions.extra('lab')}"
    words = [program, "--config", str(machine.path), "--place", place, what]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=_CLIENT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"place {place}: {error}"
    said = [line for line in done.stderr.splitlines() if line.strip()]
    return (said[-1] if said else f"exit status {done.returncode}") if done.returncode else ""

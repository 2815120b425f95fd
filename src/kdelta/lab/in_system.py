# SPDX-License-Identifier: GPL-2.0-or-later
"""A boot whose kernel starts the installed system: kdelta's program runs in there, over ssh, beside all else.

The kernel's modules and its initramfs are those that its package has put there. The serial line is only listened to.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import shlex
from collections.abc import Mapping
from pathlib import Path

from kdelta.errors import HostError
from kdelta.guest import protocol
from kdelta.lab import hearing, start
from kdelta.lab.begin import Load
from kdelta.lab.control import Control
from kdelta.lab.one_boot import Boot, boot_id
from kdelta.machine import hardware, settings
from kdelta.model import State

_ASK_S = 5.0  # between two questions whether the system answers
_PEEK_S = 10.0
_QUIET_S = 3.0
_FETCH_S = 300.0  # beyond the program's limit, to end and to send what it wrote
_INITRAMFS = ("/boot/initrd.img-{}", "/boot/initramfs-{}.img", "/boot/initrd-{}")


class There:
    """Files of a machine, over ssh."""

    def __init__(self, control: Control) -> None:
        self._control = control

    def read(self, pattern: str) -> Mapping[str, str]:
        said = self._control.run(f'for f in {pattern}; do echo "$f $(cat $f 2>/dev/null | head -n 1)"; done', root=True)
        rows = (row.partition(" ") for row in said.splitlines())
        return {path: text.strip() for path, _, text in rows if text.strip()}

    def write(self, path: str, text: str) -> str:
        try:
            self._control.run(f"printf %s {shlex.quote(text)} >{shlex.quote(path)}", root=True)
        except HostError as error:
            return str(error)
        return ""


class InSystem(Boot):
    """As ``Boot``, but that the records come over ssh, from a system that the kernel has started."""

    _stream = b""
    _build: protocol.Build | None = None
    _refused = ""

    def _command_line(self, nonce: str) -> str:
        options, order = self.control.machine.options, self.order
        words = [f"console={options.console} panic=10", options.cmdline]
        words += ["mitigations=off"] if order.mitigations_off else []
        added = " ".join([*filter(None, [*words, order.kernel.cmdline]), f"kdelta.boot={nonce}"])
        self._word = f"kdelta.boot={nonce}"
        return start.installed_line(self.control.run("cat /proc/cmdline"), added)

    def started(self, folder: Path) -> tuple[str, ...]:
        """Send the kernel, and start it with the initramfs that its package made there.

        Raises:
            HostError: as of a Boot, or the kernel is not installed there.
        """
        options, kernel = self.control.machine.options, self.order.kernel
        self._there = self._folder()
        initramfs = self._initramfs(kernel.release)
        image = Path(kernel.image_path)
        names = (hashlib.sha256(image.read_bytes()).hexdigest(), initramfs)
        self._send(self._there, names[:1], (image,))
        load = Load(arch=kernel.arch, kernel=image, initramfs=(), cmdline=self.cmdline, there=self._there, names=names)
        self._begin(load)
        return (options.start, *names, self.cmdline)

    def _initramfs(self, release: str) -> str:
        tried = " ".join(shlex.quote(name.format(release)) for name in _INITRAMFS)
        script = f"for f in {tried}; do [ -f $f ] && [ -d /lib/modules/{shlex.quote(release)} ] && echo $f; done; true"
        found = self.control.run(script).splitlines()
        if not found:
            what = f"/lib/modules/{release} and /boot/initrd.img-{release}"
            raise HostError(f"{self.control}: --in-system needs {what} there: install the kernel's package")
        return found[0]

    def listen(self) -> None:
        """Until the installed system answers, then run the program there; or a panic, or the limit."""
        asked = heard_at = self._clock()
        while self._clock() <= self._deadline:
            data, now = self.control.heard(1.0), self._clock()
            self.line += data
            heard_at = now if data else heard_at
            if protocol.panic_of(bytes(self.line)) and now - heard_at > _QUIET_S:
                return
            if now - asked > _ASK_S:
                asked = now
                if self._answers():
                    return
        self.timed_out = True

    def _answers(self) -> bool:
        """Whether a system answers that is not the one before; where it runs the kernel, the program has run."""
        if not self.control.connected(_PEEK_S):
            return False
        try:
            now, cmdline = boot_id(self.control), self.control.run("cat /proc/cmdline")
        except HostError:  # it is going down
            now = self.before
        if now == self.before:
            self.control.disconnected()
            return False
        self.latest = now
        if self._word not in cmdline.split():
            self.cut_short = "the machine started its own system again, not the kernel"
            return True
        self._run()
        return True

    def _run(self) -> None:
        """Set the hardware, run the program, fetch its records, and restart the machine."""
        began = self._clock()
        files, options = There(self.control), self.control.machine.options
        try:
            version, notes = self.control.run("uname -v; base64 -w 0 /sys/kernel/notes").splitlines()[:2]
            self._build = protocol.Build(version, self.latest, notes)
            self._set(files)
            self._placed()
            self.first_sample_s = self._clock() - self.began
            said = self.control.run(
                self._script(options.hardware.cpus), root=True, limit_s=self.order.limit_s + _FETCH_S
            )
            self._stream = base64.b64decode(said, validate=True)
            self.facts = {**_temperature(files), **hardware.state(files)}
        except (HostError, binascii.Error, ValueError) as error:
            self.cut_short = str(error)
            self.timed_out = self._clock() - began > self.order.limit_s
        while data := self.control.heard(_QUIET_S if self.cut_short else 0.2):
            self.line += data
        if not self.timed_out:
            with contextlib.suppress(HostError):  # it is gone already
                self.control.reboot()

    def _set(self, files: There) -> None:
        """The hardware as its description wants it; the restart puts it back."""
        try:
            settings.apply(files, self.control.machine.options.hardware, lambda _: None)
        except HostError as error:
            self._refused = str(error)
            raise

    def _placed(self) -> None:
        """The program, its jobs and its data in a directory of this boot's own."""
        assert self.order.program is not None
        files = {"program": self.order.program, **{f"data/{name}": path for name, path in self.order.data.items()}}
        names = tuple(hashlib.sha256(path.read_bytes()).hexdigest() for path in files.values())
        self._send(self._there, names, tuple(files.values()))
        lines = [f"set -eu; cd {self._there}; rm -rf run; mkdir run run/data; chmod 755 run run/data"]
        for name, sent in zip(files, names, strict=True):
            lines.append(f"mkdir -p $(dirname run/{shlex.quote(name)}); cp {sent} run/{shlex.quote(name)}")
        lines.append(f"chmod 755 run/program; printf %s {shlex.quote(self.order.job_list)} >run/jobs")
        self.control.run("\n".join(lines), root=True)

    def _script(self, cpus: str) -> str:
        """Runs the program; what it wrote comes back as base64."""
        pinned = f"taskset -c {cpus} " if cpus else ""
        limit = f"timeout -s KILL {self.order.limit_s:.0f}"
        return (
            f"cd {self._there}/run; {limit} {pinned}./program --native --jobs jobs --data data --fd 3 3>stream "
            "</dev/null >said 2>&1 || true; base64 -w 0 stream; cd ..; rm -rf run"
        )

    def said(self) -> hearing.Said:
        return hearing.Said(self._stream, bytes(self.line).replace(b"\r\n", b"\n"))

    def outcome(self) -> tuple[State, str]:
        if self._refused:
            return "failed", self._refused
        parsed, said = protocol.parse(self._stream), self.said()
        state, reason = protocol.diagnose(parsed, said.console, self.timed_out, None)
        if state == "ok":
            records = (*parsed.records, *filter(None, [self._build]))
            wrong = hearing.differs(records, self.order.kernel, self.cmdline, self.before)
            return ("failed", wrong) if wrong else ("ok", "")
        if state == "lost" and self.cut_short:
            return state, f"{self.cut_short} ({reason})"
        return state, reason


def _temperature(files: There) -> dict[str, float]:
    """That of the CPUs, else of the first zone, in degrees C (sysfs-class-thermal)."""
    kinds = files.read("/sys/class/thermal/thermal_zone*/type")
    values = files.read("/sys/class/thermal/thermal_zone*/temp")
    of_cpus = [path for path, kind in kinds.items() if any(word in kind for word in ("x86_pkg_temp", "cpu", "soc"))]
    for path in (*of_cpus, *kinds):
        text = values.get(path.removesuffix("type") + "temp", "")
        if text.lstrip("-").isdigit():
            return {"temperature_c": int(text) / 1000}
    return {}

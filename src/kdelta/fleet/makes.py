# SPDX-License-Identifier: GPL-2.0-or-later
"""What this host is, and by what it would measure: found out once, when a worker starts."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import kdelta
from kdelta import digests, paths
from kdelta.errors import HostError
from kdelta.experiment import emulator
from kdelta.fleet.needs import Host, kind
from kdelta.guest import binary
from kdelta.kernel import sandbox, toolchain
from kdelta.machine import hostfacts, plugin, probe
from kdelta.machine.qemu import binary_name
from kdelta.model import Arch

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
# The parts of kdelta that decide what a boot gives, and what is booted; a new report or page makes no host another one.
_DECIDE = (
    *("attribution", "experiment", "guest", "kernel", "lab", "machine", "model", "spec", "stats", "units.py"),
    *("verdict", "results/cells.py", "results/definitions.py", "results/floors.py"),  # looks
    *("store/planned.py", "store/samples.py"),  # what a look left open; a run's samples as the figure that it reads
    *("fleet/needs.py", "fleet/units.py"),  # who may take what: an older host would not see a new need
)


def _code() -> str:
    """Digest of kdelta's own code, as far as it decides."""
    root = Path(kdelta.__file__).parent
    digest = hashlib.sha256()
    for part in _DECIDE:
        for path in sorted([root / part] if part.endswith(".py") else (root / part).rglob("*.py")):
            digest.update(f"{path.relative_to(root)}\0{digests.of_file(path)}\0".encode())
    return digest.hexdigest()


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def kvm() -> bool:
    """Whether KVM may be had: /dev/kvm opens, and no trial (``probe.decide_accel``) has shown that no guest runs."""
    known = probe.tried(paths.cache_dir())
    return probe.kvm_opens() and (known is None or known.works == "yes")


def _turns() -> str:
    """The place of the locks of ``turnstile``; containers that mount one cache have it together."""
    cache = paths.cache_dir()
    cache.mkdir(parents=True, exist_ok=True)
    found = cache.stat()
    return f"{found.st_dev}:{found.st_ino}"


def building(tools: toolchain.Toolchain) -> str:
    """What decides the kernels that are built with ``tools``, but their source."""
    return _digest(_code(), tools.id)


def survey(name: str, slots: int, note: Callable[[str], None] = lambda _: None) -> Host:
    """This machine as a host called ``name``; compiles the guest's program and the plugin where that was not done.

    ``note`` hears why boots of a kind cannot be made here.
    """
    makes: dict[str, str] = {}
    qemus: dict[str, str] = {}
    code = _code()
    for arch in get_args(Arch):
        if not toolchain.missing(arch) and (sandbox.off() or not sandbox.refused()):
            makes[kind("build", arch)] = building(toolchain.probe(arch))
        try:
            program = digests.of_file(binary.build(arch, cache=paths.cache_dir()))
            makes[kind("lab", arch)] = _digest(code, program)
            qemu = probe.find_qemu(binary_name(arch), arch)
            qemus[arch] = qemu.text
            makes[kind("timed", arch)] = _digest(code, program)
            if plugin.supports_plugins(qemu.path):
                built = plugin.build(paths.cache_dir())
                if why := plugin.refusal(qemu.path, built):
                    note(f"no exact boots of {arch} here: {why}; {plugin.COUNTS_IN}")
                    continue
                counter = digests.of_file(built)
                size = str(qemu.path.stat().st_size)
                makes[kind("exact", arch)] = _digest(code, program, counter, qemu.text, size)
                if arch == "x86_64" and (other := emulator.of_several_cpus(arch)):
                    makes[kind("several", arch)] = _digest(code, program, counter, other.text)
        except HostError as error:
            note(f"no boots of {arch} here: {error}")
    return Host(
        name=name,
        machine=_BOOT_ID.read_text().strip() if _BOOT_ID.exists() else "",
        turns=_turns(),
        slots=slots,
        version=kdelta.__version__,
        makes=makes,
        qemus=qemus,
        kvm=kvm(),
        cpus=os.cpu_count() or 1,
        memory_mib=hostfacts.memory_mib(),
    )

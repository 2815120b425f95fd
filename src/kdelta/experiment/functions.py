# SPDX-License-Identifier: GPL-2.0-or-later
"""The names of the functions of an experiment's kernels: from their images, else from a guest booted to tell them.

What cannot be had is a reason that stays with the experiment: a report without names says why.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from kdelta import paths
from kdelta.attribution.profiles import Symbols
from kdelta.errors import HostError
from kdelta.guest import image
from kdelta.guest.protocol import Done, Record, Trace
from kdelta.kernel import calls, naming
from kdelta.kernel.progress import Progress
from kdelta.kernel.symbols import NoSymbols
from kdelta.machine import boot, probe
from kdelta.machine.options import Accel, GuestSpec, common_port
from kdelta.model import Arch, Experiment, Kernel, MachineOptions
from kdelta.store.store import Store

_JOB = "kallsyms"  # guest/kallsyms.h
_LIMIT_S = 300.0  # of the job: 5 MB over an emulated UART


def _jobs() -> str:
    lines = ["kdelta-jobs 1", "set mode timed", "set seed 1", "set settle_ms 0", "set snapshot 0"]
    return "\n".join([*lines, f"job 0 {_JOB} limit_ms={int(1000 * _LIMIT_S)}", "end", ""])


def told(records: Iterable[Record]) -> bytes | None:
    """The text that a guest sent, None where it did not send all of it. Pure."""
    every = list(records)
    parts = sorted((r for r in every if isinstance(r, Trace) and r.name == _JOB), key=lambda r: r.part)
    ended = any(isinstance(r, Done) and r.state == "ok" for r in every)
    whole = ended and parts and [r.part for r in parts] == list(range(parts[0].parts))
    return b"".join(r.payload() for r in parts) if whole else None


def ask(kernel: Kernel, qemu: probe.Qemu, accel: Accel, program: Path) -> bytes | NoSymbols:
    """Boot ``kernel`` once for its /proc/kallsyms: the functions and ``_end``, no module's.

    Raises:
        HostError: QEMU cannot be run, or the disk is full.
    """
    folder = paths.cache_dir() / "boots"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        scratch = tempfile.TemporaryDirectory(prefix="names-", dir=folder)
    except OSError as error:
        raise HostError(f"cannot make a folder in {folder}: {error.strerror}") from None
    fixed = msgspec.structs.replace(kernel, cmdline=f"{kernel.cmdline} nokaslr".strip())  # as linked
    options = MachineOptions()
    with scratch as private:
        guest = GuestSpec(
            kernel=fixed,
            mode="timed",
            accel=accel,
            options=options,
            mitigations="default",
            qemu=qemu.path,
            qemu_version=qemu.version,
            folder=Path(private),
            port=common_port((kernel,), "timed"),
        )
        raw = boot.run(guest, image.payload(program, {}, _jobs()), options.boot_limit_s + _LIMIT_S)
    text = told(raw.records)
    if text is not None:
        return text
    failed = next((r.why for r in raw.records if isinstance(r, Done) and r.state != "ok"), "")
    return NoSymbols(failed or f"the guest {raw.state}: {raw.why}")


def learn(
    kernels: Iterable[Kernel],
    qemus: Mapping[Arch, probe.Qemu],
    accel: Accel,
    programs: Mapping[Arch, Path],
    progress: Progress,
) -> dict[str, str]:
    """Why kernels have no function names, by label, after their images and, where these do not tell, guests were asked.

    Raises:
        HostError: QEMU cannot be run, or the cache cannot be written.
    """
    missing: dict[str, str] = {}
    for kernel in kernels:
        found = naming.load(kernel)
        if not isinstance(found, NoSymbols):
            continue
        why = ""
        if naming.can_ask(kernel) and kernel.arch in qemus:
            progress.step(f"booting {kernel.label} for the names of its functions")
            said = ask(kernel, qemus[kernel.arch], accel, programs[kernel.arch])
            if isinstance(said, NoSymbols):
                why = said.why
            else:
                naming.keep_guest_text(kernel, said)
                found = naming.load(kernel)
        if isinstance(found, NoSymbols):
            missing[kernel.label] = found.why + (f"; its guest: {why}" if why else "")
    return missing


def noted(store: Store, experiment: Experiment, missing: Mapping[str, str]) -> Experiment:
    """Keep with ``experiment`` why kernels have no names."""
    if experiment.annotations.nameless == missing:
        return experiment
    annotations = msgspec.structs.replace(experiment.annotations, nameless=dict(missing))
    grown = msgspec.structs.replace(experiment, annotations=annotations)
    store.extend(grown)
    return grown


def _code(kernel: Kernel) -> Symbols | None:
    table = naming.load(kernel)
    if isinstance(table, NoSymbols):
        return None
    graph = calls.load(kernel, table)
    return calls.Code(table, None if isinstance(graph, NoSymbols) else graph)


def known() -> Callable[[Kernel], Symbols | None]:
    """What is known of a kernel's functions, looked up once for each image."""
    found: dict[str, Symbols | None] = {}

    def of(kernel: Kernel) -> Symbols | None:
        if kernel.image_sha256 not in found:
            found[kernel.image_sha256] = _code(kernel)
        return found[kernel.image_sha256]

    return of

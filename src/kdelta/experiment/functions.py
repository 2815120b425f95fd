# SPDX-License-Identifier: GPL-2.0-or-later
"""The names of the functions of an experiment's kernels: from their images, else from a guest booted to tell them.

What cannot be had is a reason that stays with the experiment: a report without names says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from kdelta.errors import UserError
from kdelta.experiment import ahead
from kdelta.experiment.boot_once import boot_once
from kdelta.experiment.work import Site, Work
from kdelta.guest.jobs import JobList
from kdelta.guest.protocol import Done, Record, Trace
from kdelta.kernel import naming
from kdelta.kernel.symbols import NoSymbols, SymbolTable
from kdelta.machine.options import common_port
from kdelta.model import Experiment, Kernel, MachineOptions, Progress
from kdelta.store.store import Store

_JOB = "kallsyms"  # guest/kallsyms.h
_LIMIT_S = 300.0  # of the job: 5 MB over an emulated UART


def told(records: Iterable[Record]) -> bytes | None:
    """The text that a guest sent, None where it did not send all of it. Pure."""
    every = list(records)
    parts = sorted((r for r in every if isinstance(r, Trace) and r.name == _JOB), key=lambda r: r.part)
    ended = any(isinstance(r, Done) and r.state == "ok" for r in every)
    whole = ended and parts and [r.part for r in parts] == list(range(parts[0].parts))
    return b"".join(r.payload() for r in parts) if whole else None


def ask(site: Site, kernel: Kernel) -> bytes | NoSymbols:
    """Boot ``kernel`` once for its /proc/kallsyms: the functions and ``_end``, no module's.

    Raises:
        HostError: QEMU cannot be run, or the disk is full.
    """
    fixed = replace(kernel, cmdline=f"{kernel.cmdline} nokaslr".strip())  # as linked
    jobs = JobList(mode="timed", lines=(f"job 0 {_JOB} limit_ms={int(1000 * _LIMIT_S)}",))
    plain = replace(site, options=MachineOptions(), port=common_port((kernel,), "timed"))
    raw = boot_once(plain, Work(kernel=fixed, jobs=jobs, limit_s=plain.options.boot_limit_s + _LIMIT_S))
    text = told(raw.records)
    if text is not None:
        return text
    failed = next((r.why for r in raw.records if isinstance(r, Done) and r.state != "ok"), "")
    return NoSymbols(failed or f"the guest {raw.state}: {raw.why}")


def missing(site: Site, kernels: Iterable[Kernel], progress: Progress) -> dict[str, str]:
    """Why kernels have no function names, by label, after their images and, where these do not tell, guests were asked.

    Raises:
        HostError: QEMU cannot be run, or the cache cannot be written.
    """
    whys: dict[str, str] = {}
    ahead.read()
    for kernel in kernels:
        found = naming.load(kernel)
        if not isinstance(found, NoSymbols):
            continue
        why = ""
        if naming.can_ask(kernel) and kernel.arch in site.qemus:
            progress.step(f"booting {kernel.label} to read its kallsyms")
            said = ask(site, kernel)
            if isinstance(said, NoSymbols):
                why = said.why
            else:
                naming.keep_guest_text(kernel, said)
                found = naming.load(kernel)
        if isinstance(found, NoSymbols):
            whys[kernel.label] = found.why + (f"; its guest: {why}" if why else "")
    return whys


def table_of(kernel: Kernel, site: Site, progress: Progress) -> SymbolTable:
    """The names of a kernel's functions, from its image or from a guest of it.

    Raises:
        UserError: it has none that its code proves.
    """
    missing(site, (kernel,), progress)
    table = naming.load(kernel)
    if isinstance(table, NoSymbols):
        raise UserError(f"{kernel.label}: its functions have no names, so nothing can be said of them: {table.why}")
    return table


def learn(store: Store, experiment: Experiment, site: Site, progress: Progress) -> Experiment:
    """Find the names of all kernels of ``experiment``, and keep with it why some have none."""
    whys = missing(site, experiment.kernels, progress)
    for label, why in whys.items():
        progress.note(f"{label}: no function names: {why}")
    return noted(store, experiment, whys)


def noted(store: Store, experiment: Experiment, whys: Mapping[str, str]) -> Experiment:
    """Keep with ``experiment`` why kernels have no names."""
    if experiment.annotations.nameless == whys:
        return experiment
    return store.annotate(experiment.id, lambda known: replace(known, nameless=dict(whys)))

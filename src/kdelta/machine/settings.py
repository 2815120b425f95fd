# SPDX-License-Identifier: GPL-2.0-or-later
"""Hardware as it is asked for: what is written where, in which order, and back. Files are reached by ``Files``.

Source: Documentation/admin-guide/pm/cpufreq.rst, intel_pstate.rst; Documentation/core-api/irq/irq-affinity.rst;
Documentation/ABI/testing/sysfs-devices-system-cpu.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from msgspec import Struct

from kdelta.errors import HostError
from kdelta.model import Hardware

_CPU = "/sys/devices/system/cpu"
_SMT = f"{_CPU}/smt/control"
_NO_TURBO, _BOOST = f"{_CPU}/intel_pstate/no_turbo", f"{_CPU}/cpufreq/boost"


class Files(Protocol):
    """Files of /sys and /proc, of this machine or of another."""

    def read(self, pattern: str) -> Mapping[str, str]:
        """The contents of all files that a pattern (glob(7)) names, without white space at their ends, by path."""

    def write(self, path: str, text: str) -> str:
        """ "", or why the kernel did not take it."""


class Write(Struct, frozen=True):
    """One file to be changed. ``firm``: it must take it; not every interrupt can be moved."""

    path: str
    before: str
    after: str
    firm: bool = True


def told(wanted: Hardware) -> dict[str, str]:
    """How a report says what was asked for."""
    said = {
        "governor": wanted.governor,
        "turbo": _on_off(wanted.turbo),
        "smt": _on_off(wanted.smt),
        "kept to CPUs": wanted.cpus,
    }
    set_ = {key: f"{value} (set)" for key, value in said.items() if value}
    return set_ | ({"interrupts": f"moved off CPU {wanted.cpus}"} if wanted.cpus else {})


def _on_off(value: bool | None) -> str:
    return {None: "", True: "on", False: "off"}[value]


def _smt(files: Files, wanted: Hardware) -> Iterator[Write]:
    """Threads first: a CPU that goes offline takes its frequency policy and its interrupts with it."""
    if wanted.smt is None:
        return
    found = files.read(_SMT).get(_SMT, "")
    if found not in ("on", "off"):
        if not wanted.smt and found in ("", "notsupported", "notimplemented"):
            return  # a core has one thread
        raise HostError(f"smt = {_on_off(wanted.smt)} cannot be set: {_SMT} says {found or 'nothing'}")
    yield Write(_SMT, found, _on_off(wanted.smt))


def _governor(files: Files, wanted: Hardware) -> Iterator[Write]:
    if not wanted.governor:
        return
    policies = files.read(f"{_CPU}/cpufreq/policy*/scaling_governor")
    if not policies:
        raise HostError("governor cannot be set: this machine shows no frequency scaling (cpufreq)")
    offered = files.read(f"{_CPU}/cpufreq/policy*/scaling_available_governors")
    for path, before in policies.items():
        known = offered.get(path.replace("scaling_governor", "scaling_available_governors"), "").split()
        if wanted.governor not in known:
            raise HostError(f"governor {wanted.governor!r} is not there: it offers {', '.join(known) or 'none'}")
        yield Write(path, before, wanted.governor)


def _turbo(files: Files, wanted: Hardware) -> Iterator[Write]:
    if wanted.turbo is None:
        return
    none, some = files.read(_NO_TURBO), files.read(_BOOST)
    if none:
        yield Write(_NO_TURBO, none[_NO_TURBO], "0" if wanted.turbo else "1")
    elif some:
        yield Write(_BOOST, some[_BOOST], "1" if wanted.turbo else "0")
    else:
        raise HostError(f"turbo cannot be set: there is neither {_NO_TURBO} nor {_BOOST}")


def _interrupts(files: Files, wanted: Hardware) -> Iterator[Write]:
    if not wanted.cpus:
        return
    measured, online = cpu_list(wanted.cpus), cpu_list(files.read(f"{_CPU}/online").get(f"{_CPU}/online", "0"))
    if missing := measured - online:
        raise HostError(f"cpus = {wanted.cpus}: CPU {min(missing)} is not online")
    others = ",".join(map(str, sorted(online - measured)))
    if not others:
        raise HostError(f"cpus = {wanted.cpus}: no CPU is left for interrupts")
    for path, before in files.read("/proc/irq/*/smp_affinity_list").items():
        if cpu_list(before) & measured:
            yield Write(path, before, others, firm=False)


_STEPS = (_smt, _governor, _turbo, _interrupts)


def cpu_list(text: str) -> frozenset[int]:
    """CPUs of a list as the kernel writes it: 0-3,8.

    Raises:
        ValueError: it is none.
    """
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return frozenset(found)


def apply(files: Files, wanted: Hardware, note: Callable[[tuple[Write, ...]], None]) -> tuple[Write, ...]:
    """Set what is wanted; each change is told to ``note``, with all before it, before it is made.

    Raises:
        HostError: this machine has not what is asked for, or does not let us.
    """
    done: tuple[Write, ...] = ()
    for step in _STEPS:
        for write in tuple(step(files, wanted)):
            if write.before == write.after:
                continue
            note((*done, write))
            why = files.write(write.path, write.after)
            if why and write.firm:
                note(done)
                raise HostError(f"{write.path} cannot be set to {write.after}: {why}")
            done = done if why else (*done, write)
    note(done)
    return done


def put_back(files: Files, done: tuple[Write, ...]) -> tuple[str, ...]:
    """Undo, the last change first; returns what could not be: files that are gone are none of it."""
    failed = []
    for write in reversed(done):
        now = files.read(write.path).get(write.path)
        if now is None or now == write.before:
            continue
        if why := files.write(write.path, write.before):
            failed.append(f"{write.path} to {write.before}: {why}")
    return tuple(failed)

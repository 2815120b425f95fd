# SPDX-License-Identifier: GPL-2.0-or-later
"""The functional gate: the kernels' own selftests, run in guests on both kernels and judged against the baseline.

Each kernel runs the tests of its own source. Where a test seems to fail anew, its program runs once more on both
kernels in new guests; only what fails again counts, the rest is called unsteady.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from kdelta.errors import UserError
from kdelta.experiment.boot_once import boot_once
from kdelta.experiment.programs import programs_for
from kdelta.experiment.survey import site, survey
from kdelta.experiment.work import Site, Work
from kdelta.guest import ktap
from kdelta.guest.jobs import JobList
from kdelta.guest.ktap import Ended
from kdelta.guest.protocol import Done, Output, Record, Value
from kdelta.kernel import selftests
from kdelta.kernel.selftests import Suite
from kdelta.kernel.sources import parse_kernel
from kdelta.model import Kernel, MachineOptions, Progress
from kdelta.units import counted

LIMIT_S = 300  # of one program; pidfd takes 98 s under emulation
_SHOWN = 5
_KTAP_BYTES = 1 << 20
_JOB = "selftest"
_BUILT = ("src", "src-debian")


class Outcome(Struct, frozen=True, kw_only=True):
    """What one kernel's tests said, by program (``pidfd:pidfd_test``)."""

    programs: dict[str, Ended]
    notes: tuple[str, ...] = ()


class Gate(Struct, frozen=True, kw_only=True):
    """The judgement of all kernels: ``failed`` is "" or the sentence that stops the result; KTAP by kernel label."""

    failed: str
    notes: tuple[str, ...]
    ktap: dict[str, str]


def suites(text: str) -> tuple[str, ...]:
    """``pidfd,clone3`` -> names of suites.

    Raises:
        UserError: no name of a suite.
    """
    return selftests.check_names([name.strip() for name in text.split(",") if name.strip()])


def refuse_unbuilt(texts: Sequence[str]) -> None:
    """Kernels whose source is not known have no selftests.

    Raises:
        UserError: naming the first.
    """
    for text in texts:
        if parse_kernel(text).kind not in _BUILT:
            raise UserError(f"--selftests: {text} is not built from source; write src:TREE or src:debian:VERSION")


def built(kernels: Sequence[Kernel]) -> bool:
    """Whether all kernels were built here from source."""
    return all(parse_kernel(kernel.spec).kind in _BUILT for kernel in kernels)


def _work(kernel: Kernel, own: Path, built: Sequence[Suite], jobs: JobList, limit_s: float) -> Work:
    programs = {"bin/sleep": own}  # pidfd_test executes /bin/sleep
    for suite in built:
        files = suite.programs | suite.files
        programs |= {f"selftests/{suite.name}/{name}": Path(path) for name, path in files.items()}
    return Work(kernel=kernel, jobs=jobs, limit_s=limit_s, programs=programs)


def _jobs(programs: Sequence[tuple[str, str]]) -> JobList:
    return JobList(
        mode="timed",
        lines=tuple(
            f"job {number} {_JOB} limit_ms={LIMIT_S * 1000} program=/selftests/{suite}/{name}"
            for number, (suite, name) in enumerate(programs)
        ),
    )


def read(records: Sequence[Record], programs: Sequence[tuple[str, str]], why: str) -> dict[str, Ended]:
    """The records of a guest by program; one that never ended has ``why``. Pure."""
    lines: dict[int, list[str]] = {number: [] for number in range(len(programs))}
    ends: dict[int, dict[str, int]] = {number: {} for number in lines}
    whys = dict.fromkeys(lines, why or "the guest ended before this program")
    for record in records:
        if isinstance(record, Output) and record.j in lines:
            lines[record.j].append(record.text)
        elif isinstance(record, Value) and record.j in ends and record.name in ("exit", "signal"):
            ends[record.j][record.name] = int(record.v)
        elif isinstance(record, Done) and record.j in whys:
            whys[record.j] = record.why
    return {
        f"{suite}:{name}": Ended(
            lines=tuple(lines[number]),
            exit=ends[number].get("exit"),
            signal=ends[number].get("signal"),
            why=whys[number],
        )
        for number, (suite, name) in enumerate(programs)
    }


def _run(site: Site, kernel: Kernel, built: Sequence[Suite], only: frozenset[str] | None = None) -> dict[str, Ended]:
    """The programs of ``built`` (or ``only`` some), run in one guest."""
    programs = [(s.name, name) for s in built for name in s.programs if only is None or f"{s.name}:{name}" in only]
    if not programs:
        return {}
    limit_s = site.options.boot_limit_s + LIMIT_S * min(len(programs), 20)
    raw = boot_once(site, _work(kernel, site.programs[kernel.arch], built, _jobs(programs), limit_s))
    return read(raw.records, programs, "" if raw.state == "ok" else f"the guest {raw.state}: {raw.why}")


def _site(kernels: tuple[Kernel, ...], machine: MachineOptions) -> Site:
    programs = programs_for(kernels, ())
    return site(kernels, machine, "timed", programs, survey(kernels, machine.kvm, machine.qemu, programs))


def _again(
    place: Site, kernels: tuple[Kernel, Kernel], built: tuple[Sequence[Suite], Sequence[Suite]], failed: list[str]
) -> tuple[list[str], list[str]]:
    """(those of ``failed`` that fail again, those that do not)."""
    only = frozenset(name.split(" > ")[0] for name in failed)
    both = [ktap.results(_run(place, kernel, suite, only)) for kernel, suite in zip(kernels, built, strict=True)]
    repeated = set(ktap.newly_failing(*both))
    return [n for n in failed if n in repeated], [n for n in failed if n not in repeated]


def _sentence(kernel: Kernel, baseline: Kernel, failed: Sequence[str], programs: Mapping[str, Ended]) -> str:
    shown = [name + _reason(programs.get(name.split(" > ")[0])) for name in failed[:_SHOWN]]
    more = f" and {len(failed) - _SHOWN} more" if len(failed) > _SHOWN else ""
    count = f"{counted(len(failed), 'selftest')} of {kernel.label}"
    return f"failed the gate: {count} worse than on {baseline.label}: {', '.join(shown)}{more}"


def _reason(ended: Ended | None) -> str:
    if ended is None or not (ended.why or ended.signal is not None):
        return ""
    return f" ({ended.why or f'killed by signal {ended.signal}'})"


def gate(kernels: tuple[Kernel, ...], names: Sequence[str], machine: MachineOptions, progress: Progress) -> Gate:
    """Run the suites ``names`` on all ``kernels`` and hold each against the first.

    Raises:
        UserError: a kernel without source, or a source without such a suite. HostError: no QEMU, no compiler.
    """
    built = [selftests.build_suites(parse_kernel(kernel.spec), names, progress) for kernel in kernels]
    place = _site(kernels, machine)
    outcomes = []
    for done, (kernel, suite) in enumerate(zip(kernels, built, strict=True)):
        progress.boots(done, len(kernels), f"selftests of {kernel.label}")
        outcomes.append(_run(place, kernel, suite))
    progress.boots(len(kernels), len(kernels), "selftests done")
    notes = dict.fromkeys(note for suite in built for one in suite for note in one.notes)
    sentences = []
    for index in range(1, len(kernels)):
        failed = ktap.newly_failing(ktap.results(outcomes[0]), ktap.results(outcomes[index]))
        if not failed:
            continue
        progress.note(f"{kernels[index].label}: {len(failed)} tests newly fail; running them again")
        failed, unsteady = _again(place, (kernels[0], kernels[index]), (built[0], built[index]), failed)
        notes |= dict.fromkeys(f"{name} is flaky: it failed once on {kernels[index].label}" for name in unsteady)
        if failed:
            sentences.append(_sentence(kernels[index], kernels[0], failed, outcomes[index]))
    return Gate(
        failed="; ".join(sentences),
        notes=(*notes, *(_count(k, o) for k, o in zip(kernels, outcomes, strict=True))),
        ktap={kernel.label: ktap.text(found)[:_KTAP_BYTES] for kernel, found in zip(kernels, outcomes, strict=True)},
    )


def _count(kernel: Kernel, programs: Mapping[str, Ended]) -> str:
    found = list(ktap.results(programs).values())
    counts = ", ".join(f"{found.count(word)} {word}" for word in ("ok", "not ok", "skip", "missing") if word in found)
    return f"selftests of {kernel.label}: {len(programs)} programs; {counts}"

# SPDX-License-Identifier: GPL-2.0-or-later
"""Which functions a case calls, and how often: the map, held against QEMU's own log of what it executes, no plugin."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from kdelta.cli.progress import Reporter
from kdelta.experiment import prepare
from kdelta.experiment.boot_once import SETTLE_MS
from kdelta.experiment.work import Site, Work
from kdelta.guest import image
from kdelta.guest.protocol import Repetition
from kdelta.kernel import elf, naming
from kdelta.kernel.resolve import resolve
from kdelta.kernel.sources import parse_kernel
from kdelta.kernel.spelling import fold
from kdelta.kernel.symbols import NoSymbols
from kdelta.machine import boot
from kdelta.machine.options import GuestSpec
from kdelta.model import Effort, Experiment, Kernel, MachineOptions, PlannedBoot, plans
from kdelta.spec.cases import parse_case
from kdelta.spec.workloads import catalogue
from kdelta.store.store import Store

CASES = (
    "syscalls/socketpair",
    "syscalls/create_unlink-0",
    "syscalls/sigaltstack",
    "syscalls/mq_send",
    "syscalls/getpid",
)
FUNCTIONS = ("unix_socketpair", "unix_create1", "vfs_unlink", "do_sigaltstack", "free_msg", "vfs_rename", "do_msgsnd")
_MARK = re.compile(rb"\x0f\x1f\x84\x00(..)MK", re.DOTALL)  # guest/mark.h
_BEGIN, _END, _PAUSE, _RESUME = 1, 2, 3, 4
_BLOCK = re.compile(r"^Trace \d+: \S+ \[[0-9a-f]+/([0-9a-f]+)/")
_NOT_RUN = re.compile(r"^Stopped execution of TB chain before \S+ \[([0-9a-f]+)\]")  # it is logged once more when it is
_INSTRUCTION = re.compile(r"^0x([0-9a-f]+):")
_BEFORE = 0x200  # bytes before a mark in which the block that holds it begins
_WRAPPER = "#!{python}\nimport os, sys\nos.execv({qemu!r}, [{qemu!r}, *sys.argv[1:], *{more!r}])\n"


def marks(program: Path) -> dict[int, int]:
    """What stands at which address of the guest's program: BEGIN, END, PAUSE, RESUME."""
    file = elf.parse(program.read_bytes())
    found = {}
    for match in _MARK.finditer(file.data):
        section = next(s for s in file.sections if s.executable and 0 <= match.start() - s.offset < s.size)
        op = int.from_bytes(match[1], "little") >> 12
        if op in (_BEGIN, _END, _PAUSE, _RESUME):
            found[section.address + match.start() - section.offset] = op
    return found


def starts_of(kernel: Kernel) -> dict[int, str]:
    table = naming.load(kernel)
    assert not isinstance(table, NoSymbols)
    every = zip(table.addresses, table.all_names, strict=True)
    return {int(at): fold(name) for at, name in every if fold(name) in FUNCTIONS and ".cold" not in name}


def called(log: Iterator[str], at: Mapping[int, int], starts: Mapping[int, str]) -> Counter[str]:
    """Calls of the functions in intervals that were ended, but where the task that is measured paused."""
    blocks: dict[int, list[int]] = {}  # the marks of each translated block, in order
    block, counting, now, found = 0, False, Counter[str](), Counter[str]()
    for line in log:
        if line.startswith("IN:"):
            block = 0
        elif match := _INSTRUCTION.match(line):
            address = int(match[1], 16)
            block = block or address
            blocks.setdefault(block, [])
            blocks[block] += [at[address]] if address in at else []
        elif match := _BLOCK.match(line):
            address = int(match[1], 16)
            for op in blocks.get(address, ()) if address < 1 << 47 else ():
                counting = op in (_BEGIN, _RESUME)
                found += now if op == _END else Counter()
                now = Counter() if op in (_BEGIN, _END) else now
            if counting and address in starts:
                now[starts[address]] += 1
        elif (match := _NOT_RUN.match(line)) and counting and int(match[1], 16) in starts:
            now[starts[int(match[1], 16)]] -= 1
    return found


def logged(site: Site, work: Work, folder: Path, starts: Mapping[int, str]) -> dict[str, float]:
    """Calls per operation of the only case of ``work``, in a guest that is booted for it under stock QEMU."""
    at = marks(site.programs["x86_64"])
    places = [f"{start:#x}..{start + 1:#x}" for start in starts]
    places += [f"{address - _BEFORE:#x}..{address + 8:#x}" for address in at]
    more = ["-d", "in_asm,exec,nochain", "-dfilter", ",".join(places), "-D", str(folder / "log")]
    qemu = site.qemus["x86_64"]
    wrapper = folder / "qemu"
    wrapper.write_text(_WRAPPER.format(python=sys.executable, qemu=str(qemu.path), more=more))
    wrapper.chmod(0o755)
    guest = GuestSpec(
        kernel=work.kernel, mode="exact", accel="tcg", options=MachineOptions(), mitigations="default", qemu=wrapper,
        qemu_version=qemu.version, folder=folder,
    )  # fmt: skip
    payload = image.payload(site.programs["x86_64"], work.data, work.jobs.text(settle_ms=SETTLE_MS))
    raw = boot.run(guest, payload, 180)
    assert raw.state == "ok", raw.why
    ops = sum(one.ops for one in raw.records if isinstance(one, Repetition))
    with open(folder / "log", encoding="ascii", errors="replace") as log:
        return {name: calls / ops for name, calls in called(log, at, starts).items() if calls}


@pytest.mark.full
def test_the_map_is_what_qemu_logs_without_the_plugin(kdelta, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    named = [word for case in CASES for word in ("--case", case)]
    got = json.loads(kdelta("reach", "debian:6.12/cloud", *FUNCTIONS, *named, "--json", "-q").stdout)
    told: dict[str, dict[str, float]] = {case: {} for case in CASES}
    for one in got["functions"]:
        for row in one["cases"]:
            told[row["case"]][one["function"]] = row["calls_per_op"]
    kernel = resolve(parse_kernel("debian:6.12/cloud"))
    starts = starts_of(kernel)
    assert set(starts.values()) == set(FUNCTIONS)
    for case in CASES:
        (asked,) = parse_case(case, catalogue())
        experiment = Experiment(
            id="log", mode="exact", kernels=(kernel,), cases=(asked,), blocks=1, plan=plans.Run(),
            effort=Effort(repetitions=1, seeds=1),
        )  # fmt: skip
        with Store(f"sqlite:///{tmp_path}/x.sqlite") as store, tempfile.TemporaryDirectory() as folder:
            job = prepare.prepare(experiment, store, Reporter(quiet=True))
            work = job.work(PlannedBoot(block=0, slot=0, kernel=0))
            assert isinstance(work, Work)
            assert logged(job.site, work, Path(folder), starts) == told[case], case
    assert [len(one) for one in told.values()] == [2, 1, 1, 1, 0]

# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta doctor: what this machine can do, and the remedy for what it cannot."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Literal

import click

from kdelta import distributions
from kdelta.cli._say import say
from kdelta.errors import UserError

EPILOG = """\b
Examples:
  kdelta doctor
  kdelta doctor --json
  kdelta doctor --fix                    the one line that installs what is missing
"""
_NARROW = 60  # columns; below that a finding begins under its name
Level = Literal["ok", "limited", "missing"]


@dataclass(frozen=True)
class Finding:
    """One ability of this machine: ``remedy`` is empty when there is nothing to do.

    ``packages`` are what --fix installs, ``optional`` those that it names beside them, by Debian's names.
    """

    name: str
    level: Level
    text: str
    remedy: str = ""
    packages: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


def _lacks(name: str, text: str, packages: str, level: Level = "missing") -> Finding:
    """What a package would mend."""
    return Finding(name, level, text, distributions.install(packages), tuple(packages.split()))


def _could(name: str, text: str, packages: str, level: Level = "limited") -> Finding:
    """What a package would add for those who want it."""
    return Finding(name, level, text, distributions.install(packages), optional=tuple(packages.split()))


def _program(name: str, program: str, package: str, purpose: str) -> Finding:
    path = shutil.which(program)
    if path is None:
        return _lacks(name, f"{program} is not installed: {purpose}", package)
    return Finding(name, "ok", f"{program} is installed: {purpose}")


def _qemu(name: str, arch: str, package: str) -> Finding:
    from kdelta import paths
    from kdelta.errors import HostError
    from kdelta.machine import plugin, probe
    from kdelta.machine.qemu import binary_name

    try:
        found = probe.find_qemu(binary_name(arch), arch)
    except HostError as error:
        return _lacks(name, str(error).removesuffix(f": {distributions.install(package)}"), package)
    if not plugin.supports_plugins(found.path):
        return Finding(
            name, "limited", f"QEMU {found.text} has no TCG plugins: no exact mode", "use the QEMU of a distribution"
        )
    try:
        made = plugin.build(paths.cache_dir())
    except HostError as error:  # of the compiler or the cache, which have findings of their own
        return Finding(name, "limited", f"QEMU {found.text}: no exact mode ({error})")
    try:
        why = plugin.refusal(found.path, made)
    except HostError as error:
        why = str(error)
    if why:
        return Finding(name, "limited", f"QEMU {found.text}: no exact mode ({why})", plugin.COUNTS_IN)
    return Finding(name, "ok", f"QEMU {found.text}, with plugins: exact mode works")


def _kvm() -> Finding:
    from kdelta import paths
    from kdelta.machine import probe

    if not os.path.exists("/dev/kvm"):
        return Finding("kvm", "limited", "no /dev/kvm: exact counts, and emulated time", "enable virtualisation")
    if not probe.kvm_opens():
        return Finding("kvm", "limited", "no permission to open /dev/kvm", "add your user to the group kvm")
    known = probe.tried(paths.cache_dir())
    if known is None:
        return Finding(
            "kvm", "limited", "/dev/kvm can be opened; not tried yet (the first compare boots a guest under it)"
        )
    if known.works == "yes":
        return Finding("kvm", "ok", "a stock guest ran under KVM: timed mode works")
    return Finding(
        "kvm",
        "limited",
        f"/dev/kvm can be opened, but no stock guest ran ({known.why})",
        "exact mode does not need it",
    )


def _cache() -> Finding:
    from kdelta import paths
    from kdelta.kernel import cache

    text, remedy = cache.shortcoming()
    if text:
        return Finding("cache", "limited", text, remedy)
    return Finding("cache", "ok", f"kernels, snapshots and what is built have space in {paths.cache_dir()}")


def _builds() -> Finding:
    from kdelta.kernel import toolchain

    packages = toolchain.missing("x86_64")
    if packages:
        text = f"src: kernels cannot be built: {', '.join(packages)} missing"
        return _lacks("kernel builds", text, " ".join(packages))
    return Finding("kernel builds", "ok", "src: kernels can be built")


def _sandbox() -> Finding:
    from kdelta.kernel import sandbox

    if why := sandbox.refused():
        text = f"src: kernels are built with --unsandboxed alone: {why}"
        if package := sandbox.lacking():
            return _lacks("build sandbox", text, package, "limited")
        return Finding("build sandbox", "limited", text, sandbox.remedy())
    return Finding("build sandbox", "ok", "builds have no network and see no files of yours")


def _noise() -> Finding:
    """Spread of a short fixed computation on this machine, now: a rough word, not a calibration."""
    import time

    from kdelta.machine import hostfacts

    spans = []
    for _ in range(60):
        start = time.perf_counter_ns()
        sum(range(40_000))
        spans.append(time.perf_counter_ns() - start)
    spans.sort()
    return _noise_said(spans[int(len(spans) * 0.9)] / spans[len(spans) // 2], hostfacts.snapshot().get("load1", 0.0))


def _noise_said(ratio: float, load: float) -> Finding:
    """What it means that the slowest tenth of equal runs takes ``ratio`` of their median or more."""
    longer = f"{ratio:.0f} times as long" if ratio >= 2 else f"{100 * (ratio - 1):.1f} % longer"
    text = f"one run in ten of the same work takes {longer}, load {load:.2f}"
    if ratio < 1.05 and load < 0.5:
        return Finding("noise", "ok", f"quiet: {text}")
    remedy = "counts do not mind; stop other work before --timed (kdelta calibrate measures the noise floor)"
    return Finding("noise", "limited", f"not quiet: {text}", remedy)


def _governor() -> Finding:
    from pathlib import Path

    path = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    if not path.exists():
        return Finding("frequency", "ok", "no CPU frequency scaling is visible here")
    governor = path.read_text().strip()
    if governor == "performance":
        return Finding("frequency", "ok", "governor: performance")
    return Finding("frequency", "limited", f"governor: {governor}", "cpupower frequency-set -g performance")


def _hardware() -> Finding:
    from kdelta.machine import kept

    if left := kept.left():
        text = f"{len(left)} settings are not as they were ({left[0].path}): a kdelta is at work, or was killed"
        return Finding("hardware", "limited", text, "sudo kdelta run --case getppid puts them back")
    return Finding("hardware", "ok", "no setting of a killed kdelta is left (kdelta run --hardware)")


def _lab() -> Finding:
    """--on: labgrid, and the programs that some machines need."""
    import importlib.util

    if importlib.util.find_spec("labgrid") is None:
        return Finding("lab", "limited", "labgrid is not installed (optional): --on", distributions.extra("lab"))
    tools = {"ssh": "openssh-client", "fastboot": "fastboot", "adb": "adb"}
    lacking = {tool: package for tool, package in tools.items() if shutil.which(tool) is None}
    if lacking:
        text = f"labgrid is installed; not here: {', '.join(lacking)} (machines that are reached by them)"
        return _could("lab", text, " ".join(lacking.values()))
    return Finding("lab", "ok", "labgrid is installed, and ssh, adb and fastboot")


def _perf() -> Finding:
    program = shutil.which("perf")
    if program is None:
        return _could("pmu", "perf is not installed (optional)", "linux-perf")
    done = subprocess.run(
        [program, "stat", "-x,", "-e", "instructions:u", "true"], capture_output=True, text=True, check=False
    )
    if done.returncode or "not supported" in done.stderr or "not counted" in done.stderr:
        return Finding("pmu", "limited", "no hardware counters (PMU) here: exact mode counts by emulation")
    return Finding("pmu", "ok", "hardware counters work")


def _suites() -> list[Finding]:
    """A line for each suite of programs: whether they are installed."""
    from kdelta.guest import suite_programs
    from kdelta.spec import suites

    found = []
    for suite in suites.suites().values():
        if not suite.programs:
            continue
        if lacking := suite_programs.missing(suite):
            text = f"--suite {suite.name}: {', '.join(lacking)} not installed (optional)"
            if suite.get:
                found.append(Finding(f"suite {suite.name}", "missing", text, suite.remedy))
            else:
                found.append(_could(f"suite {suite.name}", text, suite.package, "missing"))
        else:
            found.append(Finding(f"suite {suite.name}", "ok", f"--suite {suite.name}: its programs are installed"))
    return found


CROSS = "gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
CHECKS: tuple[Callable[[], Finding], ...] = (
    lambda: _qemu("qemu x86-64", "x86_64", "qemu-system-x86"),
    lambda: _qemu("qemu arm64", "arm64", "qemu-system-arm"),
    _kvm,
    _cache,
    lambda: _program("compiler", "gcc", "gcc libc6-dev", "compiles the guest's programs and the plugin"),
    lambda: _program("cross compiler", "aarch64-linux-gnu-gcc", CROSS, "arm64 guests"),
    _builds,
    _sandbox,
    lambda: _program("ccache", "ccache", "ccache", "faster rebuilds of src: kernels"),
    lambda: _program("archive", "apt-get", "apt debian-archive-keyring", "debian: kernels"),
    lambda: _program("memory pressure", "stress-ng", "stress-ng", "cases under memory pressure"),
    _perf,
    _governor,
    _hardware,
    _lab,
    _noise,
)  # fmt: skip


@click.command(epilog=EPILOG)
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@click.option("--fix", is_flag=True, help="Print the one line that installs what is missing; it is not run.")
def command(as_json: bool, fix: bool) -> int:
    """Show what this machine can do, with a remedy for each thing that it cannot."""
    if fix and as_json:
        raise UserError("--fix and --json exclude each other: give one of them")
    findings = [check() for check in CHECKS] + _suites()
    if fix:
        _print_fix(findings)
        return 0
    if as_json:
        import json

        say(json.dumps({"findings": [asdict(finding) for finding in findings]}, indent=2))
        return 0
    width = shutil.get_terminal_size(fallback=(0, 0)).columns
    for finding in findings:
        say("\n".join(_lines(finding, width)))
    return 0


def _lines(finding: Finding, width: int) -> list[str]:
    """A finding for a terminal of ``width`` columns; 0: a file or pipe, where lines stay whole."""
    import textwrap

    narrow = 0 < width < _NARROW
    indent = 4 if narrow else 26
    head = f"{finding.level:8} {finding.name:16} "
    lines = [head.rstrip()] if narrow else []
    space = " " * indent
    for first, rest, text in (
        (space if narrow else head, space, finding.text),
        (f"{space}-> ", f"{space}   ", finding.remedy),
    ):
        lines += textwrap.wrap(
            text,
            width or 10**6,
            initial_indent=first,
            subsequent_indent=rest,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return lines


def _print_fix(findings: list[Finding]) -> None:
    """The line for a shell, alone on standard output; on standard error the one for what few need."""
    root = "" if os.geteuid() == 0 else "sudo "
    packages = tuple(dict.fromkeys(package for finding in findings for package in finding.packages))
    wanting = [finding for finding in findings if finding.optional]
    if packages:
        say(root + distributions.install(packages))
    elif wanting:
        say("nothing to install: no package that kdelta needs is missing", err=True)
    else:
        say("nothing to install: every package that kdelta uses is here", err=True)
    if wanting:
        optional = dict.fromkeys(package for finding in wanting for package in finding.optional)
        names = ", ".join(finding.name for finding in wanting)
        say(f"optional ({names}): {root}{distributions.install(optional)}", err=True)

# SPDX-License-Identifier: GPL-2.0-or-later
"""What several subcommands take: cases, the machine to run them on, and quantities."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import click
from click.core import ParameterSource

from kdelta.errors import UserError

if TYPE_CHECKING:
    from kdelta.experiment.templates import Asked
    from kdelta.model import Case, Effort, MachineOptions
    from kdelta.spec.workloads import Workload

F = TypeVar("F", bound=Callable[..., Any])

_DURATION = re.compile(r"^(\d+(?:\.\d+)?)\s*(s|m|min|h|)$")
_SCALE = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def seconds(text: str | None, option: str) -> float | None:
    """``20m`` -> 1200.0 s.

    Raises:
        UserError: not a duration.
    """
    if text is None:
        return None
    match = _DURATION.match(text.strip())
    if match is None or float(match.group(1)) <= 0:
        raise UserError(f"{option} {text!r} is not a duration such as 90s, 20m or 1h")
    return float(match.group(1)) * _SCALE[match.group(2)]


def turns(text: str) -> tuple[int, ...]:
    """``200`` or ``200,400,800`` -> lengths of turns in ns, in the order given.

    Raises:
        UserError: not such numbers, or out of 20 .. 1,000,000.
    """
    pieces = [piece.strip() for piece in text.split(",")]
    found = tuple(int(piece) for piece in pieces if piece.isascii() and piece.isdigit())
    if len(found) != len(pieces) or not all(20 <= one <= 1_000_000 for one in found) or len(set(found)) != len(found):
        raise UserError(f"--turn {text!r}: give a length in ns from 20 to 1000000, or several as in 200,400,800")
    return found


def percentage(text: str | None, option: str) -> float | None:
    """``1%`` or ``1`` -> 1.0.

    Raises:
        UserError: not a positive percentage.
    """
    if text is None:
        return None
    try:
        value = float(text.strip().removesuffix("%"))
    except ValueError:
        value = 0.0
    if not 0 < value < 1000:
        raise UserError(f"{option} {text!r} is not a percentage such as 1%")
    return value


def decorate(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several click options as one decorator, shown in the order given."""

    def apply(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return apply


@dataclass(frozen=True, kw_only=True)
class CaseArgs:
    """Values of ``case_options``."""

    cases: tuple[str, ...]
    suites: tuple[str, ...]
    workloads: tuple[Path, ...]
    memcg: bool
    limit: str | None

    @property
    def folders(self) -> tuple[Path, ...]:
        """All places of the user's own workloads: directories, and C files that cases are named by."""
        from kdelta.spec.cases import own_sources

        return own_sources(self.workloads, self.cases)

    @property
    def named(self) -> bool:
        """Whether the user says which cases."""
        return bool(self.cases or self.suites or self.workloads)

    def chosen(
        self, pressure: str | None = None, default: Sequence[str] = (), native: bool = False
    ) -> tuple[Case, ...]:
        """The cases asked for, else ``default``; with --memcg each one twice; all of them under ``pressure``."""
        from kdelta.guest import suite_programs
        from kdelta.spec import cases as grammar

        workloads = load_workloads(self.folders)
        if self.folders:
            from kdelta.experiment.programs import compiled_here

            compiled_here(self.folders)  # what is wrong with them is told before a kernel is fetched
        texts = self.cases if self.named else tuple(default)
        found = grammar.chosen(texts, self.suites, self.workloads, workloads)
        return self.surrounded(suite_programs.packed(found, workloads, native), pressure)

    def surrounded(self, cases: Sequence[Case], pressure: str | None = None) -> tuple[Case, ...]:
        """``cases`` in the cgroups that are asked for, under ``pressure``."""
        import msgspec

        from kdelta.guest import pressure as memory

        found = in_groups(cases, self.memcg)
        if pressure is not None:
            found = tuple(msgspec.structs.replace(case, pressure=memory.parse(pressure)) for case in found)
        return found

    def effort(self, *, pmu: bool = False, **changes: Any) -> Effort:
        """How much is sampled, with the run's time limit where one is given; ``pmu``: by the CPU's counters too."""
        from kdelta.model import Effort

        if pmu:
            from kdelta.results.definitions import PMU_WINDOWS

            changes["pmu_windows"] = PMU_WINDOWS

        limit_s = seconds(self.limit, "--limit")
        if limit_s is None:
            return Effort(**changes)
        return Effort(**changes, limit_ms=max(1, round(1000 * limit_s)), limit_given=True)


@dataclass(frozen=True, kw_only=True)
class MachineArgs:
    """Values of ``machine_options``."""

    smp: int
    memory: int
    kvm: Literal["auto", "on", "off"]
    qemu: str
    seed: int | None
    turn: tuple[int, ...]

    several_turns: ClassVar[bool] = False  # whether the subcommand takes more than one length of turns

    def options(self, *, native: bool = False, rep_features: bool = False) -> MachineOptions:
        """What the guests look like.

        Raises:
            UserError: several lengths of turns, where one experiment has one; more memory than there is.
        """
        from kdelta.cli import _given
        from kdelta.model import MachineOptions

        _given.refuse_large(self.memory)
        if len(self.turn) > 1 and not self.several_turns:
            raise UserError("--turn takes one length; several are compared by kdelta scale --exact")
        return MachineOptions(
            smp=self.smp,
            memory_mib=self.memory,
            kvm=self.kvm,
            qemu=self.qemu,
            native=native,
            rep_features=rep_features,
            turn_ns=self.turn[0],
        )


@dataclass(frozen=True, kw_only=True)
class MeasureArgs(CaseArgs, MachineArgs):
    """What most subcommands take: cases, and the machine to run them on."""

    def asked(
        self,
        cases: Sequence[Case],
        effort: Effort | None = None,
        *,
        mitigations: Literal["default", "off", "both"] = "default",
        native: bool = False,
        rep_features: bool = False,
    ) -> Asked:
        """What every kind of experiment takes."""
        from kdelta.experiment.templates import Asked

        return Asked(
            cases=tuple(cases),
            mitigations=("default", "off") if mitigations == "both" else (mitigations,),
            machine=self.options(native=native, rep_features=rep_features),
            effort=effort or self.effort(),
            folders=self.folders,
            command=command_line(),
        )


workloads_option = click.option(
    "--workloads",
    multiple=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="A directory of your own C files: CASEs, workloads with a TOML file, or will-it-scale testcases (as wis/NAME). All of them run unless --case or --suite says which.",
)


def case_options_by(default: str) -> Callable[[F], F]:
    """The options that choose cases; ``default`` is what runs without any, "" where one must be given."""
    shown = f"  [default: {default}]" if default else ""
    return decorate(
        click.option(
            "--case",
            "-c",
            "cases",
            multiple=True,
            metavar="CASE",
            help="A case such as pipe:writers=1|2,message=64K, a pattern such as 'syscalls/poll-*', or a C file of yours; repeatable.",
        ),
        click.option(
            "--suite",
            "suites",
            multiple=True,
            metavar="SUITE",
            help="All cases of a suite (kdelta cases list has them); repeatable." + shown,
        ),
        workloads_option,
        click.option("--memcg", is_flag=True, help="Run every case in the root cgroup and in a child memcg."),
        click.option(
            "--limit",
            metavar="TIME",
            help="Time limit of one run of a case, by the clock on the wall.  [default: 60s; exact: of the guest's clock]",
        ),
    )


case_options = case_options_by("patches")
pressure_option = click.option(
    "--pressure",
    metavar="NxP%",
    help="Memory pressure during every case: N stress-ng workers that hold P% of the guest's memory, as in 2x60%.",
)
pmu_option = click.option(
    "--pmu",
    is_flag=True,
    help="Timed: also count instructions, cycles, cache misses and branch misses by the CPU's own counters, in windows of their own.",
)


class _Mebibytes(click.IntRange):
    """A size in MiB, or with its unit as in 4G."""

    name = "size"
    _FORM = re.compile(r"([0-9]{1,9})([MGT])(?:i?B)?", re.IGNORECASE)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, str) and (match := self._FORM.fullmatch(value.strip())):
            value = int(match[1]) << {"M": 0, "G": 10, "T": 20}[match[2].upper()]
        try:
            size: int = super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is not a size from {self.min} MiB to 1T, as in 2048 (MiB) or 4G", param, ctx)
        return size


memory_option = click.option(
    "--memory",
    type=_Mebibytes(256, 1 << 20),
    default=1024,
    show_default=True,
    metavar="SIZE",
    help="Memory of a guest in MiB, or as in 4G.",
)
machine_options = decorate(
    click.option(
        "--smp", type=click.IntRange(1, 512), default=1, show_default=True, help="CPUs of a guest (exact: up to 64)."
    ),
    click.option(
        "--turn",
        default="200",
        show_default=True,
        metavar="NS",
        callback=lambda _context, _option, text: turns(text),
        help="Exact: of several CPUs, how long each runs before the next does, in virtual ns (instructions).",
    ),
    memory_option,
    click.option(
        "--kvm",
        type=click.Choice(["auto", "on", "off"]),
        default="auto",
        show_default=True,
        help="KVM for timed guests.",
    ),
    click.option("--qemu", default="", metavar="PATH", help="The QEMU to use instead of the one on PATH."),
    click.option(
        "--seed",
        type=click.IntRange(0, 2**31 - 1),
        default=None,
        help="Seed of the schedule (timed) or of the perturbations (exact).",
    ),
)


def load_workloads(own: Sequence[Path]) -> dict[str, Workload]:
    """The catalogue, with the user's own directories and C files."""
    from kdelta.spec.workloads import catalogue

    return catalogue(own)


def in_groups(cases: Sequence[Case], memcg: bool) -> tuple[Case, ...]:
    """``cases``, with ``memcg`` each in the root cgroup and in a child memcg."""
    import msgspec

    if not memcg:
        return tuple(cases)
    both = (msgspec.structs.replace(case, cgroup=group) for case in cases for group in ("root", "child"))
    return tuple({case.name: case for case in both}.values())  # one of them may be in a child memcg already


def command_line() -> str:
    """What was typed, as a line that can be pasted.

    ``--why`` of a ``--spec`` is written out: ``kdelta resume`` goes by it, and the file may have changed by then.
    """
    words = sys.argv[1:]
    context = click.get_current_context(silent=True)
    if context is not None and context.get_parameter_source("why") is ParameterSource.DEFAULT_MAP:
        end = words.index("--") if "--" in words else len(words)
        words = [*words[:end], "--why", context.params["why"], *words[end:]]
    return shlex.join(["kdelta", *words])

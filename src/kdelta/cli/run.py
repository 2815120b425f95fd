# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta run: measure one kernel, by default the one that is running, here and now."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from kdelta.cli import _fleet, _given, _hardware, _kernels, _lab, _mode, _output, _program, _session, common
from kdelta.errors import UserError

if TYPE_CHECKING:
    from kdelta.experiment.templates import Asked
    from kdelta.model import Case, Experiment, Kernel, Mode

EPILOG = """\b
Examples:
  kdelta run                                     the five cases on the running kernel
  kdelta run --case pidfd_open:held=0|1 --json
  kdelta run debian:7.0                          one kernel in guests: counts without KVM, times with it
  kdelta run debian:7.0 --exact                  counted exactly on every machine
  kdelta run --workloads ./will-it-scale/tests --case wis/getppid1:tasks=2

With one kernel there is no baseline: the figures are descriptive, with their spread and without a verdict.
"""


@dataclass(frozen=True, kw_only=True)
class Args(common.MeasureArgs, _output.OutputArgs, _program.ProgramArgs, _fleet.FleetArgs, _lab.LabArgs):
    """The options of ``kdelta run``."""

    kernel: str
    timed: bool
    exact: bool
    boots: int
    pressure: str | None
    pmu: bool
    hardware: str


@click.command(cls=_program.Command, epilog=EPILOG)
@click.argument("named", required=False, metavar="[KERNEL]")
@click.option("--kernel", "-k", default="running", show_default=True, help="Measure this kernel in guests instead, as KERNEL does.")  # fmt: skip
@click.option("--timed", is_flag=True, help="Measure wall time (default on the running kernel, and with KVM).")
@click.option("--exact", is_flag=True, help="Count executed instructions (default without KVM; needs --kernel).")
@click.option("--boots", type=click.IntRange(1, 1000), default=3, show_default=True, help="Boots, or starts of the harness on the running kernel.")  # fmt: skip
@common.case_options
@common.pressure_option
@common.pmu_option
@_hardware.option
@_program.tree_option
@_program.options
@_fleet.options
@_lab.options
@common.machine_options
@_output.output_options
def command(named: str | None, **options: Any) -> int:
    """Measure one kernel: the running one, without a guest or root, or KERNEL in guests."""
    if named is not None:
        _given.refuse(["kernel"], f"and {named!r}: run takes one kernel")
        options["kernel"] = named
    args = Args(**options)
    args.format  # noqa: B018 - an unknown format is refused here
    _program.refuse_bare([args.kernel])
    spec = _kernels.single(args.kernel, "run takes one kernel; a range is for kdelta sweep")
    if args.pressure and (args.exact or spec.kind == "running"):
        raise UserError("--pressure needs a timed guest: name a kernel, as in --kernel debian:6.12, without --exact")
    if args.exact and spec.kind == "running":
        raise UserError("--exact counts inside a guest: name a kernel, as in --kernel debian:6.12")
    native = spec.kind == "running"
    _mode.refuse_both(timed=args.timed or args.pmu, exact=args.exact)
    if native and args.lab:
        raise UserError("--on starts a kernel there: name it, as in --kernel debian:6.12")
    args.refuse_on({"--exact": args.exact})
    _hardware.refuse(args.hardware, native)
    if native:
        _given.refuse(("smp", "memory", "kvm", "qemu", "turn"), "is about guests, and the running kernel has none")
    if mode := _wanted(args, native):
        _refuse_idle(args, mode)
    args.refuse(budget=False, others={})
    cases = args.cases_or(
        lambda: args.chosen(args.pressure, native=native),
        args.named,
        native,
        partial(args.surrounded, pressure=args.pressure),
    )  # refused before any kernel is fetched
    if args.fleet:
        _fleet.refuse(_asked(args, cases, native))
    with _session.opened(args.quiet) as session:
        with session.progress() as progress:
            host = args.met(progress)
            _fleet.built(args, [spec], progress)
            template = _template(args, cases, _kernels.to_measure([spec], progress), native)
            experiment = session.begin(_lab.of(template, host), args.seed)
            if not _fleet.run(session, experiment, args, progress):
                return _fleet.detached(experiment)
        session.conclude(experiment, args)
    return 0


def _wanted(args: Args, native: bool) -> Mode | None:
    timed = args.timed or args.pmu or native or bool(args.lab or args.pressure)
    return _mode.wanted(timed=timed, exact=args.exact, kvm=args.kvm)


def _of_machine(args: Args, cases: tuple[Case, ...], kernels: tuple[Kernel, ...]) -> Mode:
    if _mode.valued(cases, common.load_workloads(args.folders)):
        return "timed"
    return _mode.of_machine(kernels, args.kvm, args.qemu, args.folders)


def _refuse_idle(args: Args, mode: Mode) -> None:
    _given.refuse_other_mode(
        mode, "add --timed, or leave it out" if mode == "exact" else "add --exact, or leave it out"
    )
    _given.refuse_idle_machine(mode, args.smp)


def _template(args: Args, cases: tuple[Case, ...], kernels: tuple[Kernel, ...], native: bool) -> Experiment:
    from kdelta.experiment import templates

    mode = _wanted(args, native) or _of_machine(args, cases, kernels)
    _refuse_idle(args, mode)
    return templates.run(_asked(args, cases, native), kernels, mode, args.boots)


def _asked(args: Args, cases: tuple[Case, ...], native: bool) -> Asked:
    asked = args.asked(cases, args.effort(pmu=args.pmu or bool(args.lab)), native=native)
    return _hardware.of(args.placed(asked), args.hardware)

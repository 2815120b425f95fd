# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta calibrate: the noise floor of this host, from identical kernels under two labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from kdelta.cli import _given, _kernels, _lab, _program, _session, common
from kdelta.cli._say import say
from kdelta.errors import UserError

if TYPE_CHECKING:
    from kdelta.model import Experiment, Progress

EPILOG = """\b
Examples:
  kdelta calibrate debian:6.12
  kdelta calibrate debian:6.12 --case pipe --case pidfd_open --blocks 24
  kdelta calibrate debian:6.12 --on lab.toml:bench1
  kdelta calibrate --resume last

The same image is booted under two labels. The floor becomes the delta of later timed verdicts on this host and kind of
machine; it is stale once the host, QEMU or kdelta changes. A host on which identical kernels look different is refused.
"""


@dataclass(frozen=True, kw_only=True)
class Args(common.MeasureArgs, _lab.LabArgs):
    """The options of ``kdelta calibrate``."""

    blocks: int
    resume: str | None
    as_json: bool
    quiet: bool


@click.command(cls=_program.Without, epilog=EPILOG)
@click.argument("kernel", required=False)
@click.option("--blocks", type=click.IntRange(20, 400), default=20, show_default=True, help="Blocks of two boots.")
@click.option("--resume", metavar="EXPERIMENT", help="Continue an interrupted calibration.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on standard error.")
@common.case_options
@_lab.options
@common.machine_options
def command(kernel: str | None, **options: Any) -> int:
    """Measure this host's noise floor with KERNEL against itself."""
    args = Args(**options)
    if (kernel is None) == (args.resume is None):
        raise UserError("calibrate takes a kernel, or --resume with an experiment, as in: kdelta calibrate debian:6.12")
    if args.resume is not None:
        rest = [name for name in _given.given() if name not in ("resume", "as_json", "quiet")]
        _given.refuse(rest, "does nothing beside --resume, which takes everything from the stored calibration")
    _given.refuse_other_mode("timed", "leave it out")
    args.refuse_on({})
    with _session.opened(args.quiet, stored=args.resume is not None) as session:
        with session.progress() as progress:
            experiment = (
                _stored(session, args.resume)
                if args.resume is not None
                else _begun(session, args, kernel or "", progress)
            )
            session.run(experiment, progress)
        return _conclude(session.store, experiment, args.as_json)


def _stored(session: _session.Session, name: str) -> Experiment:
    experiment = session.store.experiment(name)
    if experiment.kind != "calibrate":
        raise UserError(f"experiment {experiment.id} is not a calibration; use kdelta resume")
    return experiment


def _begun(session: _session.Session, args: Args, kernel: str, progress: Progress) -> Experiment:
    """Refuses bad input before the kernel is fetched."""
    from kdelta.experiment import templates

    spec = _kernels.single(kernel, "calibrate takes one kernel, not a range")
    asked = args.placed(args.asked(args.chosen()))
    host = args.met(progress)
    fetched = _kernels.to_measure([spec], progress)[0]
    return session.begin(_lab.of(templates.calibrate(asked, fetched, args.blocks), host), args.seed)


def _conclude(store: Any, experiment: Experiment, as_json: bool) -> int:
    import json

    import msgspec

    from kdelta.experiment import calibrate
    from kdelta.report.sentences import sentence

    found = calibrate.conclude(store, experiment, _session.now)
    beside = calibrate.busy(store, experiment)
    if as_json:
        say(json.dumps({case: msgspec.to_builtins(one) for case, one in found.items()}, indent=2))
        return 0
    say(f"{'case':28}{'floor':>8}{'sd pair':>9}{'intra':>7}{'slot':>8}{'false al.':>10}  accepted")
    for case, one in found.items():
        say(
            f"{case[:27]:28}{one.floor_percent:7.2f}%{one.sd_pair_percent:8.2f}%{one.intra_boot_correlation:7.2f}"
            f"{one.slot_effect_percent:+7.2f}%{100 * one.false_alarm_rate:9.1f}%  {'yes' if one.blessed else 'no: ' + one.why}"
        )
    if beside is not None:
        say(f"note: {sentence(beside)}; calibrate again on a quiet host for a lower floor")
    return 0

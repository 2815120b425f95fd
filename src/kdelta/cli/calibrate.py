# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta calibrate: the noise floor of this host, from identical kernels under two labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from kdelta.cli import common
from kdelta.cli._say import say
from kdelta.errors import UserError

if TYPE_CHECKING:
    from kdelta.model import Experiment, Kernel

EPILOG = """\b
Examples:
  kdelta calibrate debian:6.12
  kdelta calibrate debian:6.12 --case pipe --case pidfd_open --blocks 24
  kdelta calibrate --resume last

The same image is booted under two labels. The floor becomes the delta of later timed verdicts on this host and kind of
machine; it is stale once the host, QEMU or kdelta changes. A host on which identical kernels look different is refused.
"""


@dataclass(frozen=True, kw_only=True)
class Args(common.MeasureArgs):
    """The options of ``kdelta calibrate``."""

    blocks: int
    resume: str | None
    as_json: bool
    quiet: bool


@click.command(epilog=EPILOG)
@click.argument("kernel", required=False)
@click.option("--blocks", type=click.IntRange(20, 400), default=20, show_default=True, help="Blocks of two boots.")
@click.option("--resume", metavar="EXPERIMENT", help="Continue an interrupted calibration.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on standard error.")
@common.case_options
@common.machine_options
def command(kernel: str | None, **options: Any) -> int:
    """Measure this host's noise floor with KERNEL against itself."""
    from kdelta.cli.progress import Reporter
    from kdelta.kernel.resolve import resolve_all
    from kdelta.kernel.sources import parse_kernel
    from kdelta.model import plans
    from kdelta.store.store import Store

    args = Args(**options)
    if (kernel is None) == (args.resume is None):
        raise UserError("calibrate takes a kernel, or --resume with an experiment")
    with Store() as store:
        with Reporter(args.quiet) as reporter:
            if args.resume is not None:
                experiment = store.experiment(args.resume)
                if not isinstance(experiment.plan, plans.Calibrate):
                    raise UserError(f"experiment {experiment.id} is not a calibration; use kdelta resume")
            else:
                spec = parse_kernel(kernel or "")
                if spec.is_range:
                    raise UserError("calibrate takes one kernel, not a range")
                experiment = _experiment(args, lambda: resolve_all([spec], reporter)[0])
                store.create(experiment)
            common.run_experiment(store, experiment, reporter)
        return _conclude(store, experiment, args.as_json)


def _experiment(args: Args, fetch: Callable[[], Kernel]) -> Experiment:
    """Refuses bad input before the kernel is fetched."""
    from kdelta.experiment import templates

    cases = args.chosen()
    return templates.created(templates.calibrate(args.asked(cases), fetch(), args.blocks), args.seed, common.now)


def _conclude(store: Any, experiment: Experiment, as_json: bool) -> int:
    import json

    import msgspec
    import numpy as np

    from kdelta.experiment import calibrate
    from kdelta.report.sentences import sentence
    from kdelta.stats import design

    found = calibrate.conclude(store, experiment, common.now)
    boots = store.boots(experiment.id)
    beside = design.busy(np.array([b.facts["other_cpus"] for b in boots if "other_cpus" in b.facts], dtype=float))
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

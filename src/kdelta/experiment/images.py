# SPDX-License-Identifier: GPL-2.0-or-later
"""Before the first boot: the kernels of an experiment are still those that it was planned with."""

from __future__ import annotations

from kdelta.errors import UserError
from kdelta.kernel import intact
from kdelta.kernel.resolve import resolve
from kdelta.kernel.sources import parse_kernel
from kdelta.model import Experiment, Progress


def require(experiment: Experiment, progress: Progress) -> None:
    """Hold every file that will be booted or read against its sum; what can be fetched again, is.

    Raises:
        UserError: an image was replaced, damaged or removed; natively, another kernel is running.
        HostError: the cache cannot be written.
    """
    if experiment.machine.native:
        _require_running(experiment)
        return
    for kernel in experiment.kernels:
        why = intact.fault(kernel)
        if why and (still := intact.mend(kernel, progress)):
            raise UserError(
                f"kernel {kernel.label}: {why} since experiment {experiment.id} was planned; put it back, or compare "
                f"again ({still})"
            )


def _require_running(experiment: Experiment) -> None:
    """Natively the kernel is whatever runs: another release or build is another kernel."""
    now = resolve(parse_kernel("running"))
    for kernel in experiment.kernels:
        if (kernel.release, kernel.build_id) != (now.release, now.build_id):
            planned, running = (f"{one.release} (build {(one.build_id or '?')[:12]})" for one in (kernel, now))
            raise UserError(
                f"experiment {experiment.id} measures {planned}, but this machine runs {running}: boot that kernel, "
                "or measure again"
            )

# SPDX-License-Identifier: GPL-2.0-or-later
"""The one case, and its metric, that a bisection is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdelta.cli import common
from kdelta.errors import UserError

if TYPE_CHECKING:
    from kdelta.model import Case, Metric, Mode


def one_case(args: common.CaseArgs) -> Case:
    """The only case that was asked for; ``--memcg`` puts it into a child memcg.

    Raises:
        UserError: none, or several.
    """
    import dataclasses

    import msgspec

    if not args.cases:
        raise UserError(
            "bisecting needs one case, as in --case pidfd_open (kdelta cases lists them), or a program behind --"
        )
    cases = dataclasses.replace(args, memcg=False).chosen()
    if len(cases) != 1:
        raise UserError(f"bisecting takes one case, not {len(cases)}: {', '.join(case.name for case in cases)}")
    return msgspec.structs.replace(cases[0], cgroup="child" if args.memcg else cases[0].cgroup)


def metric_of(args: common.CaseArgs, mode: Mode, case: Case, name: str | None) -> Metric:
    """The primary metric of ``case``, or the one called ``name``.

    Raises:
        UserError: the case has none of that name.
    """
    from kdelta.results import definitions

    workload = common.load_workloads(args.folders)[case.workload]
    return definitions.metric_named(definitions.of_mode(workload, mode), name, mode)

# SPDX-License-Identifier: GPL-2.0-or-later
"""What compare checks of kernels built from source before it builds them: a series in steps, the gate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from kdelta.errors import UserError
from kdelta.spec.kernels import BUILT_KINDS

if TYPE_CHECKING:
    from kdelta.cli.progress import Reporter
    from kdelta.model import Kernel
    from kdelta.spec.kernels import KernelSpec


def check(specs: Sequence[KernelSpec], selftests: str | None, each: bool) -> None:
    """Refuse what cannot work before anything is fetched or built.

    Raises:
        UserError: --each without a series, --selftests without source, or both at once.
    """
    if selftests is not None:
        from kdelta.experiment.selftests import refuse_unbuilt, suites

        suites(selftests)
        refuse_unbuilt([spec.text for spec in specs])
    if not each:
        return
    if selftests is not None:
        raise UserError("--each and --selftests cannot be combined: gate the whole series without --each")
    last = specs[-1]
    if last.kind not in BUILT_KINDS or not last.patches:
        raise UserError(f"--each: {last.text} is not a source with a series; write src:TREE+series.mbox")
    first = specs[0]
    whole = first if len(specs) == 1 else msgspec.structs.replace(first, patches=last.patches)
    if len(specs) > 2 or first.patches != (last.patches if len(specs) == 1 else ()) or not _same_tree(whole, last):
        raise UserError(
            f"--each: give one source with its series, optionally after the same source without it: {last.text}"
        )


def _same_tree(one: KernelSpec, other: KernelSpec) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in ("kind", "target", "ref", "config", "arch"))


def resolve_each(specs: Sequence[KernelSpec], reporter: Reporter) -> tuple[Kernel, ...]:
    """The kernels along the series of the last of ``specs``: without it, then with one more patch each."""
    from kdelta.kernel.resolve import check, unique
    from kdelta.kernel.source import resolve_each

    check(specs)
    return unique(resolve_each(specs[-1], reporter))

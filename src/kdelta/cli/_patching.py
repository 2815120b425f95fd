# SPDX-License-Identifier: GPL-2.0-or-later
"""What compare does with kernels built from source: a series in steps, the gate, their machine code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from kdelta.cli import _kernels
from kdelta.errors import HostError, UserError
from kdelta.spec.kernels import BUILT_KINDS

if TYPE_CHECKING:
    from kdelta.model import Experiment, Gap, Kernel, Progress
    from kdelta.results.versions import Version
    from kdelta.spec.kernels import KernelSpec
    from kdelta.store.store import Store


def named(texts: Sequence[str], selftests: str | None, each: bool) -> list[KernelSpec]:
    """The kernels to compare; what cannot work is refused before anything is fetched or built.

    Raises:
        UserError: one is not a kernel; fewer than two; --each without a series, --selftests without source, or both at once.
    """
    from kdelta.kernel import resolve

    specs = _kernels.named(texts)
    _check(specs, selftests, each)
    if len(specs) < 2 and not specs[0].is_range and not each:
        resolve.check(specs)  # the one may be a patch
        raise UserError(
            "compare needs two kernels or more, the baseline first, as in: kdelta compare debian:6.12 debian:7.0 (kdelta "
            "run measures the running one)"
        )
    return specs


def _check(specs: Sequence[KernelSpec], selftests: str | None, each: bool) -> None:
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


def fetched(
    specs: Sequence[KernelSpec], each: bool, progress: Progress, had: Callable[[Kernel], object] = lambda _: None
) -> tuple[Version, ...]:
    """The kernels of ``specs``; with ``each`` those along the series of the last: without it, then one more patch each.

    A patch of it that does not build without those behind it is a gap. ``had`` gets each kernel as soon as it is there; with ``each`` none.

    Raises:
        UserError: the running kernel is among them, which has no image.
    """
    if not each:
        return _kernels.refuse_without_image(
            _kernels.to_measure(specs, progress, had),
            "the running kernel cannot be booted in a guest without its image: use kdelta run",
        )
    from kdelta.kernel import series

    _kernels.look(specs)
    return series.along(specs[-1], progress)


def parted(versions: Sequence[Version]) -> tuple[tuple[Kernel, ...], tuple[Gap, ...]]:
    """The kernels of ``versions``, and the gaps with their places."""
    from kdelta.model import Gap
    from kdelta.results.versions import gaps_in

    return tuple(one for one in versions if not isinstance(one, Gap)), gaps_in(versions)


def refuse_alone(specs: Sequence[KernelSpec], kernels: Sequence[Kernel]) -> None:
    """Raises:
    UserError: a range holds one kernel, which nothing can be compared with.
    """
    if len(kernels) == 1 and specs[0].is_range:
        raise UserError(f"compare needs two kernels or more; {specs[0].text} is {kernels[0].label} alone")


def refuse_unbuilt(kernels: Sequence[Kernel], gaps: Sequence[Gap]) -> None:
    """Exit code 2 where a series as a whole does not build, after what comes before its end was measured.

    Raises:
        HostError: so it is.
    """
    if gaps and gaps[-1].place == len(kernels) + len(gaps) - 1:
        raise HostError(f"the series as a whole {gaps[-1].why}; measured is what comes before it")


def suites(selftests: str | None) -> tuple[str, ...]:
    """The selftests that are asked for."""
    from kdelta.experiment.selftests import suites

    return suites(selftests) if selftests is not None else ()


def annotated(store: Store, experiment: Experiment, progress: Progress) -> Experiment:
    """``experiment`` with what its kernels' machine code, source and selftests say, kept before anything is measured."""
    from kdelta.experiment import annotate

    told = annotate.note_locations(store, annotate.note_code(store, experiment, progress), progress)
    return annotate.run_gate(store, told, progress)

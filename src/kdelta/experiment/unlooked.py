# SPDX-License-Identifier: GPL-2.0-or-later
"""What of a change its kernel is not made of, where the user named the cases; where they were chosen, ``Looked`` tells.

A patch of which the config builds nothing is ``same`` in every case, and the table does not say why.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kdelta.errors import KdeltaError
from kdelta.experiment import selftests
from kdelta.kernel import guards, unseen
from kdelta.kernel.sources import parse_kernel
from kdelta.model import Experiment, Remark

_SHOWN = 8  # names in a line
_ABOUT = "not-looked-at"


def remarks(experiment: Experiment, told: Sequence[str]) -> Iterator[Remark]:
    """A note for each kind of it, of the last of two kernels; ``told`` is what notes of its build say already.

    Of releases, which thousands of commits part, it says nothing.
    """
    first, last = experiment.kernels[0], experiment.kernels[-1]
    two = len(experiment.kernels) == 2 and first.release == last.release
    if not two or experiment.annotations.looked is not None or not selftests.built(experiment.kernels):
        return
    try:
        specs = [parse_kernel(one.spec.partition("#")[0]) for one in experiment.kernels]
        found = unseen.of(last, specs)
    except (KdeltaError, OSError):  # a tree that moved on
        return
    if found.options:
        values = " ".join([*filter(None, [specs[-1].config]), *(f"{name}=y" for name in found.options[:_SHOWN])])
        how = f'measured with ,config="{values}" behind each kernel'
        yield Remark(_ABOUT, f"{last.label}: lines under options that are off do not run: {_few(found.options)}; {how}")
    if parts := [part for part in found.parts if not any(guards.unbuilt(part) in note for note in told)]:
        yield Remark(_ABOUT, f"{last.label}: changed, and not built with this config: {_few(parts)}")
    if found.defaults:
        given = f'with ,config="{" ".join(found.defaults[:_SHOWN])}" behind {last.label}'
        yield Remark(
            _ABOUT, f"{last.label}: this config keeps another default: {_few(found.defaults)}; measured {given}"
        )
    if found.parameters:
        words = " ".join(f"{name}VALUE" if name.endswith("=") else name for name in found.parameters[:_SHOWN])
        how = f'measured with ,cmdline="{words}" behind each kernel'
        yield Remark(_ABOUT, f"{last.label}: boot parameters that are not given: {_few(found.parameters)}; {how}")


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more

# SPDX-License-Identifier: GPL-2.0-or-later
"""The versions of a sweep in order: its kernels, and between them those that do not build or could not be fetched.

An absent version is no kernel, so it stands in ``Annotations.gaps`` with its place among all versions. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from msgspec.structs import replace

from kdelta.kernel.debver import version_key
from kdelta.model import Experiment, Gap, Kernel, Warn
from kdelta.results.warnings import CompilerChange, LeftOut

Version = Kernel | Gap
_ALONG = re.compile(r"#\d+$")  # ends the spec of a kernel along a series (kernel.source.resolve_each)


def gaps_in(versions: Sequence[Version]) -> tuple[Gap, ...]:
    """The gaps with their places among ``versions``."""
    return tuple(replace(one, place=place) for place, one in enumerate(versions) if isinstance(one, Gap))


def versions_of(experiment: Experiment) -> tuple[Version, ...]:
    """All that was asked for, in order: the kernels of ``experiment`` with the gaps at their places."""
    versions: list[Version] = list(experiment.kernels)
    for gap in sorted(experiment.annotations.gaps, key=lambda gap: gap.place):
        versions.insert(max(0, gap.place), gap)
    return tuple(versions)


def oldest_first(versions: Sequence[Version]) -> tuple[Version, ...]:
    """Kernels by release; a gap has none, so it stays behind the kernel that it stood behind."""
    head: list[Version] = []
    groups: list[tuple[Kernel, list[Version]]] = []
    for one in versions:
        if isinstance(one, Kernel):
            groups.append((one, []))
        else:
            (groups[-1][1] if groups else head).append(one)
    groups.sort(key=lambda group: version_key(group[0].release))
    return (*head, *(one for kernel, behind in groups for one in (kernel, *behind)))


def remarks(experiment: Experiment) -> tuple[Warn, ...]:
    """What a reader must know of the versions: those that are absent, and changes of the compiler."""
    return (*_gaps(experiment), *_compiler_changes(experiment))


def _gaps(experiment: Experiment) -> tuple[Warn, ...]:
    """Absent versions with their reasons; neighbours that share one stand together.

    Along a series a patch is in all kernels behind it: the next one that builds is named.
    """
    reasons: dict[tuple[str, str], list[str]] = {}
    behind = ""
    for one in reversed(versions_of(experiment)):
        if isinstance(one, Gap):
            along = behind if _ALONG.search(one.spec) else ""
            reasons.setdefault((one.why, along), []).insert(0, one.label)
        else:
            behind = one.label
    return tuple(LeftOut(tuple(labels), *why) for why, labels in reversed(reasons.items()))


def _compiler_changes(experiment: Experiment) -> tuple[Warn, ...]:
    """Where what is compared was built by different compilers (``Annotations.compilers``): never hidden."""
    compilers = experiment.annotations.compilers
    if len(compilers) != len(experiment.kernels):
        return ()
    every = [(k.label, built) for k, built in zip(experiment.kernels, compilers, strict=True)]
    known = [one for one in every if one[1]]
    steps = experiment.in_steps
    pairs = pairwise(known) if steps else ((every[0], one) for one in known if every[0][1])
    return tuple(CompilerChange(last, old, first, new, steps) for (last, old), (first, new) in pairs if old != new)

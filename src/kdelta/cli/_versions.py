# SPDX-License-Identifier: GPL-2.0-or-later
"""The versions of a sweep in a row: those named, those of an earlier sweep, and the gaps between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from kdelta.cli import _kernels
from kdelta.errors import HostError, KdeltaError, UserError

if TYPE_CHECKING:
    from kdelta.model import Experiment, Progress
    from kdelta.results.versions import Version
    from kdelta.spec.kernels import KernelSpec

# Has kernels built before they are taken from here; what could not be.
Build = Callable[["Sequence[KernelSpec]", "Progress"], "Mapping[KernelSpec, KdeltaError]"]


_NAMED = 8  # of many kernels


def here(_specs: Sequence[KernelSpec], _progress: Progress) -> Mapping[KernelSpec, KdeltaError]:
    """Leave them to this machine."""
    return {}


def line_up(template: Experiment, texts: Sequence[str], progress: Progress, build: Build = here) -> tuple[Version, ...]:
    """The versions in order: as given; added ones by their release where the earlier ones are in that order.

    Versions that an earlier sweep could not have are tried again. ``build`` has them built first, where others do it.
    """
    from kdelta.kernel.partial import labelled, resolve_each
    from kdelta.model import Gap
    from kdelta.results.versions import oldest_first, versions_of

    specs = _kernels.bootable(texts, "the running kernel cannot be booted in a guest without its image: use kdelta run")
    known, earlier = template.kernels, versions_of(template)
    if earlier and not specs and len(earlier) == len(known):
        raise UserError("--add needs a kernel to add, as in: kdelta sweep --add last debian:7.4")
    if not earlier and len(specs) < 2 and not any(spec.is_range for spec in specs):
        raise UserError("a sweep needs a range such as 'debian:6.1..7.3', or two kernels or more")
    again = _kernels.named([one.spec for one in earlier if isinstance(one, Gap)])
    _kernels.one_architecture([*specs, *again], known)
    _tell_builds([*specs, *again], progress)
    unbuilt = build([*specs, *again], progress)
    new = resolve_each(specs, progress, unbuilt)
    images = {(kernel.image_sha256, kernel.cmdline) for kernel in known}
    line: list[Version] = []
    for one in earlier:
        line += resolve_each(_kernels.named([one.spec]), progress, unbuilt) if isinstance(one, Gap) else (one,)
    line += (one for one in new if isinstance(one, Gap) or (one.image_sha256, one.cmdline) not in images)
    _refuse_too_few(line, texts)
    together = oldest_first(line) if known and oldest_first(known) == known else tuple(line)
    return labelled(together, frozenset(index for index, one in enumerate(together) if one in known))


def go_on(last: Experiment, texts: Sequence[str], progress: Progress, build: Build = here) -> tuple[Version, ...]:
    """The versions of a sweep that is followed: those that ``texts`` name today, and older ones that it has already."""
    from kdelta.kernel.partial import labelled, resolve_each
    from kdelta.model import Kernel
    from kdelta.results.versions import oldest_first

    refusal = "the running kernel cannot be booted in a guest without its image: use kdelta run"
    specs = _kernels.bootable(texts, refusal)
    _kernels.one_architecture(specs, last.kernels)
    _tell_builds(specs, progress)
    today = resolve_each(specs, progress, build(specs, progress))
    known = {(kernel.image_sha256, kernel.cmdline): kernel for kernel in last.kernels}
    named = {(one.image_sha256, one.cmdline) for one in today if isinstance(one, Kernel)}
    line = [known.get((one.image_sha256, one.cmdline), one) if isinstance(one, Kernel) else one for one in today]
    line = [*(kernel for key, kernel in known.items() if key not in named), *line]
    together = oldest_first(line)
    return labelled(together, frozenset(index for index, one in enumerate(together) if one in last.kernels))


def _tell_builds(specs: Sequence[KernelSpec], progress: Progress) -> None:
    """How many kernels are to be built, before the first is: that may take hours."""
    from kdelta.kernel.partial import name_of
    from kdelta.kernel.source import to_build

    if found := to_build(specs, progress):
        more = f", ... {name_of(found[-1])}" if len(found) > _NAMED else ""
        names = ", ".join(name_of(spec) for spec in found[:_NAMED])
        progress.note(f"{len(found)} kernel{'s are' if len(found) > 1 else ' is'} to be built: {names}{more}")


def _refuse_too_few(line: Sequence[Version], texts: Sequence[str]) -> None:
    from kdelta.model import Gap

    missing = [one for one in line if isinstance(one, Gap)]
    left = len(line) - len(missing)
    if left >= 2:
        return
    if missing:
        raise HostError(
            f"a sweep needs two kernels or more, {left} could be fetched or built; {missing[0].label}: {missing[0].why}"
        )
    raise UserError(f"a sweep needs two kernels or more; {' '.join(texts)} is {left}")


def placed(template: Experiment, line: Sequence[Version], command: str, *, reuse: bool) -> Experiment:
    """``template`` with the versions of ``line``, their compilers and their gaps."""
    from kdelta.experiment import templates
    from kdelta.kernel.banner import compiler
    from kdelta.model import Kernel
    from kdelta.results.versions import gaps_in

    kernels = [one for one in line if isinstance(one, Kernel)]
    compilers = [compiler(kernel) for kernel in kernels]
    return templates.with_versions(template, kernels, gaps_in(line), compilers, command=command, reuse=reuse)


def tags(refs: str | None, tree: str) -> list[str]:
    """The kernels of the release tags ``FIRST..LAST`` of a git tree.

    Raises:
        UserError: no such range, tag or tree.
    """
    if refs is None:
        return []
    from kdelta.kernel import history

    first, dots, last = refs.partition("..")
    if not (first and dots):
        raise UserError(f"--refs {refs!r} is not a range of tags such as v6.8..v6.12, or v6.8.. to the newest")
    last = last or history.newest(tree, first)
    return [f"{tag}=src:{tree}@{tag}" for tag in history.tags(tree, first, last)]


def refuse_missing(experiment: Experiment) -> None:
    """Exit code 2 where this machine could not get a kernel; one that does not build is an answer like any other."""
    missing = [gap for gap in experiment.annotations.gaps if gap.by_host]
    if missing:
        names = ", ".join(one.label for one in missing)
        raise HostError(f"left out: {names}: {missing[0].why}; the same command tries again, the others are measured")

# SPDX-License-Identifier: GPL-2.0-or-later
"""``src:TREE[@REF][+PATCH...]`` and ``src:debian:VERSION[+PATCH...]`` to a kernel: found built, or built now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from kdelta.errors import HostError, KdeltaError
from kdelta.kernel import cache, config_fragment, defaults, diff, guards, kconfig, layouts, products, toolchain
from kdelta.kernel.build import fault_of_source
from kdelta.kernel.one_build import Wanted, build_in, fitted
from kdelta.kernel.origin import Origin
from kdelta.kernel.products import Built
from kdelta.kernel.steps import Step, load_patches
from kdelta.kernel.wanted import origin_of, source_of
from kdelta.kernel.worktree import Worktree
from kdelta.model import Gap, Kernel, Progress, Quiet
from kdelta.model.progress import Once
from kdelta.spec.kernels import BUILT_KINDS, KernelSpec


def _wanted(spec: KernelSpec, origin: Origin, steps: tuple[Step, ...], layout: int = 0) -> Wanted:
    tools = toolchain.probe(spec.arch)
    request = config_fragment.request(spec.config, origin.version, spec.arch)
    if not request.base:  # one who has a whole .config gets defaults in any case
        swaying = (step for step in steps if any("Kconfig" in line for line in step.mail.lines))
        request = msgspec.structs.replace(request, new=defaults.brought(_brought_by(swaying)))
    return Wanted(origin=origin, steps=steps, tools=tools, request=request, layout=layout)


def build(
    wanted: Wanted, name: str, progress: Progress, ready: Callable[[Path], None] | None = None
) -> tuple[Built, cache.Stored]:
    """The product of ``wanted``, the kernel called ``name``: found, or built now.

    ``ready`` gets the directory of the work tree, locked, before it is filled; it is not called where nothing is built.

    Raises:
        UserError, HostError: as ``resolve_source``.
    """
    known = products.recall(wanted.key, wanted.tools)
    if known is None:
        tree = Worktree(products.root() / wanted.origin.key)
        with tree.locked(progress):
            known = products.recall(wanted.key, wanted.tools)
            if known is None:
                try:
                    if ready is not None:
                        ready(tree.home)
                    build_in(tree, wanted, name, progress)
                except OSError as error:
                    raise cache.disk_error(error, tree.home) from None
                known = products.recall(wanted.key)
    if known is None:
        raise HostError(
            f"{name}: the image disappeared after it was built; is another program cleaning {cache.root()}?"
        )
    return known


def refuse_misfits(specs: Sequence[KernelSpec], progress: Progress) -> None:
    """Try the patches of all ``specs`` before the first of them is built, which may take most of an hour.

    Only on the source that is built first: to fill a work tree with another and back compiles more again.

    Raises:
        UserError, HostError: as ``resolve_source``, of what can be told before a build.
    """
    built = [spec for spec in specs if spec.kind in BUILT_KINDS]
    if len(built) > 1 and any(spec.patches for spec in built[1:]):
        _refuse_misfits([one for spec in built for one in wants(spec, False, progress)], progress)


def _refuse_misfits(wanted: Sequence[Wanted], progress: Progress) -> None:
    open_ = [one for one in wanted if products.recall(one.key, one.tools) is None]
    for one in open_[1:]:  # the first finds it itself
        if one.steps and (one.origin.key, one.origin.base) == (open_[0].origin.key, open_[0].origin.base):
            tree = Worktree(products.root() / one.origin.key)
            with tree.locked(progress):
                fitted(tree, one, progress)


def _resolve(
    spec: KernelSpec, origin: Origin, steps: tuple[Step, ...], progress: Progress, layout: int = 0
) -> tuple[Kernel, Built]:
    wanted = _wanted(spec, origin, steps, layout)
    built, stored = build(wanted, spec.text, progress)
    for note in built.notes:
        progress.step(note)
    kernel = products.kernel(spec, built, stored)  # which may have been built of the same files in another tree
    return msgspec.structs.replace(kernel, origin=wanted.about), built


def wants(spec: KernelSpec, each: bool, progress: Progress) -> list[Wanted]:
    """What has to be built for ``spec``; with ``each`` for all kernels along its series. Nothing is built.

    Raises:
        UserError: no such tree, ref or patch. HostError: the source cannot be fetched, or no compiler is here.
    """
    origin, steps = source_of(spec, progress)
    counts = range(len(steps) + 1) if each else [len(steps)]
    return [_wanted(spec, origin, steps[:count]) for count in counts]


def to_build(specs: Sequence[KernelSpec], progress: Progress) -> list[KernelSpec]:
    """Those that name a commit of a tree and are not built yet, as far as that can be told."""
    return [spec for spec in specs if spec.kind == "src" and spec.ref and _is_unbuilt(spec, progress)]


def _is_unbuilt(spec: KernelSpec, progress: Progress) -> bool:
    try:
        return any(products.recall(one.key) is None for one in wants(spec, False, progress))
    except KdeltaError:
        return False  # who builds it says what is wrong


def resolve_source(spec: KernelSpec, progress: Progress | None = None) -> Kernel:
    """Build the kernel that ``spec`` (kind ``src`` or ``src-debian``) names, or find it built.

    Raises:
        UserError: no such tree, ref or patch; a patch that does not fit, is hostile, or is merged already.
        HostError: missing programs, a full disk, or a build that fails (its log named, the compiler's line shown).
    """
    said = Once(progress or Quiet())
    return _resolve(spec, *source_of(spec, said), said)[0]


def resolve_layouts(spec: KernelSpec, kernel: Kernel, numbers: Sequence[int], progress: Progress) -> Kernel:
    """``kernel``, which ``spec`` names, with its layouts ``numbers``: linked now where they were not yet.

    Raises:
        UserError, HostError: as ``resolve_source``.
    """
    origin, steps = source_of(spec, progress)
    found = tuple(layouts.layout_of(_resolve(spec, origin, steps, progress, number)[0]) for number in numbers)
    return msgspec.structs.replace(kernel, layouts=found)


def resolve_each(spec: KernelSpec, progress: Progress | None = None) -> list[Kernel | Gap]:
    """The kernels along a series: without the patches, then with one more each; labels count from 0.

    With a patch that does not build without those behind it there is a Gap: these are built all the same.

    Raises:
        UserError, HostError: as ``resolve_source``; also where the source builds with none of the patches.
    """
    said = Once(progress or Quiet())
    origin, steps = source_of(spec, said)
    _refuse_misfits([_wanted(spec, origin, steps[:count]) for count in range(len(steps) + 1)], said)
    found: list[Kernel | Gap] = []
    faults: list[HostError] = []
    for count in range(len(steps) + 1):
        subject = steps[count - 1].mail.subject if count else "before the series"
        label, name = f"{count}/{len(steps)} {subject}".strip(), f"{spec.text}#{count}"
        try:
            kernel, _ = _resolve(spec, origin, steps[:count], said)
            found.append(msgspec.structs.replace(kernel, label=label, spec=name))
        except HostError as error:
            line = fault_of_source(error)
            if not count or not line:
                raise
            faults.append(error)
            found.append(Gap(label=label, spec=name, why=f"does not build: {line}", by_host=False))
            said.note(f"{label} does not build: {line}" + ("; going on with the next" if count < len(steps) else ""))
    if steps and len(faults) == len(steps):
        raise faults[0]
    return found


def built_facts(spec: KernelSpec, progress: Progress | None = None) -> Built:
    """What is remembered of ``spec``'s build (built now if it was not): the clean diff, notes, log, times."""
    said = progress or Quiet()
    return _resolve(spec, *source_of(spec, said), said)[1]


def remembered(spec: KernelSpec, patches: int | None = None) -> Built | None:
    """What is remembered of ``spec``'s build, with its first ``patches`` alone; None where that is not there any more.

    Raises:
        UserError, HostError: a tree or patch that cannot be read.
    """
    origin, steps = source_of(spec, Quiet())
    known = products.recall(_wanted(spec, origin, steps[:patches]).key)
    return known[0] if known is not None else None


def objects(spec: KernelSpec, progress: Progress | None = None) -> Path | None:
    """The build directory of ``spec``, as the last build with its source, config and compiler left it; None without.

    Raises:
        UserError, HostError: as ``resolve_source``.
    """
    origin = origin_of(spec, progress or Quiet())
    found = _wanted(spec, origin, ()).objects(Worktree(products.root() / origin.key).home)
    return found if (found / "vmlinux").exists() else None


def touched(spec: KernelSpec) -> tuple[str, ...]:
    """The files that the patches of ``spec`` change, sorted.

    Raises:
        UserError: a patch that cannot be read.
    """
    parsed = [one for step in load_patches(spec.patches) for one in diff.parse(step.mail)]
    return tuple(sorted({path for one in parsed for path in (one.old, one.new) if path}))


def options_off(spec: KernelSpec, kernel: Kernel) -> tuple[str, ...]:
    """Options that the patches of ``spec`` declare or ask for, and that ``kernel`` has not set; () without a config.

    Raises:
        UserError: a patch that cannot be read.
    """
    text = _config(kernel)
    return guards.off(_applied(spec), kconfig.parse(text)) if text else ()


def other_defaults(spec: KernelSpec, kernel: Kernel) -> tuple[str, ...]:
    """Defaults that the patches of ``spec`` bring and that the config of ``kernel`` does not follow, as ``FOO=y``.

    Raises:
        UserError: a patch that cannot be read.
    """
    text = _config(kernel)
    return defaults.not_followed(_applied(spec), kconfig.parse(text)) if text else ()


def parameters(spec: KernelSpec) -> tuple[str, ...]:
    """Boot parameters that the patches of ``spec`` bring and that its command line does not have.

    Raises:
        UserError: a patch that cannot be read.
    """
    return not_given(guards.parameters(_applied(spec)), spec)


def not_given(brought: Iterable[str], spec: KernelSpec) -> tuple[str, ...]:
    """Of boot parameters those that the command line of ``spec`` does not have."""
    given = {word.partition("=")[0].replace("-", "_") for word in spec.cmdline.split()}
    return tuple(name for name in brought if name.removesuffix("=").replace("-", "_") not in given)


def options(kernel: Kernel) -> dict[str, str]:
    """The options of a stored kernel (``kconfig.parse``), {} without a config."""
    return kconfig.parse(_config(kernel))


def _applied(spec: KernelSpec) -> list[diff.Change]:
    return _brought_by(load_patches(spec.patches))


def _brought_by(steps: Iterable[Step]) -> list[diff.Change]:
    return [one for step in steps if not step.take_out for one in diff.parse(step.mail)]


def config_differences(baseline: Kernel, patched: Kernel) -> tuple[str, ...]:
    """Options in which two stored kernels differ, as ``CONFIG_FOO: y -> n``; () where a config is unknown."""
    before, after = _config(baseline), _config(patched)
    return config_fragment.differences(before, after) if before and after else ()


def _config(kernel: Kernel) -> str:
    stored = cache.get(kernel.image_sha256)
    return stored.config_text.read_text("utf-8", "replace") if stored and stored.config_text else ""

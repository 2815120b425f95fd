# SPDX-License-Identifier: GPL-2.0-or-later
"""``--case auto``: what differs between kernels, and which cases execute it. Where nothing differs, none."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from kdelta.attribution import images, selection, starting
from kdelta.attribution.atlas import Atlas
from kdelta.attribution.changes import Change, Changes
from kdelta.attribution.reach import Reach, Row
from kdelta.experiment import differing, knobs, made, memcgs, programs, silent
from kdelta.experiment import reach as mapping
from kdelta.kernel import changed, directories, source, unseen
from kdelta.kernel.calls import CallGraph
from kdelta.model import Case, Kernel, Looked, MachineOptions, Progress, Unreached
from kdelta.spec import counted, needs
from kdelta.spec.kernels import BUILT_KINDS, KernelSpec
from kdelta.spec.sameness import digest
from kdelta.spec.workloads import Workload

_EVERYWHERE = re.compile(r"(^|/)(include/|Kconfig|Makefile|Kbuild|scripts/)|\.h$")  # files that others are built with
_OTHER_WAYS = 8  # cases that are tried where those chosen do not run all that differs
_PATHS = 20  # changed functions for which the nearest callers are looked for


class Asked(Struct, frozen=True, kw_only=True):
    """What ``choose`` takes from its front end: the cases to choose from, and what measuring one of them takes.

    ``given``: cases that are measured in any case, a user's program. ``usual``: the cases where something differs, but
    what it is cannot be told, or it runs at boot alone. ``left_s``: the time left for them when
    the map is there, ``over`` whether the map has had its part of it. ``memcg``: cases in a memory cgroup are wanted.
    """

    cases: Sequence[Case]
    given: Sequence[Case] = ()
    usual: Sequence[Case]
    workloads: Mapping[str, Workload]
    folders: Sequence[Path]
    machine: MachineOptions
    cost_s: Callable[[Row], float]
    left_s: Callable[[], float]
    over: Callable[[], bool] = lambda: False
    controls: bool = False
    memcg: bool = False

    @property
    def programs(self) -> frozenset[str]:
        """The cases that run a suite's program: its counts vary."""
        return counted.programs(self.cases, self.workloads)

    @property
    def setup(self) -> mapping.Setup:
        """Of the guests that tell what a case executes: that takes no more CPUs."""
        machine = replace(self.machine, smp=1)
        return mapping.Setup(workloads=self.workloads, folders=tuple(self.folders), machine=machine)


def read_ahead(kernel: Kernel) -> None:
    """Read what ``choose`` asks of its first kernel and keeps: symbols, functions, calls.

    Raises:
        UserError: machine code that cannot be read.
    """
    _ = images.image_of(kernel).sources
    differing.graph_of(kernel)


def choose(
    kernels: Sequence[Kernel], specs: Sequence[KernelSpec], asked: Asked, progress: Progress
) -> tuple[tuple[Case, ...], Looked]:
    """The cases that execute what differs between the first kernel and the others, and what was looked at.

    Raises:
        UserError: machine code that cannot be read, or a kernel that cannot be booted.
        HostError: no QEMU, a full disk.
    """
    found, missed = _differences(kernels, progress), unseen.of(kernels[-1], specs)
    found = differing.without_lines(found, kernels, specs)
    every = asked.cases
    asked = replace(asked, cases=tuple(programs.runnable(kernels, asked.cases, asked.workloads, progress)))
    rare = silent.rarely(found, kernels[0], {one.name: one for one in every if one not in asked.cases})
    bare = Looked(
        functions=found.functions,
        differ=len(found.changes),
        candidates=len(asked.cases) + len(asked.given),
        given=tuple(case.name for case in asked.given),
        whole=found.whole,
        through=_through(kernels, specs) if found.whole else (),
        boot_patched=found.boot_patched,
        shifted=found.shifted,
        elsewhere=found.elsewhere,
        sizes_only=found.sizes_only,
        off=missed.options,
        not_built=missed.parts,
        builds=needs.with_others(missed.builds, [workload.needs for workload in asked.workloads.values()]),
        lined=found.lined,
        rare={name: case.name for name, case in rare.items()},
        rare_options=needs.settings(asked.workloads[case.workload].needs_of(case) for case in rare.values()),
        defaults=missed.defaults,
        parameters=missed.parameters if found.changes else (),
        config=specs[-1].config if specs else "",
        cpus=asked.machine.smp if all(map(_may_have_several, kernels)) else 0,
    )
    if not found.changes:
        return ((), bare) if found.nothing else ((*asked.given, *asked.usual), bare)
    what = "functions and variables differ" if len(found.changes) != 1 else "function or variable differs"
    progress.note(f"{len(found.changes)} {what}")
    reach, known = _map(kernels, specs, found, asked, progress)
    given = [case.name for case in asked.given]
    chosen = selection.choose(
        found.changes, reach, asked.cost_s, asked.left_s(), given=given, varying=asked.programs, controls=asked.controls
    )
    names = [*given, *(picked.case for picked in chosen.picked)]
    by_name = {case.name: case for case in (*asked.cases, *asked.given)}
    if known is None and not (names or chosen.controls):
        chosen = replace(chosen, unreached=_started(kernels[0], chosen.unreached))
    looked = _looked(bare, found, chosen, reach, differing.graph_of(kernels[-1]) if reach.rows else None)
    if known is not None:
        failed = sorted({case.name for case in asked.cases} & known.failed.keys())
        looked = replace(looked, atlas=known.title, not_mapped=(*looked.not_mapped, *failed))
    grouped = _grouped(kernels, chosen.unreached, reach, asked, progress) if known is None and reach.rows else ()
    looked = _with(looked, grouped)
    none = not (names or grouped or chosen.controls)
    several = asked.machine.smp > 1 and not all(change.in_no_case for change in found.changes)
    starts = any(change.boot_only or change.at_start for change in (*found.changes, *chosen.unreached))
    if none and (several or starts) and asked.left_s() > 0:
        # it may not start any more, and what is set there may change any path; and several CPUs run more than one does
        near = [] if several else _near(specs, reach, len(asked.usual))
        usual = [case for case in asked.usual if case.name not in near]
        looked = replace(looked, near=tuple(near), controls=tuple(case.name for case in usual))
        return (*(by_name[name] for name in near), *usual), looked
    wanted = [by_name[name] for name in names]
    turned = () if found.whole or found.sizes_only else _turned(kernels, found, wanted, reach, asked, progress)
    looked = replace(
        looked,
        by_knob={one.case.name: one.functions for one in turned if not one.other},
        other_ways={one.case.name: one.functions for one in turned if one.other},
    )
    users = [] if known is not None or found.whole else _users(specs, found, reach, kernels[0], names, asked)
    looked = replace(looked, users=tuple(users))
    flags = () if asked.memcg or not wanted else memcgs.charged(specs)
    inside = memcgs.beside([case.name for case in wanted], by_name) if flags else ()
    looked = replace(
        looked, charged=flags if inside else (), in_memcg=dict.fromkeys((c.name for c in inside), ()) | looked.in_memcg
    )
    extra = [*(one.case for one in (*turned, *grouped)), *inside]
    every = [*wanted, *extra, *(by_name[name] for name in (*users, *chosen.controls))]
    return tuple({case.name: case for case in every}.values()), looked


def _may_have_several(kernel: Kernel) -> bool:
    """Whether several CPUs can be counted in a guest of ``kernel``."""
    return kernel.arch == "x86_64" and kernel.config.get("SMP") != "n"


def _started(kernel: Kernel, unreached: Sequence[Change]) -> tuple[Change, ...]:
    """The same, the first of them with whether the kernel's start calls it."""
    graph = differing.graph_of(kernel)
    if graph is None or all(change.boot_only for change in unreached):
        return tuple(unreached)
    image = images.image_of(kernel)
    first = [replace(one, at_start=starting.calls(image, one.hosts, graph.callers)) for one in unreached[:_PATHS]]
    return (*first, *unreached[_PATHS:])


def _near(specs: Sequence[KernelSpec], reach: Reach, most: int) -> list[str]:
    """The cases that spend most in functions of the files that the patches touch; [] where nothing is mapped."""
    folder = source.objects(specs[0]) if reach.rows and specs and specs[0].kind in BUILT_KINDS else None
    own = directories.functions_of(folder, silent.touched(specs)) if folder is not None else frozenset()
    shares = {row.case: row.share(own) for row in reach.rows}
    return sorted((case for case in shares if shares[case]), key=lambda case: (-shares[case], case))[:most]


def _users(
    specs: Sequence[KernelSpec], found: Changes, reach: Reach, kernel: Kernel, chosen: Sequence[str], asked: Asked
) -> list[str]:
    """Cases that may use what a changed function made in their set-up, where few are ``chosen``; no programs."""
    most = len(asked.usual) - len(chosen) if chosen and not asked.given and asked.left_s() > 0 else 0
    among = {case.name for case in asked.cases} - asked.programs - {*chosen}
    calls = partial(made.called, images.image_of(kernel))
    return made.users(found.changes, reach, calls, specs, among, most) if most > 0 else []


def _grouped(
    kernels: Sequence[Kernel], unreached: Sequence[Change], reach: Reach, asked: Asked, progress: Progress
) -> tuple[knobs.Turned, ...]:
    """Cases in a memory cgroup of their own, for what is executed only there."""
    usual = [case.name for case in asked.usual]
    graph = differing.graph_of(kernels[-1])
    if graph is None or asked.left_s() <= 0:
        return ()
    names = memcgs.likely(unreached, reach, graph.callers, usual, asked=asked.memcg)
    return memcgs.search(kernels, unreached, names, {one.name: one for one in asked.cases}, asked.setup, progress)


def _with(looked: Looked, grouped: Sequence[knobs.Turned]) -> Looked:
    """``looked`` with what is looked at in a memory cgroup, which is not unreached then."""
    names = {name for one in grouped for name in one.functions}
    titles = [one.name for one in looked.unreached if one.name.partition(" (")[0] in names]
    return replace(
        looked,
        in_memcg={one.case.name: one.functions for one in grouped},
        measured=(*looked.measured, *titles),
        unreached=tuple(one for one in looked.unreached if one.name not in titles),
    )


def _turned(
    kernels: Sequence[Kernel],
    found: Changes,
    cases: Sequence[Case],
    reach: Reach,
    asked: Asked,
    progress: Progress,
) -> tuple[knobs.Turned, ...]:
    """Cases beside ``cases``, with a knob otherwise or on another way: no time is asked for them but what is left."""
    usual = [case for case in cases if case.cgroup == "root" and not case.pressure]
    chosen = [case.name for case in cases]  # of others no programs: their counts vary, which seldom decides anything
    repeating = {case.name: case for case in asked.cases if case.name not in asked.programs}

    def others(names: Collection[str]) -> list[Case]:
        hosts = {host for one in found.changes if one.name in names for host in one.hosts} - reach.interrupting
        ways = selection.other_ways(reach, hosts, chosen, repeating.keys() - {*chosen}, _OTHER_WAYS)
        return [repeating[name] for name in ways]

    return knobs.search(
        kernels, found.changes, usual, asked.setup, progress, lambda: asked.over() or asked.left_s() <= 0, others
    )


def _map(
    kernels: Sequence[Kernel], specs: Sequence[KernelSpec], found: Changes, asked: Asked, progress: Progress
) -> tuple[Reach, Atlas | None]:
    """The first kernel's map, and the atlas where that answers for the cases that it knows: these are not mapped."""
    label = kernels[0].label
    cases = mapping.can_be_counted((*asked.given, *asked.cases), asked.workloads)
    known = None
    if not asked.controls:
        if not asked.given and all(change.in_no_case for change in found.changes):
            return Reach(kernel=label, rows=()), None
        known = silent.told(found, kernels, specs, asked.machine, differing.graph_of(kernels[0]))
        if known is not None:
            cases = [one for one in cases if not known.knows(one.name, digest(asked.workloads[one.workload], one))]
            if not cases:
                return Reach(kernel=label, rows=()), known
    return mapping.build(kernels[0], cases, asked.setup, progress, over=asked.over), known


def _differences(kernels: Sequence[Kernel], progress: Progress) -> Changes:
    """All that differs from the first kernel in any other one."""
    if len({kernel.image_sha256 for kernel in kernels}) == 1:
        return Changes(changes=(), functions=0)  # known without reading code or names
    merged: dict[tuple[str, str], Change] = {}
    parts = []
    for kernel in kernels[1:]:
        if kernel.image_sha256 == kernels[0].image_sha256:
            continue
        progress.step(f"comparing the machine code of {kernel.label}")
        parts.append(differing.between(kernels[0], kernel))
        for one in parts[-1].changes:
            known = merged.get((one.name, one.kind), one)
            hosts = tuple(sorted({*known.hosts, *one.hosts}))
            merged[one.name, one.kind] = replace(
                one,
                hosts=hosts,
                boot_only=known.boot_only and one.boot_only,
                sets=tuple(sorted({*known.sets, *one.sets})),
                handed_on=known.handed_on or one.handed_on,
                taken_in=tuple(sorted({*known.taken_in, *one.taken_in})),
            )
    return Changes(
        changes=tuple(merged.values()),
        functions=parts[0].functions,
        whole=any(part.whole for part in parts),
        boot_patched=any(part.boot_patched for part in parts),
        shifted=any(part.shifted for part in parts),
        elsewhere=tuple(sorted({name for part in parts for name in part.elsewhere})),
        sizes_only=any(part.sizes_only for part in parts),
    )


def _through(kernels: Sequence[Kernel], specs: Sequence[KernelSpec]) -> tuple[str, ...]:
    """What of the patches can change functions that they do not touch: headers, build files, options."""
    files = {path for spec in specs if spec.kind in BUILT_KINDS for path in source.touched(spec)}
    commits = changed.of_commits(specs[0], specs[-1])
    files |= {*commits.files} if commits is not None else set()
    options = {line for kernel in kernels[1:] for line in source.config_differences(kernels[0], kernel)}
    return (*sorted(path for path in files if _EVERYWHERE.search(path)), *sorted(options))


def _looked(bare: Looked, found: Changes, chosen: selection.Selection, reach: Reach, graph: CallGraph | None) -> Looked:
    names = {name for picked in chosen.picked for name in picked.changes}
    unreached = []
    for index, change in enumerate(chosen.unreached):
        near = reach.near(change.name, graph.callers, 1) if graph and index < _PATHS else ()
        unreached.append(Unreached(name=change.title, path=near[0].path if near else ()))
    return replace(
        bare,
        cases=tuple(picked.case for picked in chosen.picked),
        executing=chosen.executing,
        measured=tuple(change.title for change in found.changes if change.name in names),
        unreached=tuple(unreached),
        left_out=tuple(change.title for change in chosen.left_out),
        interrupting=tuple(change.title for change in chosen.interrupting),
        controls=chosen.controls,
        not_mapped=tuple(row.case for row in reach.not_mapped),
        needs=reach.needs,
        no_time=reach.no_time,
        taken_over=len(reach.taken_over),
        beyond=tuple(sorted({name for row in reach.taken_over for name in row.beyond})),
    )

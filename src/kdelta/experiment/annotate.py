# SPDX-License-Identifier: GPL-2.0-or-later
"""What is found out beside a measurement of built kernels, and kept with it: their selftests, their machine code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from kdelta.attribution import code, images, stripped
from kdelta.attribution.disassembly import Image
from kdelta.errors import KdeltaError
from kdelta.experiment import differing, lacking, selftests, templates, unlooked
from kdelta.experiment.known import watched
from kdelta.kernel import banner, changed, config_fragment, guards, kconfig, sharing, source, touches
from kdelta.kernel.products import Built
from kdelta.kernel.sources import parse_kernel
from kdelta.kernel.spelling import fold
from kdelta.model import Experiment, Kernel, Profile, Progress, Remark, plans
from kdelta.model.experiment import SHARED, UNLIKE, Looked, is_boot_only, is_new
from kdelta.store.rows import ProfileRow
from kdelta.store.store import Store

_LED = "instructions are identical, texts or data that they lead to differ"
_VERSION = re.compile(r"\d+\.\d+(\.\d+)?")
_MOVED = "the machine code is identical, data or addresses are not"  # of the data nothing is known
_BESIDE = "machine code and data are identical; names of files, line numbers or addresses are not"
_OPTIONS, _TIMES, _NAMES = 5, 3, 3  # of a config, of a patch, in a line
_OPTIONS_OF_FIGURES = 16  # a choice of preemption has four of them
_MANY_OPTIONS = 40
_TIMED = (
    ("waits", touches.waits, "name times", "how long a task waits"),
    ("prefetches", touches.prefetches, "fetch memory ahead", "what that saves"),
)
_MANY_WAIT = "most cases have one (kdelta compare --case pipe:readers=8,pattern=herd has eight)"
_BUILD_NOTES = 12  # of all kernels; the logs have the rest


def run_gate(store: Store, experiment: Experiment, progress: Progress) -> Experiment:
    """Run the selftests that ``experiment`` asks for, and keep their judgement and KTAP with it."""
    names = experiment.plan.selftests if isinstance(experiment.plan, plans.Compare) else ()
    if not names:
        return experiment
    gate = selftests.gate(experiment.kernels, names, experiment.machine, progress)
    for note in (*gate.notes, *filter(None, [gate.failed])):
        progress.note(note)
    notes = tuple(Remark("selftests", note) for note in gate.notes)
    return store.annotate(
        experiment.id, lambda known: replace(known, gate=gate.failed, ktap=gate.ktap, notes=(*known.notes, *notes))
    )


def finish_gate(store: Store, experiment: Experiment, progress: Progress) -> Experiment:
    """Run the selftests of an ``experiment`` that was interrupted before they were done; else it is left as it is."""
    names = experiment.plan.selftests if isinstance(experiment.plan, plans.Compare) else ()
    left = bool(names) and experiment.annotations.gate == templates.unfinished(names) and not experiment.imported
    return run_gate(store, experiment, progress) if left else experiment


def note_code(store: Store, experiment: Experiment, progress: Progress) -> Experiment:
    """Keep a line on the machine code of each built kernel with ``experiment``: against the baseline, or its step."""
    if not selftests.built(experiment.kernels):
        unlike = (*_of_builders(experiment), *_of_figures(experiment), *_of_unknown(experiment))
        unlike = (*unlike, *lacking.of(experiment))
        compilers = experiment.annotations.compilers or tuple(map(banner.compiler, experiment.kernels))
        keep = lambda known: replace(known, notes=(*known.notes, *unlike), compilers=compilers)  # noqa: E731
        return store.annotate(experiment.id, keep) if unlike or any(compilers) else experiment
    lines, looked, alone = [], experiment.annotations.looked, len(experiment.kernels) == 2
    one_image = len({kernel.image_sha256 for kernel in experiment.kernels}) == 1
    try:
        for index, kernel in enumerate(experiment.kernels[1:], 1):
            if one_image:
                lines.append(f"{kernel.label}: {stripped.IDENTICAL}")
                continue
            progress.step(f"comparing the machine code of {kernel.label}")
            before = experiment.kernels[index - 1 if experiment.in_steps else 0]
            told = stripped.sentence(differing.code_between(before, kernel))
            if told == stripped.IDENTICAL and before.image_sha256 != kernel.image_sha256:
                told = _beside(looked if alone else None)
            lines.append(f"{kernel.label}: {told}")
            lines += _configs(before, kernel)
    except (KdeltaError, OSError) as error:  # two architectures, a stripped image: the comparison itself goes on
        lines.append(f"machine code was not compared: {error}")
    notes = (*(Remark("machine-code", line) for line in lines), *_of_figures(experiment), *lacking.of(experiment))
    builds = _of_builds(experiment)
    unseen = unlooked.remarks(experiment, [note.text for note in builds])
    notes = (*notes, *builds, *unseen, *_of_times(experiment), *_of_sharing(experiment))
    return store.annotate(experiment.id, lambda known: replace(known, notes=(*known.notes, *notes)))


def _beside(looked: Looked | None) -> str:
    """What differs between images whose functions are the same, by what was ``looked`` up."""
    if looked is None or looked.boot_patched or looked.sizes_only:
        return _MOVED
    return _LED if looked.differ else _BESIDE


def _pairs(experiment: Experiment) -> Iterator[tuple[Kernel, Kernel]]:
    """Each kernel behind the one that it is held against: the baseline, or that of the step before."""
    for index, kernel in enumerate(experiment.kernels[1:], 1):
        yield experiment.kernels[index - 1 if experiment.in_steps else 0], kernel


def _of_figures(experiment: Experiment) -> Iterator[Remark]:
    """That configs differ in what moves figures: preemption, ticks, debugging. Two builds of one version tell all."""
    for before, after in _pairs(experiment):
        if _all_told(before, after):
            continue
        told = kconfig.figures_differ(_facts(before), _facts(after))
        every = _of_one_version(before, after)
        if len(every) > _MANY_OPTIONS:  # another flavour: by the alphabet drivers would be told
            among = f" in {len(every):,} options{', among them' if told else ''}"
            yield Remark(UNLIKE, _differs(before, after, told, among))
        elif every:
            yield Remark(UNLIKE, _differs(before, after, every))
        elif told:
            yield Remark("config", _differs(before, after, told, " in what moves figures"))


def _facts(kernel: Kernel) -> Mapping[str, str]:
    """By all of its config: what it was stored with may be less than is asked for today."""
    return {**kconfig.facts_of(source.options(kernel)), **kernel.config}


def _of_unknown(experiment: Experiment) -> Iterator[Remark]:
    """That nothing is known of the configs of images, so that no option in which they differ can be told."""
    others = not any(selftests.built([one]) for one in experiment.kernels)  # else all is said of the one built here
    if not others or len({one.image_sha256 for one in experiment.kernels}) == 1:
        return
    images_of = [one for one in experiment.kernels if parse_kernel(one.spec.partition("#")[0]).kind == "image"]
    labels = tuple(one.label for one in images_of if not source.options(one))
    if labels:
        told = "no config is known (by CONFIG_IKCONFIG, or a .config beside it), so options that differ are not told"
        yield Remark("config", f"{_few(labels)}: {told}")


def _of_one_version(before: Kernel, after: Kernel) -> tuple[str, ...]:
    """All options in which two kernels of one version differ that others built: their configs are what differs most."""
    versions = [_VERSION.match(one.release) for one in (before, after)]
    alike = all(versions) and len({found[0] for found in versions if found}) == 1
    if not alike or any(selftests.built([one]) for one in (before, after)):
        return ()
    return kconfig.that_may_move_figures(source.config_differences(before, after))


def _of_builders(experiment: Experiment) -> Iterator[Remark]:
    """That a kernel built here, by our config, is held against one that others built by theirs."""
    for pair in _pairs(experiment):
        here, theirs = sorted(pair, key=lambda one: not selftests.built([one]))
        if selftests.built([here]) == selftests.built([theirs]):
            continue
        differing = len(source.config_differences(*pair))
        spec = parse_kernel(theirs.spec)
        again = spec.kind == "debian" and _VERSION.fullmatch(spec.target)
        config = parse_kernel(here.spec.partition("#")[0]).config
        with_it = f',config="{config}"' if config else ""
        alike = f"; src:debian:{spec.target}{with_it} has its source and the config of {here.label}" if again else ""
        told = f"{here.label} was built here, {theirs.label} was not"
        options = f"{differing:,} options of their configs differ" if differing else "their configs may differ"
        yield Remark(UNLIKE, f"{told}: {options}, and part of each effect may be theirs or the compiler's{alike}")


def _of_times(experiment: Experiment) -> list[Remark]:
    """That a patch changes how long something waits, or what is fetched ahead, which no count of instructions shows."""
    if experiment.mode != "exact":
        return []
    diffs = [_diff(kernel) for kernel in experiment.kernels]
    found = []
    for index, kernel in enumerate(experiment.kernels[1:], 1):
        other = index - 1 if experiment.in_steps else 0
        built = kernel.image_sha256 != experiment.kernels[other].image_sha256  # no time of one image differs
        for kind, named, told, uncounted in _TIMED if built else ():
            names = named(diffs[index], diffs[other])
            more = f" and {len(names) - _TIMES} more" if len(names) > _TIMES else ""
            text = f"{kernel.label}: changed lines {told} ({', '.join(names[:_TIMES])}{more}); {uncounted}"
            found += [Remark(kind, f"{text} is in no count, --timed measures it")] if names else []
    return found


def _of_sharing(experiment: Experiment) -> list[Remark]:
    """That a patch is about what CPUs share, where one CPU is counted: nothing moves between CPUs there.

    On several, that it tries locks: one that is tried and found taken enters no slow path, which is what is counted.
    That it is about how many are woken: most cases have one that waits.
    """
    if experiment.mode != "exact":
        return []
    try:
        texts = changed.texts([parse_kernel(one.spec.partition("#")[0]) for one in experiment.kernels])
    except (KdeltaError, OSError):  # a tree that moved on
        return []
    names = tuple(dict.fromkeys(name for lines in texts for name in sharing.names(lines)))
    woken = tuple(dict.fromkeys(name for lines in texts for name in touches.woken(lines)))
    told = f"changed lines are about how many that wait are woken ({_few(woken)}), which shows where several wait"
    return [*_of_locks(experiment, names), *([Remark("woken", f"{told}: {_MANY_WAIT}")] if woken else [])]


def _of_locks(experiment: Experiment, names: Sequence[str]) -> list[Remark]:
    if names and any(one.config.get("SMP") == "n" for one in experiment.kernels):  # --smp would not show it
        told = f"changed lines are about what CPUs share ({_few(names)})"
        return [Remark("sharing", f"{told}: what moves between CPUs shows on kernels with CONFIG_SMP=y alone")]
    if experiment.machine.smp > 1:
        tried = [name for name in names if "trylock" in name.split("_")]
        told = f"changed lines try locks ({_few(tried)}): one that is tried and found taken is in no count of waits"
        return [Remark("tried-locks", told)] if tried else []
    return [Remark(SHARED, _few(names))] if names else []


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return f"{', '.join(names[:_NAMES])}{more}"


def _diff(kernel: Kernel) -> list[str]:
    """The patch of a kernel that was built here, in lines; [] of one without, or where it is not there any more."""
    built = _remembered(kernel)
    try:
        return Path(built.diff).read_text("utf-8", "replace").splitlines() if built is not None and built.diff else []
    except OSError:
        return []


def _remembered(kernel: Kernel) -> Built | None:
    text, _, count = kernel.spec.partition("#")
    try:
        return source.remembered(parse_kernel(text), int(count) if count else None)
    except (KdeltaError, OSError):  # a tree that moved on: what it said then is gone with it
        return None


def _of_builds(experiment: Experiment) -> list[Remark]:
    """What the builds said: how a patch was repaired or where it fitted, what of it and of the config was not built."""
    said: dict[str, list[str]] = {}
    looked = experiment.annotations.looked
    above = {guards.unbuilt(path) for path in (looked.not_built if looked is not None else ())}
    for kernel in experiment.kernels:
        built = _remembered(kernel)
        for note in (note for note in (built.notes if built is not None else ()) if note not in above):
            said.setdefault(note, []).append(kernel.label)
    lines = [f"{', '.join(labels)}: {note}" for note, labels in said.items()]
    more = [f"of the builds {len(lines) - _BUILD_NOTES} more notes"] if len(lines) > _BUILD_NOTES else []
    return [Remark("build", line) for line in (*lines[:_BUILD_NOTES], *more)]


def _configs(before: Kernel, after: Kernel) -> tuple[str, ...]:
    """A line where two kernels of one release were built with different configs, by the patch or otherwise."""
    differing = source.config_differences(before, after) if _all_told(before, after) else ()
    told = kconfig.ranked(differing, _asked(before) | _asked(after))
    return (_differs(before, after, told),) if told else ()


def _asked(kernel: Kernel) -> frozenset[str]:
    """The options that the name of a kernel asks for."""
    try:
        return config_fragment.asked(parse_kernel(kernel.spec.partition("#")[0]).config)
    except KdeltaError:  # a fragment that is gone
        return frozenset()


def _all_told(before: Kernel, after: Kernel) -> bool:
    """Whether all options in which two configs differ are told: from release to release they are many."""
    return selftests.built((before, after)) and before.release == after.release


def _differs(before: Kernel, after: Kernel, options: Sequence[str], where: str = "") -> str:
    shown = max(_OPTIONS, min(kconfig.moving_figures(options), _OPTIONS_OF_FIGURES))
    more = f" and {len(options) - shown} more" if len(options) > shown else ""
    told = f": {', '.join(options[:shown])}{more}" if options else ""
    return f"{after.label}: its config differs from that of {before.label}{where}{told}"


def note_locations(store: Store, experiment: Experiment, progress: Progress) -> Experiment:
    """Keep with ``experiment`` where its last kernel changes the source of the first, for reviewers' tools."""
    if not selftests.built(experiment.kernels):
        return experiment
    first, last = (parse_kernel(one.spec.partition("#")[0]) for one in (experiment.kernels[0], experiment.kernels[-1]))
    try:
        found = changed.between(first, last)
    except (KdeltaError, OSError) as error:  # a tree that moved on: the figures need no lines
        progress.note(f"which lines changed is not known: {error}")
        return experiment
    return store.annotate(experiment.id, lambda known: replace(known, locations=found)) if found else experiment


def note_executed(store: Store, experiment: Experiment) -> Experiment:
    """Keep with ``experiment`` which functions were executed after all that no case was known to execute.

    The map is of the baseline: a new function that is called through a pointer alone has no caller there, and the
    counts of the patched kernel say whether it ran.
    """
    known = store.experiment(experiment.id)
    looked = known.annotations.looked
    asked = {one.name: _function(one.name) for one in looked.unreached} if looked is not None else {}
    left = {name for name in asked.values() if name}
    if looked is None or not left:
        return experiment
    executed: set[str] = set()
    for case in range(len(known.cases)):
        by_kernel = {row.kernel: row for row in store.profiles(experiment.id, case)}  # all seeds run the same
        executed |= {name for row in by_kernel.values() for name in left & row.profile.functions.keys()}
    ran = tuple(title for title, name in asked.items() if name in executed)
    if not ran:
        return experiment
    unreached = tuple(one for one in looked.unreached if one.name not in ran)
    found = replace(looked, unreached=unreached, measured=(*looked.measured, *ran))
    return store.annotate(experiment.id, lambda notes: replace(notes, looked=found))


def note_untouched(store: Store, experiment: Experiment) -> Experiment:
    """Keep with ``experiment`` the functions that its cases executed, but no instruction, or not all, that differs.

    A slow path that was not taken, or a new function that nobody called: the counts then say nothing of it. What cannot
    be told is not said: boots that were made before this was kept, code that cannot be read, a kernel without such
    places.
    """
    known = store.experiment(experiment.id)
    looked, names = known.annotations.looked, watched(known)
    titles = (*looked.measured, *looked.untouched) if looked else ()
    new = {title: _function(title) for title in titles if is_new(title) and not is_boot_only(title)}
    if looked is None or not (names or new) or known.mode != "exact":
        return experiment
    every_row = [row for case in range(len(known.cases)) for row in store.profiles(experiment.id, case)]
    rows = [row for row in every_row if row.kernel]
    ran = {name: [row for row in rows if name in row.profile.functions] for name in names}
    told = {name for name in names if ran[name] and all(_has_places(row.profile, name) for row in ran[name])}
    try:
        images_of = [images.image_of(kernel) for kernel in known.kernels] if told or new else []
    except (KdeltaError, OSError):
        return experiment
    shares = {name: _shares(ran[name], images_of, name) for name in sorted(told)}
    none_ran = {name for name, found in shares.items() if found and not any(part for part, _ in found)}
    none_ran |= _not_called(new, rows, images_of)
    whole = [name for name, found in shares.items() if all(part == of for part, of in found)]
    removed = {name: _removed(base, images_of, name) for name in whole if (base := _of_baseline(every_row, name))}
    every = (*looked.measured, *looked.untouched)
    found = replace(
        looked,
        measured=tuple(name for name in every if name not in none_ran),
        untouched=tuple(name for name in every if name in none_ran),
        partly={
            name: min(found, key=lambda share: share[0] - share[1])
            for name, found in shares.items()
            if name not in none_ran and any(part < of for part, of in found)
        },
        removed={name: share for name, share in removed.items() if share[0] < share[1]},
    )
    if (found.untouched, found.partly, found.removed) == (looked.untouched, looked.partly, looked.removed):
        return experiment
    return store.annotate(experiment.id, lambda notes: replace(notes, looked=found))


def _not_called(new: Mapping[str, str], rows: Sequence[ProfileRow], images_of: Sequence[Image]) -> set[str]:
    """The titles of functions that the patched kernels alone have, and that none of their cases executed."""
    ran: set[str] = set()
    for row in rows if new else ():
        names = {fold(name) for name in row.profile.functions}
        ran |= names | {alias for alias, name in images_of[row.kernel].aliases.items() if name in names}
    return {title for title, name in new.items() if name not in ran} if rows else set()


def _shares(rows: Sequence[ProfileRow], images_of: Sequence[Image], name: str) -> list[tuple[int, int]]:
    """For each patched kernel: how many instructions of a function that differ ran under any seed, of how many."""
    found = []
    for kernel in sorted({row.kernel for row in rows}):
        places = code.changed_places(images_of[0], images_of[kernel], name)
        ran = {place for row in rows if row.kernel == kernel for place in _ran(row.profile)}
        found += [(len(places & ran), len(places))] if places else []
    return found


def _of_baseline(rows: Sequence[ProfileRow], name: str) -> list[ProfileRow]:
    """The baseline's rows that execute ``name``; () where one does not say which instructions ran."""
    found = [row for row in rows if not row.kernel and name in row.profile.functions]
    return found if all(_has_places(row.profile, name) for row in found) else []


def _removed(rows: Sequence[ProfileRow], images_of: Sequence[Image], name: str) -> tuple[int, int]:
    """How many instructions that the last kernel lacks ran on the baseline under any seed, of how many.

    A path that a patch takes out, and that nothing took, is seen there alone: what lies behind it ran on both.
    """
    places = code.left_out(images_of[0], images_of[-1], name)
    ran = {place for row in rows for place in _ran(row.profile)}
    return len(places & ran), len(places)


def _has_places(profile: Profile, name: str) -> bool:
    return any(fold(symbol) == name for symbol in profile.places)


def _ran(profile: Profile) -> set[tuple[str, int]]:
    return {(symbol, offset) for symbol, offsets in profile.places.items() for offset in offsets}


def _function(title: str) -> str:
    """The name in the title of a change, "" of a variable."""
    name, _, kind = title.partition(" (")
    return "" if kind.startswith("data") else name

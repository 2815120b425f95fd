# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a program prints other things on one kernel than on another, under each seed, or that it lacks something.

A program may go on where a kernel has not what it asks for (ENOSYS), end well, and have done less: its count then is
of other work, and what it printed may be all that says so. So it is where the guest has not what it asks for:
``script -qc 'stty -a'`` found no /bin/sh, ended with 0, and was the same on 6.12 under two command lines. What names
the kernel is another line on each, and says nothing of the work; of figures nobody knows here what they are of.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set

from kdelta.guest import protocol
from kdelta.model import Experiment
from kdelta.results.warnings import Lack, PrintedFigures, PrintedLacking, PrintedOtherwise
from kdelta.store.rows import BootRow
from kdelta.store.store import Store

_PROGRAM = "program"  # the workload
_READ = 5  # boots of a kernel: a program that prints what varies shows it in these
_LEAST = 2  # of those: what one seed prints may be its own
_LONGEST = 100  # characters of a line
# By errno(3), or as shells say it. What is meant for reading has such words too: a line that is long is of that kind.
_LACKS: tuple[tuple[Lack, re.Pattern[str]], ...] = (
    ("file", re.compile(r"No such file or directory|: (?:command )?not found$|Read-only file system")),
    # Of Ruby without its library, of PHP without its extensions, of LD_PRELOAD, and of tests for a module.
    ("file", re.compile(r"\b(?:was|were) not loaded\b|nable to load dynamic library|cannot open shared object file")),
    ("file", re.compile(r"cannot load such file|Can't locate \S+ in @INC|No module named ")),
    ("huge", re.compile(r"(?i)huge.?(?:tlb|page).*cannot allocate memory|not enough huge ?pages")),
    ("memory", re.compile(r"annot allocate memory|No space left on device|\b[Oo]ut of memory\b")),
    ("network", re.compile(r"Network is unreachable|Name or service not known|failure in name resolution")),
    ("right", re.compile(r"Operation not permitted|Function not implemented|Operation not supported")),
    # Of gpg without its agent, of man and fontconfig without their files: without errno's words, which go before.
    ("file", re.compile(r"(?i)\b(?:can'?t|cannot|could not|(?:unable|failed) to) (?:open|load)\b(?!.*denied)")),
    ("file", re.compile(r"\bprobably not installed\b|\bis not installed$")),
)
_FIGURES = re.compile(r"\d+(?:[.,:]\d+)*")


def otherwise(experiment: Experiment, store: Store, boots: Sequence[BootRow]) -> tuple[PrintedOtherwise, ...]:
    """Of a comparison of a program: the kernels on which it prints other lines than on the baseline."""
    programs = all(case.workload == _PROGRAM for case in experiment.cases)
    if not experiment.cases or not programs or experiment.in_steps or len(experiment.kernels) < 2:
        return ()
    kernels = range(len(experiment.kernels))
    found = [_of(experiment, store, boots, kernel) for kernel in kernels]
    broke = {kernel for kernel in kernels if _failed(experiment, store, boots, kernel)}
    told = (_told(experiment, (0, kernel), found[0], lines, broke) for kernel, lines in enumerate(found[1:], 1))
    return tuple(one for one in told if one is not None)


def _told(
    experiment: Experiment,
    kernels: tuple[int, int],
    old: Sequence[str] | None,
    new: Sequence[str] | None,
    broke: Set[int],
) -> PrintedOtherwise | None:
    """The first line that only one of the ``kernels`` has; with other figures only where all lines are such.

    That a kernel on which it ``broke``, and has no count, lacks lines says nothing; what it prints there alone may.
    """
    if old is None or new is None or old == new:
        return None
    case, labels = experiment.cases[0].name, [experiment.kernels[kernel].label for kernel in kernels]
    if [_FIGURES.sub("", line) for line in old] == [_FIGURES.sub("", line) for line in new]:
        before, after = next((one, other) for one, other in zip(old, new, strict=True) if one != other)
        return PrintedFigures(case, labels[1], labels[0], after[:_LONGEST], before[:_LONGEST])
    for mine, others, kernel, other in ((new, old, labels[1], labels[0]), (old, new, labels[0], labels[1])):
        if kernels[labels.index(other)] in broke:
            continue
        if alone := next((line for line in mine if line not in others), None):
            return PrintedOtherwise(case, kernel, other, alone[:_LONGEST])
    return None


def lacking(experiment: Experiment, store: Store, boots: Sequence[BootRow]) -> tuple[PrintedLacking, ...]:
    """Of programs in guests that ended as they should: the first line that says of each that it lacked something."""
    if experiment.machine.native or len(experiment.cases) != 1 or experiment.cases[0].workload != _PROGRAM:
        return ()
    seen = [_lines(store.stream(experiment.id, boot.block, boot.slot)) for boot in _first(boots, 0)]
    always = [line for line in seen[0] if all(line in other for other in seen[1:])] if seen else []
    found = ((_lack(line), line) for line in always if len(line) <= _LONGEST)
    what, line = next(((lack, line) for lack, line in found if lack), (None, ""))
    return (PrintedLacking(experiment.cases[0].name, line, what),) if what else ()


def _lack(line: str) -> Lack | None:
    return next((what for what, words in _LACKS if words.search(line)), None)


def _first(boots: Sequence[BootRow], kernel: int) -> list[BootRow]:
    return [boot for boot in boots if boot.kernel == kernel and boot.state == "ok"][:_READ]


def _of(experiment: Experiment, store: Store, boots: Sequence[BootRow], kernel: int) -> tuple[str, ...] | None:
    """What it prints on a kernel, without the kernel's name; None where not known, or not always the same."""
    mine, release = _first(boots, kernel), experiment.kernels[kernel].release
    read = (_lines(store.stream(experiment.id, boot.block, boot.slot)) for boot in mine)
    seen = {tuple(_nameless(line, release) for line in lines) for lines in read}
    return seen.pop() if len(seen) == 1 and len(mine) >= _LEAST else None


def _failed(experiment: Experiment, store: Store, boots: Sequence[BootRow], kernel: int) -> bool:
    """Whether the program did not end well on a kernel, or did not begin."""
    streams = (store.stream(experiment.id, boot.block, boot.slot) for boot in _first(boots, kernel))
    records = (one for stream in streams for one in protocol.parse(stream).records)
    return any(isinstance(one, protocol.Done) and one.state != "ok" for one in records)


def _nameless(line: str, release: str) -> str:
    """What a ``line`` says before the kernel's release, behind which stands of which build it is."""
    return line.partition(release)[0] if release and release in line else line


def _lines(stream: bytes) -> tuple[str, ...]:
    return tuple(record.text for record in protocol.parse(stream).records if isinstance(record, protocol.Output))

# SPDX-License-Identifier: GPL-2.0-or-later
"""What is known of a kernel when its counts are read: functions, entries of system calls, its data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from msgspec.structs import replace

from kdelta.attribution import callers, entries, images
from kdelta.attribution.exact import Names
from kdelta.errors import UserError
from kdelta.kernel import calls, described, naming, products, types, variables
from kdelta.kernel.spelling import fold
from kdelta.kernel.symbols import NoSymbols, SymbolTable
from kdelta.model import Experiment, Kernel, Progress, Remark
from kdelta.store.store import Store

NamesOf = Callable[[Kernel], Names]
_LABELS = 3  # of kernels, in a line


def watched(experiment: Experiment) -> frozenset[str]:
    """The functions that a patch changed or brings and that cases are known to execute; none of a whole image."""
    looked = experiment.annotations.looked
    if looked is None or looked.whole or looked.sizes_only:
        return frozenset()
    titles = (title.partition(" (") for title in (*looked.measured, *looked.untouched))
    return frozenset(name for name, _, kind in titles if kind in ("", "new)"))


def _names(kernel: Kernel, several_cpus: bool, watched: Collection[str], named: bool) -> Names:
    table = naming.load(kernel)
    if isinstance(table, NoSymbols):
        return Names()
    graph = calls.load(kernel, table)
    code = calls.Code(table, None if isinstance(graph, NoSymbols) else graph)
    if several_cpus:
        data, described = variables.load(kernel, table), types.load(kernel)
        slabs = types.slab_layout(data, described, kernel.release)
        facts = callers.facts(table, slabs.words() if slabs is not None else ())
        return Names(functions=code, variables=data, types=described if named else None, facts=facts)
    return Names(functions=code, entries=entries.find(table), watched=watch(kernel, table, watched))


def watch(kernel: Kernel, table: SymbolTable, watched: Collection[str]) -> tuple[tuple[str, int, int], ...]:
    """(symbol, start, end) of every part of the functions ``watched``, as far as its image says that it reaches.

    For kallsyms a function ends at the next label: entry_SYSCALL_64 before most of it, at entry_SYSCALL_64_safe_stack.
    """
    try:
        image = images.image_of(kernel) if watched else None
    except (UserError, OSError):
        image = None
    if image is None:
        return tuple(parts(table, watched))
    found = ((one.name.partition("#")[0], one) for name in sorted(watched) for one in image.sources.get(name, ()))
    return tuple((name, one.address, one.address + one.size) for name, one in found)


def parts(table: SymbolTable, watched: Collection[str]) -> Iterator[tuple[str, int, int]]:
    """(symbol, start, end) of every part of the functions ``watched``, each up to the next symbol."""
    starts = table.addresses.tolist()
    for name, start, end in zip(table.all_names, starts, [*starts[1:], starts[-1] + 1], strict=True) if watched else ():
        if fold(name) in watched:
            yield name, start, end


def typed(kernels: Iterable[Kernel]) -> bool:
    """Whether the fields of all ``kernels`` have names: the field of one would be no line of the other."""
    return all(types.described(kernel) for kernel in kernels)


def _never_asked(kernel: Kernel) -> bool:
    """Whether ``kernel`` was built here, by a kdelta that did not ask the compiler for its types."""
    said = list(products.logs(kernel.image_sha256))
    return bool(said) and not any(described.SOURCE in log for log in said)


def untyped(kernels: Sequence[Kernel]) -> str:
    """Why the fields of ``kernels`` that move between CPUs have no names, with the remedy; "" where they have."""
    silent = [kernel for kernel in kernels if not types.described(kernel)]
    if not silent:
        return ""
    labels, more = ", ".join(kernel.label for kernel in silent[:_LABELS]), len(silent) - _LABELS
    which = f"{labels}{f' and {more} more' if more > 0 else ''}"
    why = f"fields of what moves between CPUs have no names, as {which} {'do' if len(silent) > 1 else 'does'}"
    old = [kernel for kernel in silent if _never_asked(kernel)]
    sums = " ".join(f"--only {kernel.image_sha256:.12}" for kernel in old[:_LABELS])
    them = "it" if len(old) == 1 else "them"
    again = f" (an older kdelta built {them}: kdelta kernels prune {sums}, then the same again)"
    return f"{why} not say what types {'they have' if len(silent) > 1 else 'it has'}{again if old else ''}"


def note_untyped(store: Store, experiment: Experiment, progress: Progress) -> Experiment:
    """Say, and keep with an ``experiment`` on several CPUs, why what moves between them has no names of fields."""
    told = untyped(experiment.kernels) if experiment.machine.smp > 1 else ""
    said = Remark("untyped", told)
    if not told or said in experiment.annotations.notes:
        return experiment
    progress.note(told)
    return store.annotate(experiment.id, lambda known: replace(known, notes=(*known.notes, said)))


def known(several_cpus: bool = False, watched: Collection[str] = (), kernels: Sequence[Kernel] = ()) -> NamesOf:
    """What is known of a kernel, looked up once for each image: its functions and the entries of its system calls.

    For guests of several CPUs its data in place of the entries: which call moves a line is not told. Of the functions
    ``watched`` it is kept which instructions ran. ``kernels`` are all that are held against each other.
    """
    found: dict[str, Names] = {}
    named = several_cpus and typed(kernels)

    def of(kernel: Kernel) -> Names:
        if kernel.image_sha256 not in found:
            found[kernel.image_sha256] = _names(kernel, several_cpus, watched, named)
        return found[kernel.image_sha256]

    return of

# SPDX-License-Identifier: GPL-2.0-or-later
"""make atlas: write anew which functions the shipped cases execute on several kernels (attribution/atlas.py).

Taken from all maps in the cache, and from the exact experiments of stores that are named: nothing is booted. Map first
what should be in it: ``kdelta reach src:debian:7.2``, or a sweep over the whole suite. Cases of the user's own are left
out, and so are kernels of another architecture, and maps of a case that was another one then. Stores do not know that:
name none from before a case was changed.

Cases that few kernels can run (``needs.rare``) are named for what they alone execute: map a kernel built with the
options that they need, as ``kdelta reach 'src:debian:7.3,config="BLOCK=y EXT4_FS=y ..."'``, and one built without.

With ``--add`` what the atlas has stays, but for cases that are no longer what they were: of these, and of new ones, a
few kernels are enough, ``kdelta reach debian:7.2 --case contention/open_one``. Functions of cases that are gone stay:
too many of them only make it say "no" less often.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from kdelta.attribution import atlas
from kdelta.attribution.atlas import Atlas
from kdelta.attribution.reach import Row
from kdelta.cli import common, reach
from kdelta.errors import UserError
from kdelta.experiment import reach_rows
from kdelta.kernel import cache, maps, symbols
from kdelta.spec import cases, needs, suites
from kdelta.spec.sameness import digest
from kdelta.spec.workloads import catalogue, rare_options
from kdelta.store import connect
from kdelta.store.store import Store

_MORE = 1.25  # instructions a call: another way
_LEAST = 0.0001  # of what a case executes; less may be of an interrupt
TARGET = Path(atlas.__file__).with_name("atlas.txt")


class Seen(Struct, frozen=True):
    """One case on one kernel: what it executed; None where it did not run. ``digest``: what it was, "" unknown.

    ``ways``: of functions, where it is known: instructions a call, and the share of all that the case executes.
    """

    kernel: str
    case: str
    functions: frozenset[str] | None
    digest: str = ""
    ways: Mapping[str, tuple[float, float]] = {}


def of_maps() -> Iterator[Seen]:
    """All rows of all maps whose images are in the cache."""
    for one in maps.maps():
        release = next((_release(s.entry) for s in cache.entries() if _is(s, one.name)), "")
        for path in sorted(one.folder.iterdir()) if release else ():
            row = reach_rows.kept(path)
            if row is not None:
                names = frozenset(row.functions) if row.state == "ok" else None
                yield Seen(release, row.case, names, row.digest, _ways(row))


def _ways(row: Row) -> dict[str, tuple[float, float]]:
    ran = [(name, one) for name, one in row.functions.items() if one.calls]
    return {name: (one.instructions / one.calls, row.share((name,))) for name, one in ran}


def _is(stored: cache.Stored, name: str) -> bool:
    return stored.entry.arch == "x86_64" and stored.entry.sha256.startswith(name)


def _release(entry: cache.Entry) -> str:
    """Debian's 6.1.192 says of itself that it is 6.1.0-50."""
    return entry.package_version or entry.release


def of_store(url: str) -> Iterator[Seen]:
    """Every profile of every exact experiment of a store.

    Raises:
        UserError: there is none.
    """
    if (path := connect.absent(url)) is not None:
        raise UserError(f"store {path}: not there")
    with Store(url) as store:
        for one in store.experiments():
            experiment = store.experiment(one.id)
            if experiment.machine.smp > 1 or any(kernel.arch != "x86_64" for kernel in experiment.kernels):
                continue
            for index, case in enumerate(experiment.cases):
                for row in store.profiles(experiment.id, index):
                    names = frozenset(name for name in row.profile.functions if not name.startswith("["))
                    kernel = experiment.kernels[row.kernel]  # its label is as in _release
                    yield Seen(kernel.label if atlas.version(kernel.label) else kernel.release, case.name, names)


def rare_of(seen: Iterable[Seen], rare: Collection[str], there: Collection[str]) -> dict[str, str]:
    """For functions of ``there`` the ``rare`` case that spends most in it, where no other takes its way.

    That is, no other executes it, or none as many instructions a call.
    """
    usual: dict[str, float] = defaultdict(float)
    best: dict[str, tuple[float, str]] = {}
    seen = [one for one in seen if one.functions]
    for one in seen if rare else ():
        for name in (one.functions or ()) if one.case not in rare else ():
            usual[name] = max(usual[name], one.ways.get(name, (math.inf, 0.0))[0])
    for one in seen:
        for name, (each, share) in one.ways.items() if one.case in rare else ():
            if name in there and share >= _LEAST and (name not in usual or each > _MORE * usual[name]):
                best[name] = max(best.get(name, (0.0, "")), (share, one.case))
    return {name: case for name, (_, case) in best.items()}


def drawn(
    seen: Iterable[Seen],
    wanted: Mapping[str, str],
    made_on: str,
    rare: Collection[str] = (),
    there: Collection[str] = (),
) -> Atlas:
    """The atlas of what was seen of the ``wanted`` cases, each with its digest of today.

    ``rare`` ones need what few kernels have; of functions in ``there`` it is told where these alone execute them.
    """
    seen = list(seen)
    kernels: dict[str, set[str]] = defaultdict(set)
    ran, tried = set(), set()
    for one in seen:
        if one.case not in wanted or one.digest not in ("", wanted[one.case]):
            continue
        tried.add(one.case)
        if one.functions is not None:
            ran.add(one.case)
            kernels[one.kernel.split("-")[0].split("+")[0]] |= one.functions
    names = frozenset(name for functions in kernels.values() for name in functions)
    return Atlas(
        made_on=made_on,
        kernels=atlas.rising(kernels),
        cases={name: wanted[name] for name in ran},
        failed={name: wanted[name] for name in tried - ran},
        functions=names,
        rare=rare_of((one for one in seen if one.digest in ("", wanted.get(one.case))), rare, there),
    )


def added(known: Atlas, more: Atlas, today: Mapping[str, str]) -> Atlas:
    """``known`` with ``more``: what it has of cases that are ``today`` as they were then, and all of ``more``."""
    still = [
        {name: one for name, one in cases.items() if today.get(name) == one} for cases in (known.cases, known.failed)
    ]
    ran = still[0] | dict(more.cases)
    failed = {name: one for name, one in (still[1] | dict(more.failed)).items() if name not in ran}
    kernels = atlas.rising({*known.kernels, *more.kernels})
    return Atlas(
        made_on=more.made_on, kernels=kernels, cases=ran, failed=failed, functions=known.functions | more.functions,
        rare={name: case for name, case in {**known.rare, **more.rare}.items() if case in ran},
    )  # fmt: skip


def usual_functions() -> frozenset[str]:
    """All functions of the newest kernel in the cache that has a map, built here without what few kernels have."""
    options = rare_options()
    folders = {one.name for one in maps.maps()}
    found = [
        one
        for one in cache.entries()
        if one.entry.arch == "x86_64" and any(map(one.entry.sha256.startswith, folders))
        and "; guest config;" in one.entry.origin and not any(one.entry.config.get(name) == "y" for name in options)
    ]  # fmt: skip
    newest = max(found, key=lambda one: one.used_s, default=None)
    table = symbols.from_image((newest.vmlinux or newest.image).read_bytes()) if newest else None
    return frozenset(table.all_names) if isinstance(table, symbols.SymbolTable) else frozenset()


def _all_today() -> dict[str, str]:
    """The digests of the shipped cases, also of those whose programs are not installed here."""
    workloads = catalogue(())
    every = [case for suite in suites.suites().values() for case in cases.of_suite(suite, workloads, missing_ok=True)]
    return {case.name: digest(workloads[case.workload], case) for case in every}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("stores", nargs="*", metavar="STORE", help="SQLAlchemy URLs of stores with exact experiments")
    parser.add_argument("--add", action="store_true", help="keep what the atlas has of cases that are what they were")
    args = parser.parse_args(argv)
    free = common.CaseArgs(cases=(), suites=(), workloads=(), memcg=False, limit=None)
    workloads = common.load_workloads(())
    wanted = {case.name: digest(workloads[case.workload], case) for case in reach.candidates(free)}
    seen = [*of_maps(), *(one for url in args.stores for one in of_store(url))]
    free_cases = reach.candidates(free)
    rare = {case.name for case in free_cases if needs.are_rare(workloads[case.workload].needs_of(case))}
    made = drawn(seen, wanted, datetime.now(UTC).strftime("%Y-%m-%d"), rare, usual_functions() if rare else ())
    if made.kernels and args.add:
        made = added(atlas.shipped(), made, {**_all_today(), **wanted})
    if not made.kernels:
        sys.stderr.write("atlas: no map in the cache and no store named: run kdelta reach KERNEL first\n")
        return 1
    TARGET.write_text(atlas.written(made), "utf-8")
    missing = sorted(wanted.keys() - made.cases.keys() - made.failed.keys())
    sys.stdout.write(f"{made.title}: {len(made.functions)} functions, {len(made.cases)} cases; not tried: {missing}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

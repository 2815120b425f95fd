# SPDX-License-Identifier: GPL-2.0-or-later
"""A filled store for the pages' tests."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from kdelta.model import (
    Annotations,
    BootResult,
    Case,
    Experiment,
    Gap,
    Kernel,
    MovedLine,
    PlannedBoot,
    Profile,
    RunResult,
    Series,
    plans,
)
from kdelta.model.diary import Step, Watched
from kdelta.report.heatmap import MANY
from kdelta.results.versions import gaps_in
from kdelta.store.store import Store

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>../../etc/passwd\nsecond\u202eline{{ 7*7 }}"
CONSOLE = (
    b"Linux version 6.12\r\n<script>alert(3)</script>\x1b[31mred\x1b[0m\x00\x07\xff\xfe\xe2\x80\xae</pre>\r\nBye\r\n"
)


def kernel(label: str, **more: Any) -> Kernel:
    fields: dict[str, Any] = {
        "label": label,
        "spec": f"debian:{label}",
        "release": label,
        "image_path": "/secret/path/image",
    }
    return Kernel(**{**fields, "image_sha256": "ab" * 32, **more})


def experiment(name: str, labels: tuple[str, ...], **more: Any) -> Experiment:
    fields: dict[str, Any] = {
        "id": name,
        "mode": "exact",
        "kernels": tuple(map(kernel, labels)),
        "cases": (Case(workload="pidfd_open"),),
        "blocks": 2,
        "created_at": "2026-05-01T10:00:00+00:00",
        "command": f"kdelta compare {' '.join(labels)}",
        "tool_version": "0.1.0",
    }
    return Experiment(**{"plan": plans.Compare(), **fields, **more})


def boot(
    block: int, slot: int, cases: int = 1, console: bytes = CONSOLE, cost: int = 0, moves: int = 0, **more: Any
) -> BootResult:
    """A boot whose kernel costs ``cost`` instructions; if that is 0, 1000, or 900 in slot 1; a lock ``moves``."""
    cost = cost or (900 if slot == 1 else 1000)
    shared, own = cost // 2, cost - cost // 2
    functions: dict[str, tuple[int, ...]] = {
        "do_syscall_64": (100 * 16, 0, 0, 0, 0, 0, 0),
        "pidfd_create": (shared * 16, 0, 0, 0, 0, 0, 0),
        f"kernel_{slot}": ((own - 100) * 16, 0, 0, 0, 0, 0, 0),
    }
    lock = MovedLine(name=f"lock{HOSTILE}", reads=0, writes=moves, cpus=8, by={"do_exit": (0, moves)})
    moved = (lock,) if moves else ()
    profile = Profile(ops=16, functions=functions, total=(cost * 16, 0, 0, 0, 0, 0, 0), moved=moved)
    series = Series(metric="instructions", unit="instructions/op", better="lower", values=(float(cost),) * 3)
    runs = tuple(RunResult(case=case, state="ok", series=(series,), profile=profile) for case in range(cases))
    plan = PlannedBoot(block=block, slot=slot, kernel=slot)
    fields: dict[str, Any] = {
        "plan": plan,
        "state": "ok",
        "started_at": "2026-05-01T10:00:05+00:00",
        "elapsed_s": 3.5,
        "console": console,
        "runs": runs,
        "argv": ("/secret/path/qemu",),
    }
    return BootResult(**{**fields, **more})


def sweep(name: str, versions: list[Kernel | Gap], **more: Any) -> Experiment:
    """An exact sweep of ``versions``."""
    kernels = tuple(one for one in versions if isinstance(one, Kernel))
    compilers = tuple("gcc 14" if k else "gcc 12" for k in range(len(kernels)))
    told = Annotations(gaps=gaps_in(versions), compilers=compilers)
    command = "kdelta sweep --refs v6.1..v7.0"
    return experiment(
        name, (), **{"plan": plans.Sweep(), "kernels": kernels, "annotations": told, "command": command, **more}
    )


def absent(label: str, why: str) -> Gap:
    return Gap(label=label, spec="src:./linux@v6.9", why=why, by_host=False)


def fill_sweep(store: Store) -> None:
    """Five versions with and without mitigations: a step at 6.6, 6.9 does not build, 6.12 panics, a step at 7.0."""
    costs: dict[str, tuple[int, ...]] = {"default": (1000, 900, 0, 1200), "off": (800, 800, 0, 700)}
    gap = absent("6.9", "does not build: fs/pipe.c:12: error: 'x' undeclared")
    versions: list[Kernel | Gap] = [kernel("6.1"), kernel("6.6"), gap, kernel("6.12"), kernel("7.0")]
    store.create(sweep("sweep", versions, mitigations=tuple(costs), created_at="2026-03-01T10:00:00+00:00"))
    for block in range(5):
        for number, (mitigations, row) in enumerate(costs.items()):
            for index, cost in enumerate(row):
                slot = number * len(row) + index
                plan = PlannedBoot(block=block, slot=slot, kernel=index, mitigations=mitigations)  # type: ignore[arg-type]
                dead: dict[str, Any] = (
                    {} if cost else {"state": "panicked", "why": "Kernel panic - not syncing: VFS", "runs": ()}
                )
                store.save_boot("sweep", boot(block, slot, cost=cost, plan=plan, **dead))


def fill_map(store: Store, name: str = "map", lines: int = MANY) -> None:
    """So many cases over three versions that a map of squares stands for them: two steps of each."""
    cases = tuple(Case(workload="pidfd_open", label=f"case{number}") for number in range(lines))
    made = "2026-01-01T10:00:00+00:00"
    store.create(sweep(name, [kernel("6.1"), kernel("6.6"), kernel("7.0")], cases=cases, created_at=made))
    for block in range(5):
        for slot, cost in enumerate((1000, 900, 1200)):
            store.save_boot(name, boot(block, slot, cases=lines, cost=cost))


def fill(store: Store) -> None:
    """Two experiments that share a case, a sweep, a hostile one of each, one without any boot."""
    for name, labels, day in (("first", ("6.12", "7.0"), 1), ("second", ("6.1", "7.0"), 2)):
        store.create(experiment(name, labels, created_at=f"2026-05-0{day}T10:00:00+00:00"))
        for block in range(2):
            for slot in range(2):
                store.save_boot(name, boot(block, slot, moves=32 if name == "second" else 0))
    store.tag("first", "nightly")
    store.note("first", "after the BIOS update\nsecond line")
    long = HOSTILE + "x" * 10_240
    case = Case(workload="pidfd_open", label=long, params={HOSTILE: HOSTILE})
    names = (kernel(HOSTILE), kernel(long, spec=HOSTILE, release=HOSTILE, cmdline=HOSTILE))
    hostile = experiment(
        "hostile",
        (),
        kernels=names,
        cases=(case,),
        command=long,
        plan=plans.Compare(follows=HOSTILE),
        created_at=HOSTILE,
        host={"h": HOSTILE},
    )
    store.create(hostile)
    for slot in range(2):
        store.save_boot("hostile", boot(0, slot, console=bytes(range(256)) * 8))
    store.save_boot("hostile", boot(1, 0, state="panicked", why=HOSTILE, runs=()))
    store.note("hostile", long)
    versions: list[Kernel | Gap] = [names[0], absent(HOSTILE, HOSTILE), names[1], absent(long, long)]
    store.create(sweep("hostile-sweep", versions, cases=(case,), command=long, created_at="2026-02-01T10:00:00+00:00"))
    for block in range(2):
        for slot in range(2):
            store.save_boot("hostile-sweep", boot(block, slot, console=bytes(range(256)) * 8))
    store.note("hostile-sweep", long)
    fill_sweep(store)
    store.create(experiment("empty", ("6.12", "7.0"), created_at="2026-04-01T10:00:00+00:00"))


def fill_stacks(store: Store) -> None:
    """Call stacks of the first experiment, one name of them no plain one; a call in two was lost on its baseline."""
    for row in store.profiles("first", 0):
        grown, lost = (40, 0) if row.kernel else (4, 8)
        store.keep_stacks("first", (row.block, row.slot), 0, f"0 0 {lost} [kernel]\n1 9 1 <b>\n2 {grown} 1 memset")


def fill_diary(store: Store) -> None:
    """Steps and watched items, plain and hostile ones."""
    for number, text in enumerate(("pipe", HOSTILE)):
        step = Step(
            key=f"{number:032x}", case=text, metric="instructions", last="6.12", first="6.13", effect_percent=4.2,
            interval_percent=(4.1, 4.3), verdict="regressed", because=text, compiler=text, experiment="first",
            announced_at="2026-05-02T03:00:00", state="open" if number else "fixed", note=text,
        )  # fmt: skip
        item = Watched(source=f"/secret/{number}", item=f"<{text}@b>", title=text, state="done", experiment="first")
        store.announce(step)
        store.watch(item)
    store.watch(Watched(source="/secret", item="a", title="old", state="superseded", why=f"by v2, {HOSTILE}"))
    store.watch(Watched(source="/secret", item="b", title="bad", state="failed", why="patch /secret/path/x.mbox: bad"))


def filled(folder: Path) -> Store:
    store = Store(f"sqlite:///{folder / 'kdelta.sqlite'}")
    fill(store)
    fill_stacks(store)
    fill_diary(store)
    with closing(sqlite3.connect(folder / "kdelta.sqlite")) as database, database:  # kdelta tag would refuse it
        for name in (HOSTILE, HOSTILE + "x" * 10_240):
            database.execute(
                "insert into tag (experiment_no, name) select no, ? from experiment where id like 'hostile%'", [name]
            )
    return store

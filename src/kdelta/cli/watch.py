# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta watch: each new series of a list, or commit of a branch, reviewed once."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from kdelta.cli import _session, _stores, common
from kdelta.cli._ending import going_on, of_machine
from kdelta.cli._say import say
from kdelta.errors import HostError, UserError
from kdelta.units import counted

if TYPE_CHECKING:
    from kdelta.cli._review_job import Desk
    from kdelta.cli.progress import Reporter
    from kdelta.inbox.series import Item
    from kdelta.inbox.sources import Source
    from kdelta.model import Progress
    from kdelta.model.diary import Watched
    from kdelta.spec.kernels import KernelSpec
    from kdelta.store.store import Store

EPILOG = """\b
Examples:
  kdelta watch ~/Maildir/linux-mm --tree ./linux
  kdelta watch ./lore/linux-fsdevel --tree ./linux --since 7d --budget 6h     public-inbox, cloned
  kdelta watch ./linux@for-next                        each new commit of a branch
  kdelta watch series.mbox --tree debian:6.12 --once --answers ./answers
  kdelta watch ~/Maildir/linux-mm --list

Oldest first, the newest version of a series alone, once it is whole. Answers are written as mails, of commits as text, also where nothing was found;
nothing is sent without --send. It goes on where it was stopped or killed: what was reviewed stays reviewed.
"""
_AGE = re.compile(r"^(\d{1,5})\s*([dhw])$")
_AGE_S = {"h": 3600.0, "d": 86_400.0, "w": 7 * 86_400.0}
_AGAIN = "what was reviewed stays reviewed; continue with the same command"
_SHOWN = {"start": "watched from here", "done": "reviewed", "running": "being reviewed"}


@click.command(epilog=EPILOG)
@click.argument("source", metavar="MAILDIR|MBOX|PUBLIC-INBOX|REPOSITORY@BRANCH")
@click.option("--tree", metavar="TREE", help="What series apply to where they name no base: a repository, or debian:VERSION.")  # fmt: skip
@click.option("--since", metavar="AGE|REF", help="Mails: only those of the last 7d (h, d, w). A branch: commits after this one.  [default: all mails; commits from now on]")  # fmt: skip
@click.option("--budget", metavar="TIME", help="What all reviews of a day (UTC) may take, as in 6h.")
@click.option("--time-budget", default="10m", show_default=True, metavar="TIME", help="What the chosen cases of one review may take.")  # fmt: skip
@click.option(
    "--config",
    default="",
    metavar="FILE|OPTION=y",
    help="Build with this fragment, whole .config, options, or both: 'my.config FOO=y'.",
)
@click.option("--every", default="5m", show_default=True, metavar="TIME", help="How often the source is looked at.")
@click.option("--once", is_flag=True, help="Review what is there, then end.")
@click.option("--answers", type=click.Path(path_type=Path, file_okay=False), help="Where answers are written.  [default: in the state directory]")  # fmt: skip
@click.option("--send", is_flag=True, help="Send each answer, by git send-email as you set it up.")
@click.option("--list", "listed", is_flag=True, help="Print what is known of this source, and end.")
@click.option("--quiet", "-q", is_flag=True, help="Say nothing of what is done.")
def command(
    source: str, tree: str | None, since: str | None, budget: str | None, time_budget: str, config: str, every: str,
    once: bool, answers: Path | None, send: bool, listed: bool, quiet: bool,
) -> int:  # fmt: skip
    """Review each new series or commit of a source, once."""
    from kdelta.cli._review_job import Desk
    from kdelta.cli.progress import Reporter
    from kdelta.inbox import sources
    from kdelta.paths import state_dir
    from kdelta.store.codec import key_of

    found = sources.find(source)
    if listed:
        with _stores.listing() as store:
            _print(store.watched(found.name))
        return 0
    every_s = common.seconds(every, "--every") or 0.0
    budget_s = common.seconds(budget, "--budget")
    common.seconds(time_budget, "--time-budget")
    tree = str(found.path) if found.kind == "branch" else tree
    tree = str(Path(tree).absolute()) if tree is not None and Path(tree).is_dir() else tree
    if tree is None:
        raise UserError("watch needs --tree: the source that series apply to where they name no base")
    folder = answers or state_dir() / "answers" / key_of(found.name)[:12]
    options = ("--time-budget", time_budget, *(("--config", config) if config else ()))
    base = _base(tree, config, Reporter(quiet)) if found.kind != "branch" else None  # a branch is read as the source
    desk = Desk(tree=tree, options=options, answers=folder.absolute(), send=send)
    with _locked(found), _stores.writing(Reporter(quiet).note) as store, going_on(_AGAIN):
        if not quiet:
            say(f"reading {found.name} ({found.kind})", err=True)
        start, looked, waited, told = _start(store, found, since), False, False, ""
        while True:
            try:
                items = sources.items(found, _since_s(found, since), start)
                looked = True
                if base is not None:
                    _still(base)
                states = _pass(store, found, desk, items, budget_s, quiet)
                told = ""
            except (HostError, OSError) as error:
                if once or not looked:  # the user is there; what could be read once will be again
                    raise
                states, told = (), _told(error, every, told)
            if once:
                return _ended(states, source)
            if not quiet and (states or not waited):
                say(f"waiting for more in {found.name}, looked at every {every}: Ctrl-C loses nothing", err=True)
            waited = True
            time.sleep(every_s)


def _base(tree: str, config: str, progress: Progress) -> KernelSpec:
    """What series are built on; a wrong name would make a failure of each series, which is not tried again.

    Raises:
        UserError: no such tree, not a kernel's, no such version, or no such config. HostError: it cannot be fetched.
    """
    from kdelta.cli import _series
    from kdelta.kernel import wanted
    from kdelta.kernel.sources import parse_kernel

    base = parse_kernel(_series.source_of(tree) + (f',config="{config}"' if config else ""))
    wanted.check(base)
    if base.kind == "src-debian":
        wanted.origin_of(base, progress)
    return base


def _still(base: KernelSpec) -> None:
    """Raises:
    HostError: what was there at the start is away, as a disk that is not mounted.
    """
    from kdelta.kernel import wanted

    try:
        wanted.check(base)
    except UserError as error:
        raise HostError(str(error)) from None


@contextmanager
def _locked(source: Source) -> Iterator[None]:
    """One watcher for each source.

    Raises:
        UserError: another one is at it.
    """
    from kdelta import locks
    from kdelta.paths import state_dir
    from kdelta.store.codec import key_of

    path = state_dir() / "watch" / f"{key_of(source.name)}.lock"
    try:
        lock = locks.take(path)
    except locks.Taken as other:
        raise UserError(f"watch {source.name}: another kdelta (process {other.process}) watches it already") from None
    with lock:
        yield


def _told(error: Exception, every: str, before: str) -> str:
    """Say what keeps the watcher from its work, once as long as it is the same; what was said."""
    words = of_machine(error) if isinstance(error, OSError) else str(error)
    if words != before:
        say(f"kdelta: {' '.join(words.split())}; tried again every {every}", err=True)
    return words


def _pass(
    store: Store, source: Source, desk: Desk, items: tuple[Item, ...], budget_s: float | None, quiet: bool
) -> Sequence[str]:
    """Review what is due of ``items``; the state of each that was reviewed."""
    from kdelta.cli.progress import Reporter
    from kdelta.inbox import desk as work

    for row in work.told(items, source.name, work.known(store.watched(source.name))):
        store.watch(row)
    states = []
    for item in work.due(items, work.known(store.watched(source.name))):
        if budget_s is not None and work.spent_s(store.watched(), _now()[:10]) >= budget_s:
            say(f"the day's budget is spent; {item.title} and what follows wait for tomorrow (UTC)", err=True)
            break
        with Reporter(quiet) as progress:
            progress.step(f"reviewing {item.title}")
            row, found = _review(store, source, item, desk, progress)
        states.append(row.state)
        if not quiet:
            say(_line(row, found), err=True)
    return states


def _ended(states: Sequence[str], source: str) -> int:
    """The exit code of ``--once``.

    Raises:
        HostError: reviews were tried, and none came to its end.
    """
    if states and "done" not in states:
        raise HostError(
            f"of {counted(len(states), 'review')} none came to its end; kdelta watch {source} --list says why"
        )
    return 0


def _now() -> str:
    return _session.now().isoformat(timespec="seconds")


def _review(store: Store, source: Source, item: Item, desk: Desk, progress: Reporter) -> tuple[Watched, str]:
    """Review one item, and what was found in a line.

    It is stored before and after, so that whoever comes next knows how far it came.
    """
    from kdelta.cli import _review_job
    from kdelta.inbox.desk import MOST_TRIES
    from kdelta.model.diary import Watched

    before = next((row for row in store.watched(source.name) if row.item == item.key), None)
    tries, spent_s = (before.tries, before.elapsed_s) if before else (0, 0.0)
    row = Watched(
        source=source.name, item=item.key, title=item.title, state="running", tries=tries + 1, began_at=_now(),
        elapsed_s=spent_s,
    )  # fmt: skip
    store.watch(row)
    made = _review_job.make(item, desk, progress)
    row = replace(row, elapsed_s=spent_s + made.elapsed_s, experiment=made.experiment, why=made.why)
    found = ""
    if made.experiment:
        store.tag(made.experiment, "watch")
        found, answer = _review_job.told(store, made, item, desk)
        row = replace(row, state="done", answer=str(answer or ""))
    elif made.again and row.tries < MOST_TRIES:
        row = replace(row, state="waiting", why=f"tried {counted(row.tries, 'time')}: {made.why}")
    else:
        row = replace(row, state="failed")
    store.watch(row)
    return row, found


def _since_s(source: Source, since: str | None) -> float:
    if since is None or source.kind == "branch":
        return 0.0
    match = _AGE.match(since.strip())
    if match is None:
        raise UserError(f"--since {since!r} is not an age such as 12h, 7d or 2w")
    return max(0.0, time.time() - int(match[1]) * _AGE_S[match[2]])


def _start(store: Store, source: Source, since: str | None) -> str:
    """The commit that a branch is watched from: told once, and kept."""
    from kdelta.kernel import history
    from kdelta.model.diary import Watched

    if source.kind != "branch":
        return ""
    known = next((row.item for row in store.watched(source.name) if row.state == "start"), "")
    if known and since is None:
        return known
    first = history.commit(str(source.path), since or source.branch)
    if not known:
        store.watch(Watched(source=source.name, item=first.hash, title=first.subject, state="start"))
    return first.hash


def _line(row: Watched, found: str = "") -> str:
    said = _SHOWN.get(row.state, row.state)
    where = f", kdelta report {row.experiment}" if row.experiment else ""
    return f"{said}: {row.title}{f' ({row.why})' if row.why else ''}{f': {found}' if found else ''}{where}"


def _print(rows: list[Watched]) -> None:
    for row in rows:
        say(_line(row))
    say(counted(len(rows), "item"))

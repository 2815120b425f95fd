# SPDX-License-Identifier: GPL-2.0-or-later
"""Progress on standard error: a bar with time left on a terminal, sparse lines with it elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from threading import Event, Thread
from types import TracebackType
from typing import TYPE_CHECKING

from kdelta.cli._say import harmless, say
from kdelta.model.pace import Pace, words

if TYPE_CHECKING:
    from rich.progress import Progress as ProgressBar
    from rich.progress import TaskID

_QUIET_S = 15.0
_TOLD_S = 3.0  # a wait whose end nobody knows is told from here on
_BAR, _COUNTS, _LEFT = 24, 7, 18  # columns: the bar, "123/400", "about 120 min left"
_NARROW = 72  # columns of a terminal below which there is no bar


def _room(columns: int) -> tuple[int, int]:
    """The columns of the words and of the bar: both give way to how much is done, and to the time left."""
    bar = _BAR if columns >= _NARROW else 0
    return max(8, min(60, columns - _COUNTS - _LEFT - (bar and bar + 1) - 2)), bar


def _bar(left: Callable[[], str]) -> ProgressBar:
    """The line on a terminal, never more than one; ``left`` says the time left, counted down between two boots too."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task
    from rich.table import Column
    from rich.text import Text

    console = Console(stderr=True)

    class Words(ProgressColumn):
        def render(self, task: Task) -> Text:
            text = Text(task.description)
            text.truncate(_room(console.width)[0], overflow="ellipsis")
            return text

    class Counts(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text("" if task.total is None else f"{task.completed:.0f}/{task.total:.0f}")

    class Left(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(left())

    def whole() -> Column:
        return Column(no_wrap=True)

    width = _room(console.width)[1]
    bar = [BarColumn(bar_width=width)] if width else []
    columns = (Words(whole()), *bar, Counts(whole()), Left(whole()))
    return Progress(*columns, console=console, transient=True)


class Reporter:
    """Hears of steps and boots; is a model.Progress."""

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet
        self._tty = sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not quiet
        self._last = 0.0
        self._bar: ProgressBar | None = None
        self._task: TaskID | None = None
        self._text = ""
        self._since: float | None = None  # when a step began that has no end in sight
        self._boots = self._pace = Pace(time.monotonic)
        self._steps = Pace(time.monotonic)  # a boot's usual time says nothing of a step
        self._over = Event()
        self._beside: Thread | None = None

    def expect(self, boot_s: float | None, *, shared: bool = False) -> None:
        """Say how long a boot usually takes, in seconds of the clock on the wall: time left is told from the start.

        ``shared``: the first boots make what the others begin with.
        """
        self._boots = self._pace = Pace(time.monotonic, boot_s, shared)

    def __enter__(self) -> Reporter:
        if self._tty:
            bar = _bar(self._wait)
            bar.start()
            self._bar = bar
            self._task = bar.add_task("starting", total=None)
        elif not self._quiet:
            self._over.clear()
            self._beside = Thread(target=self._tell_waits, daemon=True)
            self._beside.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        if self._beside is not None:
            self._over.set()
            self._beside.join()
            self._beside = None

    def _tell_waits(self) -> None:
        """Where it is no terminal: a line, twice as late each time, that a step without an end in sight is still at it."""
        told, due_s = None, _QUIET_S
        while not self._over.wait(_QUIET_S / 8):
            since, text = self._since, self._text
            if since != told:
                told, due_s = since, _QUIET_S
            if since is not None and (taken_s := time.monotonic() - since) >= due_s:
                due_s = 2 * taken_s
                self._last = time.monotonic()
                say(f"{text}: {taken_s:.0f} s so far", err=True)

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """Something is being prepared: downloads, builds."""
        self._pace, same = self._steps, text == self._text
        self._pace.at(done or 0, total or 0, grows=same)
        self._text = text
        if total:
            self._since = None
        elif self._since is None or not same:
            self._since = time.monotonic()
        if self._bar is not None:
            self._draw(text, done or 0, total)
        elif not self._quiet and (done is None or time.monotonic() - self._last > _QUIET_S):
            self._last = time.monotonic()
            share = f" {done}/{total}" if done is not None and total else ""
            say(f"{text}{share}{self._pace.left()}", err=True)

    def relay(self, line: str) -> None:
        """What another kdelta said of its own progress, with its own time left."""
        self._pace, self._text, self._since = self._steps, line, None
        self._pace.at(0, 0, grows=False)
        if self._bar is not None:
            self._draw(line, 0, None)
        elif not self._quiet:
            say(line, err=True)

    def boots(self, done: int, planned: int, what: str) -> None:
        """So many boots are stored."""
        self._pace, self._text = self._boots, ""
        self._pace.at(done, planned, grows=True)
        self._since = None
        if self._bar is not None:
            self._draw(f"boots: {what}", done, planned)
        elif not self._quiet and (done in (0, planned) or time.monotonic() - self._last > _QUIET_S):
            self._last = time.monotonic()
            say(f"boots {done}/{planned}: {what}{self._pace.left()}", err=True)

    def _draw(self, text: str, done: int, total: int | None) -> None:
        assert self._bar is not None and self._task is not None
        for task in self._bar.tasks:
            task.total = total  # to update(), None is a total that stays
        self._bar.update(self._task, description=harmless(text)[:60], completed=done)

    def _wait(self) -> str:
        """How long it will take, else how long it has taken."""
        if self._since is None:
            return words(self._pace.left_s())
        taken_s = time.monotonic() - self._since
        return f"{taken_s:.0f} s" if taken_s >= _TOLD_S else ""

    def note(self, text: str) -> None:
        """One line that stays."""
        if self._bar is not None:
            self._bar.console.print(harmless(text), markup=False, highlight=False)
        elif not self._quiet:
            say(text, err=True)

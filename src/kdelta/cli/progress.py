# SPDX-License-Identifier: GPL-2.0-or-later
"""Progress on standard error: a bar with time left on a terminal, sparse lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from kdelta.cli._pace import Pace, words
from kdelta.cli._say import harmless, say

if TYPE_CHECKING:
    from rich.progress import Progress as ProgressBar

_QUIET_S = 15.0
_BAR, _COUNTS, _LEFT = 24, 7, 18  # columns: the bar, "123/400", "about 120 min left"
_NARROW = 72  # columns of a terminal below which there is no bar


def _room(columns: int) -> tuple[int, int]:
    """The columns of the words and of the bar: both give way to how much is done, and to the time left."""
    bar = _BAR if columns >= _NARROW else 0
    return max(8, min(60, columns - _COUNTS - _LEFT - (bar and bar + 1) - 2)), bar


def _bar(left: Callable[[], str]) -> ProgressBar:
    """The line on a terminal, never more than one; ``left`` says the time left, counted down between two boots too."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task
    from rich.table import Column
    from rich.text import Text

    console = Console(stderr=True)

    class Words(ProgressColumn):
        def render(self, task: Task) -> Text:
            text = Text(task.description)
            text.truncate(_room(console.width)[0], overflow="ellipsis")
            return text

    class Left(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(left())

    def whole() -> Column:
        return Column(no_wrap=True)

    width = _room(console.width)[1]
    bar = [BarColumn(bar_width=width)] if width else []
    columns = (Words(whole()), *bar, MofNCompleteColumn(table_column=whole()), Left(whole()))
    return Progress(*columns, console=console, transient=True)


class Reporter:
    """Hears of steps and boots; is a model.Progress."""

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet
        self._tty = sys.stderr.isatty() and not quiet
        self._last = 0.0
        self._bar: object | None = None
        self._task: object | None = None
        self._pace = Pace(time.monotonic)

    def expect(self, boot_s: float | None) -> None:
        """Say how long a boot usually takes, in seconds of the clock on the wall: time left is told from the start."""
        self._pace = Pace(time.monotonic, boot_s)

    def __enter__(self) -> Reporter:
        if self._tty:
            bar = _bar(lambda: words(self._pace.left_s()))
            bar.start()
            self._bar = bar
            self._task = bar.add_task("starting", total=None)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()  # type: ignore[attr-defined]
            self._bar = None

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """Something is being prepared: downloads, builds."""
        self._pace.at(done or 0, total or 0)
        if self._bar is not None:
            self._bar.update(self._task, description=harmless(text)[:60], completed=done or 0, total=total)  # type: ignore[attr-defined]
        elif not self._quiet and (done is None or time.monotonic() - self._last > _QUIET_S):
            self._last = time.monotonic()
            share = f" {done}/{total}" if done is not None and total else ""
            say(f"{text}{share}", err=True)

    def boots(self, done: int, planned: int, what: str) -> None:
        """So many boots are stored."""
        self._pace.at(done, planned)
        if self._bar is not None:
            self._bar.update(  # type: ignore[attr-defined]
                self._task, description=harmless(f"boots: {what}")[:60], completed=done, total=planned
            )
        elif not self._quiet and (done in (0, planned) or time.monotonic() - self._last > _QUIET_S):
            self._last = time.monotonic()
            left = words(self._pace.left_s())
            say(f"boots {done}/{planned}: {what}{f'; {left}' if left else ''}", err=True)

    def note(self, text: str) -> None:
        """One line that stays."""
        if self._bar is not None:
            self._bar.console.print(harmless(text), markup=False, highlight=False)  # type: ignore[attr-defined]
        elif not self._quiet:
            say(text, err=True)

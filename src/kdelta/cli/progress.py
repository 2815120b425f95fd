# SPDX-License-Identifier: GPL-2.0-or-later
"""Progress on standard error: a bar with time left on a terminal, sparse lines elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from kdelta.cli._pace import Pace, words
from kdelta.cli._say import harmless, say

_QUIET_S = 15.0


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
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
            from rich.text import Text

            reporter = self

            class Left(ProgressColumn):
                """The time left, counted down between two boots too."""

                def render(self, task: Task) -> Text:
                    return Text(words(reporter._pace.left_s()))

            bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                Left(),
                console=Console(stderr=True),
                transient=True,
            )
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

# SPDX-License-Identifier: GPL-2.0-or-later
"""One review of a watched item, in a process of its own: what it is called with, and what came of it."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from kdelta.errors import HostError

if TYPE_CHECKING:
    from kdelta.cli.progress import Reporter
    from kdelta.inbox.series import Item
    from kdelta.store.store import Store

_KDELTA = (sys.executable, "-c", "from kdelta.cli.main import main; main()")
_UNSAFE = re.compile(r"[^A-Za-z0-9]+")
_CLOSED = "{}: cannot be written ({}); name another with --answers"
_FAILED = "kdelta: "
_LOST = 3  # exit codes of kdelta
_GATE = 4


class Made(Struct, frozen=True, kw_only=True):
    """What came of a review: the experiment, or why there is none; ``again``: this host failed, not the series."""

    experiment: str = ""
    answer: Path | None = None
    why: str = ""
    again: bool = False
    elapsed_s: float = 0.0


class Desk(Struct, frozen=True, kw_only=True):
    """Where reviews of a source are made: the tree, the options that all reviews get, and where answers go."""

    tree: str
    options: tuple[str, ...]
    answers: Path
    send: bool = False


def stem(item: Item) -> str:
    """A file name for an item, unlike all others."""
    title = _UNSAFE.sub("-", item.title)[:40].strip("-").lower() or "untitled"
    return f"{title}-{hashlib.sha256(item.key.encode('utf-8', 'surrogatepass')).hexdigest()[:10]}"


def make(item: Item, desk: Desk, progress: Reporter) -> Made:
    """Review an item, or take over the review of it that was made or begun before; ``progress`` hears what it hears.

    Raises:
        HostError: the answers' directory cannot be written.
    """
    name = stem(item)
    result, answer = desk.answers / f"{name}.json", desk.answers / f"{name}.eml"
    words = _words(item, desk, result, answer)
    began_s = time.monotonic()
    code, said = _run(words, progress)
    elapsed_s = time.monotonic() - began_s
    if code not in (0, _LOST, _GATE):
        return Made(why=said or f"exit code {code}", again=code != 1, elapsed_s=elapsed_s)
    found = str(json.loads(result.read_text())["experiment"]["id"])
    why = said if code == _LOST else ""
    return Made(experiment=found, answer=answer if answer.exists() else None, why=why, elapsed_s=elapsed_s)


def told(store: Store, made: Made, item: Item, desk: Desk) -> tuple[str, Path | None]:
    """What a review found, in one line, and where its answer is: of a commit, which no mail answers, the report.

    Raises:
        HostError: the answers' directory cannot be written.
    """
    from kdelta.cli import _show
    from kdelta.report import registry
    from kdelta.report.scrub import clip
    from kdelta.report.standing import LINE_CHARS, standing

    _, view = _show.view_of(store, made.experiment)
    answer = made.answer
    if answer is None and item.parent:
        answer = desk.answers / f"{stem(item)}.txt"
        try:
            answer.write_text(str(registry.find("terminal").render(view)), encoding="utf-8")
        except OSError as error:
            raise HostError(_CLOSED.format(desk.answers, error.strerror)) from None
    said = [view.headline.text, *view.looked, standing(view).line]
    return clip(next(line for line in said if line).removesuffix("."), LINE_CHARS), answer


def _words(item: Item, desk: Desk, result: Path, answer: Path) -> list[str]:
    try:
        desk.answers.mkdir(parents=True, exist_ok=True)
        if item.parent:
            what = f"{item.parent}..{item.key}"
        else:
            mails = desk.answers / f"{stem(item)}.mbox"
            mails.write_bytes(item.data)
            what = str(mails)
    except OSError as error:
        raise HostError(_CLOSED.format(desk.answers, error.strerror)) from None
    made = ["--reuse", "--format", "json", "-o", str(result)]
    words = ["review", what, "--tree", desk.tree, *desk.options, *made]
    if not item.parent and _answerable(item):
        words += ["--reply", str(answer), *(["--send=now"] if desk.send else [])]
    return words


def _answerable(item: Item) -> bool:
    from kdelta.kernel import cover

    return cover.read(item.data).answer_to is not None


def _run(words: Sequence[str], progress: Reporter) -> tuple[int, str]:
    """kdelta as a process that ends with this one, however this one ends; its exit code, and its last line."""
    import os

    from kdelta.machine.process import dying_with

    line = ""
    with subprocess.Popen(
        [*_KDELTA, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        errors="replace", preexec_fn=dying_with(os.getpid()),
    ) as running:  # fmt: skip
        for line in running.stderr or ():
            if line.strip() and not line.startswith(_FAILED):  # that is why, and told once
                progress.relay(line.strip())
    return running.returncode, line.strip().removeprefix(_FAILED)

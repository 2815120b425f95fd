# SPDX-License-Identifier: GPL-2.0-or-later
"""Report formats, found by wildcard: a module of this package that has ``FORMAT`` is one."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from msgspec import Struct

from kdelta.errors import UserError
from kdelta.report.view import View

# What formats are also called.
_ALSO = {
    **dict.fromkeys(("md", "gfm"), "markdown"),
    **dict.fromkeys(("txt", "text"), "terminal"),
    **dict.fromkeys(("email", "eml"), "mail"),
    "htm": "html",
    "xml": "junit",
    "tap": "ktap",
}
_NEVER = (".pdf", ".png", ".svg", ".xlsx", ".ods", ".docx", ".odt", ".yaml", ".yml", ".toml", ".gz", ".zip")


class Format(Struct, frozen=True, kw_only=True):
    """A way to write a report. ``suffix`` starts with a dot; ``render`` returns text, bytes when ``binary``.

    ``hidden``: it writes all rows, also those of a sweep that the steps stand for elsewhere.
    """

    name: str
    suffix: str
    render: Callable[[View], str | bytes]
    binary: bool = False
    hidden: bool = False
    help: str = ""


@cache
def formats() -> dict[str, Format]:
    """All formats by name, sorted."""
    found = {}
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        candidate = getattr(importlib.import_module(f"kdelta.report.{module.name}"), "FORMAT", None)
        if isinstance(candidate, Format):
            found[candidate.name] = candidate
    return dict(sorted(found.items()))


def find(name: str) -> Format:
    """The format of this name, or of another that it is known by.

    Raises:
        UserError: there is none.
    """
    name = _ALSO.get(name, name)
    for module in (name, f"{name}_") if name.isidentifier() else ():  # by its file: the others need not be read
        if importlib.util.find_spec(f"kdelta.report.{module}") is not None:
            found = getattr(importlib.import_module(f"kdelta.report.{module}"), "FORMAT", None)
            if isinstance(found, Format) and found.name == name:
                return found
    try:
        return formats()[name]
    except KeyError:
        close = get_close_matches(name.lower(), [*formats(), *_ALSO], n=1)
        hint = f"did you mean {close[0]}?" if close else f"one of {', '.join(formats())}"
        raise UserError(f"report format {name!r} is not known; {hint}") from None


def of_file(path: Path) -> str | None:
    """The format's name of a file so named, as kcidb of ``result.kcidb.json``; None where its name says none.

    Raises:
        UserError: its name says one that nobody writes here: what is written would not open as that.
    """
    ends = {one.suffix: one.name for one in formats().values()}
    ends |= {f".{also}": name for also, name in _ALSO.items()}
    fits = [end for end in ends if path.name.lower().endswith(end)]
    if not fits and (end := path.suffix.lower()) in _NEVER:
        raise UserError(
            f"{path.name}: no report is {end}; .html is for readers and prints well, .json and .csv for programs"
        )
    return ends[max(fits, key=len)] if fits else None

# SPDX-License-Identifier: GPL-2.0-or-later
"""Options that the changed lines of a patch declare or ask for: where one is off, what it guards is not built. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from kdelta.kernel.diff import Change

_ASKED = re.compile(r"\bCONFIG_([A-Z0-9_]+)\b")
_DECLARED = re.compile(r"^\s*(?:menu)?config\s+([A-Z0-9_]+)\s*$")
_KCONFIG = re.compile(r"(^|/)Kconfig[^/]*$")
_MODULE = "_MODULE"  # of a name: whether it is built as one


def off(changes: Iterable[Change], options: Mapping[str, str]) -> tuple[str, ...]:
    """Names of options, as the changes give them, that ``options`` (of the patched kernel's .config) has not set.

    One that these changes declare is off where ``options`` lack it; one that they ask for must stand there as not
    set, or it may belong to another architecture.
    """
    declared, asked = _named(changes)
    unset = [name for name in asked if options.get(name) == "n"]
    return tuple(dict.fromkeys([*(name for name in declared if options.get(name, "n") == "n"), *unset]))


def _named(changes: Iterable[Change]) -> tuple[list[str], list[str]]:
    declared: list[str] = []
    asked: list[str] = []
    for change in changes:
        for line in (line for hunk in change.hunks for line in hunk.lines if line[:1] in ("+", "-")):
            match = _DECLARED.match(line[1:]) if _KCONFIG.search(change.path) else None
            if match and line[0] == "+":
                declared.append(match[1])
            asked += [name.removesuffix(_MODULE) for name in _ASKED.findall(line)]
    return declared, asked

# SPDX-License-Identifier: GPL-2.0-or-later
"""What a report finds, each at a line of the source: for tools that show findings beside the lines of a change.

A regression stands where the change is in the function that it is most because of; where the change is elsewhere (in
what that function inlines or calls) at the change's first line; where no line is known at the top of the Makefile, the
file that every kernel tree has: these tools take nothing without a file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from kdelta.model import Location
from kdelta.model.experiment import is_new, sets_at_boot
from kdelta.report import looked
from kdelta.report.scrub import clean
from kdelta.report.standing import Finding, Rule, standing
from kdelta.report.view import View

WHOLE_TREE = Location(function="", path="Makefile", line=1)
RULES: dict[Rule, str] = {
    "regression": "A case got slower, executes more instructions, or does not come to its end any more",
    "gate": "A selftest that passed without the change does not with it",
    "leak": "A case leaks kernel objects that it does not without the change",
    "undecided": "Whether a case got slower was not found out",
    "not-looked-at": "A changed function that no measured case executes",
    "console": "The kernel complains on its console, as it does not without the change",
}


class Located(Struct, frozen=True, kw_only=True):
    """A finding and its place. ``fingerprint``: 32 hex digits, the same for the same finding of another push."""

    finding: Finding
    location: Location

    @property
    def message(self) -> str:
        return f"{self.finding.title}: {self.finding.text}"

    @property
    def fingerprint(self) -> str:
        """By what it is of, not by its figures nor by its line."""
        names = (self.finding.rule, self.finding.title, self.location.path, self.location.function)
        return hashlib.sha256("\0".join(names).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _first(names: Iterable[str], known: dict[str, Location], else_: Location) -> Location:
    return next((known[name] for name in names if name in known), else_)


def _bare(title: str) -> str:
    """``foo`` of ``foo (new)``."""
    return title.partition(" (")[0]


def _unseen(names: Sequence[str], known: dict[str, Location], why: str, at_boot: str = "") -> Iterator[Located]:
    """One finding for each line with changed functions that were not looked at; ``at_boot`` is said of such alone."""
    seen = set()
    for name in names:
        location = known[_bare(name)]
        if (location.path, location.line) not in seen:
            seen.add((location.path, location.line))
            text = f"{clean(name)}: {why}" + (f"; {at_boot}" if at_boot and sets_at_boot(name) else "")
            finding = Finding(word="warning", rule="not-looked-at", title="not looked at", text=text)
            yield Located(finding=finding, location=location)


def located(view: View) -> list[Located]:
    """Every finding of ``standing``; functions that were not looked at one by one, where their lines are known."""
    notes = view.result.experiment.annotations
    known = {one.function: one for one in reversed(notes.locations) if one.function}
    anywhere = next((one for one in notes.locations if one.function), next(iter(notes.locations), WHOLE_TREE))
    unreached = [one.name for one in notes.looked.unreached] if notes.looked else []
    left_out = list(notes.looked.left_out) if notes.looked else []
    untouched = list(notes.looked.untouched) if notes.looked else []
    split = all(_bare(name) in known for name in (*unreached, *left_out, *untouched))
    found = [
        Located(finding=one, location=_first(one.functions, known, anywhere))
        for one in standing(view).findings
        if not (split and one.rule == "not-looked-at")
    ]
    if split:
        sets = looked.may_set(notes.looked) if notes.looked else ""
        found += _unseen(unreached, known, "changed, and no case executes it in its operations", sets)
        new = [name for name in untouched if is_new(name)]
        old = [name for name in untouched if not is_new(name)]
        found += _unseen(old, known, f"changed and executed, but {looked.UNTOUCHED}")
        found += _unseen(new, known, f"new, and {looked.UNCALLED}")
        found += _unseen(left_out, known, "changed, and there was no time to measure a case that executes it")
    return found

# SPDX-License-Identifier: GPL-2.0-or-later
"""The argv grammar of cases, and what runs when nobody names one.

    WORKLOAD[:KNOB=VALUE[|VALUE...][,KNOB=...]]      pipe:writers=1|2|5,readers=5,message=64K

Several values of a knob make a grid: one case for each combination. Sizes take K, M and G (1024). WORKLOAD may be a
pattern (``syscalls/poll-*``, all that match) or a C file of the user's (``./mine.c``, all that it defines).
"""

from __future__ import annotations

import fnmatch
import itertools
import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

import msgspec

from kdelta.errors import UserError
from kdelta.model import Case
from kdelta.spec import suites
from kdelta.spec.workloads import Workload

_WILD = frozenset("*?[")
_PATTERN_CHARS = 200  # fnmatch takes time by the square of its brackets
_MOST_CASES = 10_000
_TASKS = "tasks"
_CLOSE_TOLD = 3
_ALIKE_CHARS = 3  # in which a name begins as another


def c_file(text: str) -> Path | None:
    """The C file that a case is named by, None where it is named otherwise."""
    name = text.partition(":")[0].strip()
    return Path(name) if name.endswith(".c") else None


def own_sources(folders: Iterable[Path], texts: Iterable[str]) -> tuple[Path, ...]:
    """All places of the user's own workloads: the directories, then the C files that cases name."""
    files = (path for text in texts if (path := c_file(text)) is not None)
    return tuple(dict.fromkeys([*folders, *files]))


def close_to(word: str, known: Iterable[str]) -> str:
    """A remedy: the close matches of ``word``, else all that is known where that is not long."""
    names = sorted(known)
    if close := _close(word, names) or _close(word.lower(), names):
        return f"did you mean {', '.join(close[:-1])}{' or ' if close[1:] else ''}{close[-1]}?"
    return f"one of {', '.join(names) or 'none'}" if len(names) < 20 else "see: kdelta cases list"


def _close(word: str, names: Sequence[str]) -> list[str]:
    """Names like ``word``, else those that begin as it does; of a suite's, which all begin alike, what is behind it."""
    suite, slash, own = word.rpartition("/")
    among = {name.removeprefix(suite + slash): name for name in names if name.startswith(suite + slash)}
    if slash and not among:
        return _close(own, names)
    same = [name for name in names if not slash and name.rpartition("/")[2] == word]
    found = list(dict.fromkeys([*same, *get_close_matches(own, among, _CLOSE_TOLD)]))[:_CLOSE_TOLD]
    for length in range(min(len(own), _PATTERN_CHARS), _ALIKE_CHARS - 1, -1):
        if found:
            break
        begun = [name for name in among if name.rpartition("/")[2].startswith(own[:length])]
        found = sorted(begun, key=len)[:_CLOSE_TOLD]
    return [among[name] for name in found]


def _no_knob(workload: Workload, knob: str) -> str:
    if workload.params:
        return f"{workload.name} has no knob {knob!r}; {close_to(knob, workload.params)}"
    tasks = ": it has a task on each CPU, so --smp says how many" if workload.every_cpu and knob == "tasks" else ""
    return f"{workload.name} has no knobs{tasks}"


def _choices(text: str, workload: Workload, piece: str) -> tuple[str, list[str]]:
    """``writers=1|2`` -> ("writers", ["1", "2"]), checked and canonical."""
    knob, equals, values = piece.partition("=")
    knob = knob.strip()
    if not equals and (path := c_file(text)) is not None:
        raise UserError(f"case {text!r}: {piece!r} is not knob=value; {_one_of(path, piece)}")
    if not equals or not values:
        raise UserError(f"case {text!r}: {piece!r} is not knob=value")
    if knob not in workload.params:
        raise UserError(f"case {text!r}: {_no_knob(workload, knob)}")
    canonical = []
    for value in values.split("|"):
        try:
            canonical.append(workload.params[knob].canonical(value.strip()))
        except ValueError as error:
            raise UserError(f"case {text!r}: {knob}={value} must be {error}") from None
    if len(set(canonical)) != len(canonical):
        raise UserError(f"case {text!r}: a value of {knob} is given twice")
    return knob, canonical


def _named(text: str, name: str, catalogue: Mapping[str, Workload]) -> list[Workload]:
    """The workloads that ``name`` stands for, in the catalogue's order.

    Raises:
        UserError: none, with the close matches.
    """
    if name in catalogue:
        return [catalogue[name]]
    if (path := c_file(name)) is not None:
        found = [workload for workload in catalogue.values() if workload.source_path == path]
    elif _WILD & set(name) and len(name) <= _PATTERN_CHARS:
        found = [workload for workload in catalogue.values() if fnmatch.fnmatchcase(workload.name, name)]
        if not found and name.startswith("wis/"):
            raise UserError(f"case {text!r}: name the directory of the will-it-scale testcases with --workloads")
    else:
        found = []
    if not found:
        raise UserError(f"case {text!r}: {_not_there(name, catalogue)}")
    return found


def _one_of(path: Path, name: str) -> str:
    return f"one case of a file: --workloads {shlex.quote(str(path.parent))} --case {shlex.quote(name.strip())}"


def _not_there(name: str, catalogue: Mapping[str, Workload]) -> str:
    """What to write instead of ``name``, which is no case."""
    listed = [piece.strip().rstrip("/") for piece in name.split(",")]
    if len(listed) > 1 and all(piece in catalogue for piece in listed):
        return f"cases are given one by one: {' '.join(f'--case {piece}' for piece in listed)}"
    if (path := c_file(name.rpartition("/")[0])) is not None:
        return _one_of(path, name.rpartition("/")[2])
    if name.startswith(("./", "../", "/")):
        return f"a file of cases is C and ends in .c, as in --case {name}.c"
    if set(listed) <= set(suites.suites()):
        what = "these are suites; for all of their" if listed[1:] else "that is a suite; for all of its"
        return f"{what} cases: {' '.join(f'--suite {one}' for one in listed)}"
    return f"unknown workload {name!r}; {close_to(name, catalogue)}"


def parse_case(text: str, catalogue: Mapping[str, Workload]) -> list[Case]:
    """The cases that ``text`` names; a grid in the order written, the last knob varying fastest.

    Raises:
        UserError: an unknown workload, knob or value, with the close matches.
    """
    name, colon, rest = text.partition(":")
    name = name.strip()
    workloads = _named(text, name, catalogue)
    if colon and not rest:
        raise UserError(f"case {text!r}: nothing after the colon; a knob is given as {name}:knob=value")
    return [case for workload in workloads for case in _grid(text, workload, rest)]


def _grid(text: str, workload: Workload, rest: str) -> list[Case]:
    axes: dict[str, list[str]] = {}
    for piece in rest.split(",") if rest else ():
        knob, values = _choices(text, workload, piece)
        if knob in axes:
            raise UserError(f"case {text!r}: {knob} is given twice; several values are written {knob}=a|b")
        axes[knob] = values
    if (count := math.prod(map(len, axes.values()))) > _MOST_CASES:
        raise UserError(f"case {text[:80]!r}: a grid of {count} cases; at most {_MOST_CASES} are named at once")
    found = [workload.case(dict(zip(axes, values, strict=True))) for values in itertools.product(*axes.values())]
    return [msgspec.structs.replace(case, own_tasks=True) for case in found] if _TASKS in axes else found


def on_every_cpu(cases: Sequence[Case], catalogue: Mapping[str, Workload], cpus: int) -> tuple[Case, ...]:
    """``cases`` of a guest of several CPUs: those that take a number of tasks and do not say it have one a CPU."""

    def spread(case: Case) -> Case:
        workload = catalogue.get(case.workload)
        if workload is None or case.own_tasks or case.params.get(_TASKS) != workload.params[_TASKS].default_text:
            return case
        most = workload.params[_TASKS].max or cpus
        wider = workload.case({**case.params, _TASKS: str(min(cpus, most))})
        return msgspec.structs.replace(case, params=wider.params, label=wider.label)

    found = (case if _TASKS not in case.params else spread(case) for case in cases)
    return tuple({case.name: case for case in found}.values())  # one that says as many by itself is the same


def of_suite(suite: suites.Suite, catalogue: Mapping[str, Workload], missing_ok: bool = False) -> list[Case]:
    """The cases of a suite; none where it needs something of the user's that is not there and that is ``missing_ok``.

    Raises:
        UserError: what it needs is not there.
    """
    try:
        return [case for text in suite.cases for case in parse_case(text, catalogue)]
    except UserError:
        if suite.needs and missing_ok:
            return []
        if suite.needs:
            raise UserError(f"--suite {suite.name}: needs {suite.needs}") from None
        raise


def chosen(
    texts: Sequence[str], names: Sequence[str], folders: Sequence[Path], catalogue: Mapping[str, Workload]
) -> list[Case]:
    """What runs: the cases of the suites ``names``, then those of ``texts``, each once.

    Where neither is given: all that the user's ``folders`` hold, else the default suite.

    Raises:
        UserError: an unknown case or suite, or a case that is written twice.
    """
    known = suites.suites()
    if not texts and not names:
        if folders:
            own = {path.resolve() for path in folders}
            return [w.case({}) for w in catalogue.values() if w.source_path.parent.resolve() in own]
        names = (suites.DEFAULT,)
    for text in texts:
        if list(texts).count(text) > 1:
            raise UserError(f"case {text} is given twice")
    for name in names:
        if name not in known and name in catalogue:
            raise UserError(f"--suite {name}: that is one case: --case {name}")
    found = [case for name in names for case in of_suite(suites.suite(name, known), catalogue)]
    found += (case for text in texts for case in parse_case(text, catalogue))
    return list({case.name: case for case in found}.values())

# SPDX-License-Identifier: GPL-2.0-or-later
"""The mail that answers a series: for readers of the list, who have neither this machine's files nor its directories."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

if TYPE_CHECKING:
    from kdelta.cli._series import Series
    from kdelta.model import ExperimentResult

_DEFAULTS = {"time_budget": "10m", "smp": 1}
_KEPT = ("time_budget", "smp", "suites", "selftests", "each", "all_cases", "no_beside")  # what changes what is measured
_OF_PROGRAM = ("files", "follow", "setup", "between", "stdin", "env", "cwd", "writable", "cold", "expect_status")
_NAMES = {"all_cases": "all", "files": "file", "suites": "suite"}


def made(experiment_id: str, found: Series, tree: str, options: dict[str, Any], below: Sequence[str]) -> bytes:
    """The whole mail: the report, and ``below`` it what was checked beside."""
    from kdelta.kernel import cover
    from kdelta.report import mail
    from kdelta.report.view import Options, build
    from kdelta.results import answer
    from kdelta.store.store import Store

    to = found.cover.answer_to
    assert to is not None
    with Store() as store:
        result, detail = answer.result(store, experiment_id)
    public = _for_others(result, command(to.id, tree, options))
    body = mail.render(build(public, detail, Options(causes=True)))
    return cover.reply(to, mail.joined([_opening(result, found), body, *below]))


def _opening(result: ExperimentResult, found: Series) -> str:
    """What was built, from what and how; what the mails had lost, and what of them no build has."""
    from kdelta.kernel import source
    from kdelta.kernel.sources import parse_kernel
    from kdelta.report.text import WIDTH, wrap

    base, *_, patched = result.experiment.kernels
    title, _, built = _public(base.origin).partition("; ")
    how = f" ({built})" if built else ""
    what = f"This {'patch' if found.patches == 1 else 'series'}, applied to {title or base.release}{how}"
    lines = wrap(f"{what}, and compared with the same without it.", WIDTH - 1)
    if patched.spec == found.kernels[1]:
        for note in source.built_facts(parse_kernel(patched.spec)).notes:
            lines += wrap(_public(note), WIDTH - 1, first="- ", then="  ")
    return "\n".join(lines)


def command(message_id: str, tree: str, options: dict[str, Any]) -> str:
    """How to repeat a review elsewhere: the thread from its archive, and the tree by its name alone."""
    import shlex

    words = ["kdelta", "review", "series.mbox", "--tree", tree if tree.startswith("debian:") else Path(tree).name]
    if config := str(options.get("config", "")):
        words += ["--config", Path(config).name]
    program = options.get("program")
    for name in (*_KEPT, *(_OF_PROGRAM if program else ())):
        value = options.get(name)
        if value and value != _DEFAULTS.get(name):
            option = "--" + _NAMES.get(name, name).replace("_", "-")
            values = value if isinstance(value, tuple) else (value,)
            words += [word for one in values for word in ((option,) if one is True else (option, _given(name, one)))]
    if program:
        words += ["--", Path(program[0]).name, *program[1:]]
    fetch = ["b4", "mbox", "-o", ".", "-n", "series.mbox", message_id.strip("<>")]
    return f"{shlex.join(fetch)} && {shlex.join(words)}"


def _given(name: str, value: object) -> str:
    """The value of an option; of a file or directory its name."""
    path, colon, dest = str(value).partition(":") if name == "files" else (str(value), "", "")
    return f"{Path(path).name}{colon}{dest}" if name in ("files", "stdin", "cwd") else path


def _for_others(result: ExperimentResult, line: str) -> ExperimentResult:
    """``result`` without the directories of this machine in the names of kernels."""
    kernels = tuple(replace(kernel, spec=_public(kernel.spec)) for kernel in result.experiment.kernels)
    notes = result.experiment.annotations
    if notes.looked is not None:
        notes = replace(notes, looked=replace(notes.looked, config=_public(notes.looked.config)))
    return replace(result, experiment=replace(result.experiment, kernels=kernels, command=line, annotations=notes))


def _public(text: str) -> str:
    """``text`` without directories of this machine but ~; what was built before may name another state directory."""
    import re

    from kdelta.paths import expanded, state_dir

    kept = re.compile(f"(?:{re.escape(str(state_dir()))}|(?:/[^/\\s+]+)+)/reviews/[0-9a-f]{{8}}/")
    own = kept.sub("", text).replace(f"{expanded('~')}/", "~/")
    return re.sub(r"(?<![\w.~/])(?:/[^/\s+@,;:]+)+/(?=[^/\s])", "", own)

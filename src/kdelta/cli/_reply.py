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

_DEFAULTS = {"time_budget": "10m"}
_KEPT = ("time_budget", "selftests", "each", "all_cases", "no_beside")  # options that change what is measured
_NAMES = {"all_cases": "all"}


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
    return cover.reply(to, mail.joined([body, *below]))


def command(message_id: str, tree: str, options: dict[str, Any]) -> str:
    """How to repeat a review elsewhere: the thread from its archive, and the tree by its name alone."""
    import shlex

    words = ["kdelta", "review", "series.mbox", "--tree", tree if tree.startswith("debian:") else Path(tree).name]
    for name in _KEPT:
        value = options.get(name)
        if value and value != _DEFAULTS.get(name):
            option = "--" + _NAMES.get(name, name).replace("_", "-")
            words += [option] if value is True else [option, str(value)]
    fetch = ["b4", "mbox", "-o", ".", "-n", "series.mbox", message_id.strip("<>")]
    return f"{shlex.join(fetch)} && {shlex.join(words)}"


def _for_others(result: ExperimentResult, line: str) -> ExperimentResult:
    """``result`` without the directories of this machine in the names of kernels."""
    import re

    from kdelta.paths import state_dir

    kept, home = re.compile(re.escape(f"{state_dir() / 'reviews'}/") + "[0-9a-f]{8}/"), str(Path.home())
    kernels = tuple(
        replace(kernel, spec=kept.sub("", kernel.spec).replace(f"{home}/", "~/"))
        for kernel in result.experiment.kernels
    )
    return replace(result, experiment=replace(result.experiment, kernels=kernels, command=line))

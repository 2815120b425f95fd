# SPDX-License-Identifier: GPL-2.0-or-later
"""A leak check as a table and as JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence

import msgspec

from kdelta.model import Experiment
from kdelta.results.leaks import Finding

_WIDTH = 72
_CASE, _KERNEL = 36, 14


def to_json(experiment: Experiment, found: Sequence[Finding]) -> str:
    """The document, schema kdelta-leaks/1."""
    document = {
        "schema": "kdelta-leaks/1",
        "experiment": experiment.id,
        "batches": experiment.effort.batches,
        "kernels": [
            {"label": k.label, "spec": k.spec, "release": k.release, "cmdline": k.cmdline} for k in experiment.kernels
        ],
        "results": msgspec.to_builtins(list(found)),
    }
    return json.dumps(document, indent=2) + "\n"


def render(experiment: Experiment, found: Sequence[Finding]) -> str:
    """A table of what leaks, 72 columns."""
    effort = experiment.effort
    lines = [
        f"kdelta leaks {experiment.id}",
        f"objects left per operation, in {effort.batches} batches of {effort.batch_ops} operations",
        "",
        f"{'case':{_CASE}}{'kernel':{_KERNEL}}verdict",
    ]
    for finding in found:
        lines += _row(finding)
    tally = [sum(f.verdict == word for f in found) for word in ("leak", "clean")]
    other = len(found) - sum(tally)
    lines += ["", f"{tally[0]} leak, {tally[1]} clean" + (f", {other} not measured" if other else "")]
    return "\n".join(lines) + "\n"


def _row(finding: Finding) -> list[str]:
    word = "LEAK" if finding.verdict == "leak" else finding.verdict or finding.state
    first = f"{_cut(finding.case, _CASE - 1):{_CASE}}{_cut(finding.kernel, _KERNEL - 1):{_KERNEL}}{word}"
    if finding.verdict == "leak":
        detail = ", ".join(f"{g.what} {g.per_op:.2f}" for g in finding.leaks)
    else:
        detail = "" if finding.verdict else finding.why
    return [first, *textwrap.wrap(detail, _WIDTH, initial_indent="    ", subsequent_indent="    ")]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "~"

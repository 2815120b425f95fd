# SPDX-License-Identifier: GPL-2.0-or-later
"""A leak check as a table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec
from rich.cells import cell_len

from kdelta.model import Experiment
from kdelta.report.text import PROSE, WIDTH, fit, pad, wrap
from kdelta.results.leaks import Finding

_CASE, _KERNEL, _VERDICT = 36, 14, 12  # columns; a verdict is "unsupported" at most


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


def render(experiment: Experiment, found: Sequence[Finding], width: int = WIDTH) -> str:
    """A table of what leaks."""
    effort = experiment.effort
    kernel = max([_KERNEL, *(1 + cell_len(finding.kernel) for finding in found)])
    kernel = max(_KERNEL, min(kernel, width - _CASE - _VERDICT))
    longest = max([_CASE, *(1 + cell_len(finding.case) for finding in found)])
    columns = min(longest, width - kernel - _VERDICT), kernel
    lines = [
        f"kdelta leaks {experiment.id}",
        *wrap(f"objects left per operation, in {effort.batches} batches of {effort.batch_ops} operations", width),
        "",
        f"{'case':{columns[0]}}{'kernel':{columns[1]}}verdict",
    ]
    for finding in found:
        lines += _row(finding, columns, width)
    return "\n".join([*lines, "", summed(found)]) + "\n"


def summed(found: Sequence[Finding]) -> str:
    """How many leak, and how many do not."""
    tally = [sum(f.verdict == word for f in found) for word in ("leak", "clean")]
    other = len(found) - sum(tally)
    return f"{tally[0]} leak, {tally[1]} clean" + (f", {other} not measured" if other else "")


def _row(finding: Finding, columns: tuple[int, int], width: int) -> list[str]:
    """A finding, of which a name that is longer than its column has its own line, and what leaks those below."""
    word = "LEAK" if finding.verdict == "leak" else finding.verdict or finding.state
    case, kernel = columns
    long = cell_len(finding.case) >= case
    row = pad("" if long else finding.case, case) + pad(fit(finding.kernel, kernel - 1), kernel) + word
    if finding.verdict == "leak":
        detail = ", ".join(f"{g.what} {g.per_op:.2f}" for g in finding.leaks)
    else:
        detail = "" if finding.verdict else finding.why
    name = wrap(finding.case, width, then="  ") if long else []
    return [*name, row, *(wrap(detail, min(width, PROSE), first="    ") if detail else [])]

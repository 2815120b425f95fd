# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta cases: the catalogue of workloads, their knobs and metrics."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kdelta.cli import common
from kdelta.errors import UserError

if TYPE_CHECKING:
    from kdelta.spec.workloads import Workload

EPILOG = """\b
Examples:
  kdelta cases list
  kdelta cases show pipe
  kdelta cases list --workloads ./will-it-scale/tests
"""
_FOLDER = click.option(
    "--workloads",
    "folders",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A directory of will-it-scale testcases.",
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print as JSON.")


@click.group(epilog=EPILOG)
def command() -> None:
    """List the cases that can be measured, and what can be varied in them."""


@command.command("list")
@_FOLDER
@_JSON
def list_(folders: tuple[Path, ...], as_json: bool) -> None:
    """One line for each workload."""
    workloads = common.load_workloads(folders)
    if as_json:
        _print_json([{"name": w.name, "title": w.title, "knobs": list(w.params)} for w in workloads.values()])
        return
    for workload in workloads.values():
        click.echo(f"{workload.name:16} {workload.title}")


@command.command("show")
@click.argument("name")
@_FOLDER
@_JSON
def show(name: str, folders: tuple[Path, ...], as_json: bool) -> None:
    """Everything about one workload: knobs, defaults, metrics, needs."""
    workloads = common.load_workloads(folders)
    if name not in workloads:
        import difflib

        close = difflib.get_close_matches(name, workloads, n=2)
        hint = f"did you mean {' or '.join(close)}?" if close else f"one of {', '.join(workloads)}"
        raise UserError(f"there is no workload {name!r}; {hint}")
    workload = workloads[name]
    if as_json:
        import msgspec

        _print_json(msgspec.to_builtins(workload, enc_hook=str))
        return
    click.echo("\n".join(_lines(workload)))


def _print_json(value: object) -> None:
    import json

    click.echo(json.dumps(value, indent=2, default=str))


def _lines(workload: Workload) -> list[str]:
    lines = [f"{workload.name}: {workload.title}", "", workload.help.strip(), "", "Knobs:"]
    for name, param in workload.params.items():
        values = "|".join(param.choices) if param.choices else param.type
        if param.min is not None and param.max is not None:
            values += f" {param.show(str(param.min))}..{param.show(str(param.max))}"
        lines.append(f"  {name:14} {param.help} ({values}; default {param.show(param.default_text)})")
    lines.append("Metrics (timed):")
    for metric in workload.metrics:
        marks = [m for m, on in (("primary", metric.primary), ("legacy", metric.legacy)) if on]
        lines.append(f"  {metric.name:18} {metric.unit:8} {metric.better} is better {', '.join(marks)}".rstrip())
    exact = f"{workload.exact_ops} operations per repetition" if workload.exact_ops else "none: its loop never returns"
    lines.append(f"Exact mode: {exact}" + (f"; {workload.exact_label}" if workload.exact_label else ""))
    for need in workload.needs:
        what = need.config or need.syscall or need.feature
        when = f" with {', '.join(f'{k}={chr(124).join(v)}' for k, v in need.when.items())}" if need.when else ""
        lines.append(f"Needs: {what}" + (f" (since {need.since})" if need.since else "") + when)
    return lines

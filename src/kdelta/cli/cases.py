# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta cases: the catalogue of workloads, their knobs and metrics."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kdelta.cli import _groups, _terminal, common
from kdelta.cli._say import say
from kdelta.errors import UserError
from kdelta.report.text import WIDTH, wrap

if TYPE_CHECKING:
    from kdelta.spec.suites import Suite
    from kdelta.spec.workloads import Workload

EPILOG = """\b
Examples:
  kdelta cases                              all of them (kdelta cases list)
  kdelta cases pipe                         one of them (kdelta cases show pipe)
  kdelta cases syscalls                     those of a suite
  kdelta cases list --workloads ./will-it-scale/tests
"""
_JSON = click.option("--json", "as_json", is_flag=True, help="Print as JSON.")


@click.group(cls=_groups.DefaultGroup, epilog=EPILOG)
def command() -> None:
    """List the cases that can be measured, and what can be varied in them."""


@command.command("list")
@click.argument("suite", required=False)
@common.workloads_option
@_JSON
def list_(suite: str | None, workloads: tuple[Path, ...], as_json: bool) -> None:
    """One line for each workload, by suite; of one SUITE alone where it is named."""
    _print_suites(common.load_workloads(workloads), suite, as_json)


def _print_suites(found: Mapping[str, Workload], wanted: str | None, as_json: bool) -> None:
    """All suites with their workloads, or the one that is wanted.

    Raises:
        UserError: there is no such suite.
    """
    from kdelta.spec.cases import close_to

    groups = _by_suite(found)
    if wanted is not None:
        groups = [group for group in groups if group[0].name == wanted]
        if not groups:
            names = [suite.name for suite, _ in _by_suite(found) if suite.name]
            raise UserError(f"there is no suite {wanted!r}; {close_to(wanted, names)}")
    if as_json:
        suites = {w.name: suite.name for suite, members in groups for w in members}
        _print_json([_row(w) | {"suite": suites[w.name]} for w in found.values() if w.name in suites])
        return
    width = _terminal.seen()
    for suite, members in groups:
        needs = f" (needs {suite.needs})" if suite.needs and not members else ""
        heading = f"{suite.name + ': ' if suite.name else ''}{suite.title}{needs}"
        say(heading if width is None else "\n".join(wrap(heading, width, then="  ")))
        for workload in members:
            say("\n".join(_titled(workload, width)))


def _titled(workload: Workload, width: int | None) -> list[str]:
    """Name and title, on a terminal in lines that it does not break."""
    line = f"  {workload.name:28} {workload.title}"
    if width is None or len(line) <= width:
        return [line]
    if width < WIDTH:
        return [*wrap(workload.name, width, first="  "), *wrap(workload.title, width, first="    ")]
    return wrap(workload.title, width, first=f"  {workload.name:28} ", then=" " * 31)


def _row(workload: Workload) -> dict[str, object]:
    return {"name": workload.name, "title": workload.title, "knobs": list(workload.params)}


def _by_suite(workloads: Mapping[str, Workload]) -> list[tuple[Suite, list[Workload]]]:
    """The workloads of each suite, then those of none."""
    from kdelta.spec import cases, suites

    groups: list[tuple[Suite, list[Workload]]] = []
    left = dict(workloads)
    for suite in suites.suites().values():
        names = dict.fromkeys(case.workload for case in cases.of_suite(suite, workloads, missing_ok=True))
        groups.append((suite, [workload for name in names if (workload := left.pop(name, None))]))
    return [*groups, (suites.Suite(title="In no suite", cases=()), list(left.values()))]


@command.command("show")
@click.argument("name")
@common.workloads_option
@_JSON
def show(name: str, workloads: tuple[Path, ...], as_json: bool) -> None:
    """Everything about one workload: knobs, defaults, metrics, needs."""
    from kdelta.spec import suites
    from kdelta.spec.cases import close_to

    found = common.load_workloads(workloads)
    if name not in found and name in suites.suites():
        _print_suites(found, name, as_json)
        return
    if name not in found:
        folder = shlex.quote(str(Path(name).parent))
        own = f"those of your own files: kdelta cases list --workloads {folder}"
        raise UserError(f"there is no workload {name!r}; {own if name.endswith('.c') else close_to(name, found)}")
    workload = found[name]
    if as_json:
        import msgspec

        _print_json(msgspec.to_builtins(workload, enc_hook=str))
        return
    say("\n".join(_lines(workload, _terminal.seen())))


def _print_json(value: object) -> None:
    import json

    say(json.dumps(value, indent=2, default=str))


def _lines(workload: Workload, width: int | None) -> list[str]:
    """All about a workload; ``width``: of a terminal, without one each thing is a line."""

    def line(text: str, first: str = "", then: str | None = None) -> list[str]:
        return [f"{first}{text}".rstrip()] if width is None else wrap(" ".join(text.split()), width, first, then)

    about = workload.help.strip()
    paragraphs = [about] if width is None else about.split("\n\n")
    lines = [*line(f"{workload.name}: {workload.title}"), ""]
    for each in paragraphs:
        lines += [*line(each), ""]
    lines.append("Knobs:")
    for name, param in workload.params.items():
        values = "|".join(param.choices) if param.choices else param.type
        if param.min is not None and param.max is not None:
            values += f" {param.show(str(param.min))}..{param.show(str(param.max))}"
        lines += line(f"{param.help} ({values}; default {param.show(param.default_text)})", f"  {name:14} ")
    lines.append("Metrics (timed):")
    for metric in workload.metrics:
        marks = [m for m, on in (("primary", metric.primary), ("legacy", metric.legacy)) if on]
        better = f"{metric.better} is better {', '.join(marks)}"
        lines += line(better, f"  {metric.name:18} {metric.unit:8} ")
    exact = f"{workload.exact_ops} operations per repetition" if workload.exact_ops else "none"
    lines += line(f"Exact mode: {exact}" + (f"; {workload.exact_label}" if workload.exact_label else ""), then="  ")
    for need in workload.needs:
        what = need.setting or need.syscall or need.feature
        when = f" with {', '.join(f'{k}={chr(124).join(v)}' for k, v in need.when.items())}" if need.when else ""
        lines += line(f"Needs: {what}" + (f" (since {need.since})" if need.since else "") + when, then="  ")
    return lines

# SPDX-License-Identifier: GPL-2.0-or-later
"""The report as JUnit XML, in the structure that Ant, Jenkins and GitLab share: a suite per case, a test per cell.

regressed is a failure, a lost guest an error, inconclusive and unsupported are skipped. Times are 0: a boot's
duration is not the result.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from xml.etree import ElementTree as ET

from kdelta.report.ktap import PASS, SKIP
from kdelta.report.registry import Format
from kdelta.report.view import Cell, Group, Row, View

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


def _case(suite: ET.Element, title: str, row: Row, cell: Cell) -> str:
    """Append one test; returns failure, error, skipped or "" for a pass."""
    name = row.metric + (f" on {cell.kernel}" if cell.kernel else "")
    test = ET.SubElement(suite, "testcase", name=name, classname=f"kdelta.{title}", time="0")
    word = cell.verdict
    if word in PASS:
        return ""
    outcome = "skipped" if word in SKIP else "failure" if word == "regressed" else "error"
    message = cell.sentence or f"{word}: {cell.figure}"
    element = ET.SubElement(test, outcome, message=message)
    if outcome != "skipped":
        element.set("type", word)
        element.text = f"baseline {row.baseline}, effect {cell.figure}"
    return outcome


def _suite(root: ET.Element, number: int, title: str, time: str) -> ET.Element:
    suite = ET.SubElement(root, "testsuite", package="kdelta", id=str(number), name=title)
    suite.set("timestamp", time)
    suite.set("hostname", "localhost")
    return suite


def _finish(suite: ET.Element, outcomes: list[str], lines: Iterable[str]) -> None:
    for name, outcome in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(outcomes.count(outcome)))
    suite.set("tests", str(len(outcomes)))
    suite.set("time", "0")
    ET.SubElement(suite, "system-out").text = "\n".join(lines)
    ET.SubElement(suite, "system-err").text = ""


def _properties(suite: ET.Element, view: View) -> None:
    properties = ET.SubElement(suite, "properties")
    for name, value in (("title", view.title), ("mode", view.result.experiment.mode), ("command", view.command)):
        ET.SubElement(properties, "property", name=name, value=value)


def _figures(group: Group, view: View, cells: list[tuple[Group, Row, Cell]]) -> list[str]:
    lines = [
        f"{row.metric}{' on ' + cell.kernel if cell.kernel else ''}: baseline {row.baseline}, effect {cell.figure}, "
        f"{cell.verdict}{' ' + cell.mark if cell.mark else ''}"
        for _, row, cell in cells
    ]
    numbers = sorted({number for _, _, cell in cells for number in cell.notes})
    return lines + [f"[{number}] {view.footnotes[number - 1]}" for number in numbers]


def render(view: View) -> str:
    """One document; a closed gate is a failed test in a suite of its own, first."""
    root = ET.Element("testsuites")
    found = _TIME.match(view.result.experiment.created_at)
    time = found[0] if found else "1970-01-01T00:00:00"
    if view.gate:
        suite = _suite(root, 0, "gate", time)
        _properties(suite, view)
        test = ET.SubElement(suite, "testcase", name="gate", classname="kdelta.gate", time="0")
        ET.SubElement(test, "failure", message=view.gate, type="gate").text = view.gate
        _finish(suite, ["failure"], [])
    for group, members in groupby(view.cells(), key=lambda item: item[0]):
        cells = list(members)
        suite = _suite(root, len(root), group.title, time)
        _properties(suite, view)
        outcomes = [_case(suite, group.title, row, cell) for _, row, cell in cells]
        _finish(suite, outcomes, _figures(group, view, cells))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


FORMAT = Format(name="junit", suffix=".xml", render=render, help="JUnit XML for build systems")

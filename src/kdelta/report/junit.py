# SPDX-License-Identifier: GPL-2.0-or-later
"""The report as JUnit XML, in the structure that Ant, Jenkins and GitLab share: a suite per case, a test per cell or
version of a sweep.

What passes and what is skipped stands in outcomes.py; regressed is a failure, a lost guest an error. Times are 0: a
boot's duration is not the result.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.etree import ElementTree as ET

from kdelta.report.outcomes import CaseOutcomes, Outcome, outcomes
from kdelta.report.registry import Format
from kdelta.report.standing import NOT_LOOKED_AT, not_looked_at
from kdelta.report.view import View

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


def _test(suite: ET.Element, title: str, outcome: Outcome) -> None:
    test = ET.SubElement(suite, "testcase", name=outcome.name, classname=f"kdelta.{title}", time="0")
    if outcome.result == "pass":
        return
    element = ET.SubElement(test, outcome.result, message=outcome.reason)
    if outcome.result != "skipped":
        element.set("type", outcome.word)
        element.text = outcome.figures


def _suite(root: ET.Element, number: int, title: str, time: str) -> ET.Element:
    suite = ET.SubElement(root, "testsuite", package="kdelta", id=str(number), name=title)
    suite.set("timestamp", time)
    suite.set("hostname", "localhost")
    return suite


def _finish(suite: ET.Element, results: list[str], lines: Iterable[str]) -> None:
    for name, result in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(results.count(result)))
    suite.set("tests", str(len(results)))
    suite.set("time", "0")
    ET.SubElement(suite, "system-out").text = "\n".join(lines)
    ET.SubElement(suite, "system-err").text = ""


def _properties(suite: ET.Element, view: View) -> None:
    properties = ET.SubElement(suite, "properties")
    for name, value in (("title", view.title), ("mode", view.result.experiment.mode), ("command", view.command)):
        ET.SubElement(properties, "property", name=name, value=value)


def _figures(case: CaseOutcomes, view: View) -> list[str]:
    """The figures of every test, and the notes that they or the whole report refer to."""
    lines = [
        f"{test.name}: {test.figures}, {test.word}{' ' + test.mark if test.mark else ''}" for test in case.outcomes
    ]
    numbers = {number for test in case.outcomes for number in test.notes} | set(view.general_notes)
    return lines + [f"[{number}] {view.footnotes[number - 1]}" for number in sorted(numbers)]


def render(view: View) -> str:
    """One document; a closed gate is a failed test in a suite of its own, first, what no case executes a skipped one,
    last.
    """
    root = ET.Element("testsuites")
    found = _TIME.match(view.result.experiment.created_at)
    time = found[0] if found else "1970-01-01T00:00:00"
    if view.gate:
        suite = _suite(root, 0, "gate", time)
        _properties(suite, view)
        test = ET.SubElement(suite, "testcase", name="gate", classname="kdelta.gate", time="0")
        ET.SubElement(test, "failure", message=view.gate, type="gate").text = view.gate
        _finish(suite, ["failure"], [])
    for case in outcomes(view):
        suite = _suite(root, len(root), case.title, time)
        _properties(suite, view)
        for outcome in case.outcomes:
            _test(suite, case.title, outcome)
        _finish(suite, [outcome.result for outcome in case.outcomes], _figures(case, view))
    if missed := not_looked_at(view):
        suite = _suite(root, len(root), NOT_LOOKED_AT, time)
        _properties(suite, view)
        test = ET.SubElement(suite, "testcase", name=NOT_LOOKED_AT, classname="kdelta.change", time="0")
        ET.SubElement(test, "skipped", message=missed[0])
        _finish(suite, ["skipped"], missed)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


FORMAT = Format(name="junit", suffix=".xml", render=render, help="JUnit XML for build systems")

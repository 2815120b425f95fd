# SPDX-License-Identifier: GPL-2.0-or-later
"""The report as SARIF 2.1.0 (OASIS), for code scanning of GitHub and editors: a result for each thing to look at.

GitHub ("SARIF support for code scanning") wants a file and a line of each result, and a rule of each ``ruleId``.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from kdelta.report.located import RULES, Located, located
from kdelta.report.registry import Format
from kdelta.report.standing import Rule, standing
from kdelta.report.view import View

_LAST: Rule = "console"  # is named where it is broken, so that logs of before stay as they were
_LEVELS = {"fail": "error", "warning": "warning", "success": "note"}
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def _result(one: Located) -> dict[str, Any]:
    rules = list(RULES)
    place: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": quote(one.location.path), "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": one.location.line},
        }
    }
    if one.location.function:
        place["logicalLocations"] = [{"name": one.location.function, "kind": "function"}]
    return {
        "ruleId": one.finding.rule,
        "ruleIndex": rules.index(one.finding.rule),
        "level": _LEVELS[one.finding.word],
        "message": {"text": one.message},
        "locations": [place],
        "partialFingerprints": {"kdelta/v1": one.fingerprint},
    }


def as_dict(view: View) -> dict[str, Any]:
    """The log as one object."""
    experiment = view.result.experiment
    found = located(view)
    last = RULES if any(one.finding.rule == _LAST for one in found) else [rule for rule in RULES if rule != _LAST]
    driver: dict[str, Any] = {
        "name": "kdelta",
        "rules": [{"id": rule, "shortDescription": {"text": RULES[rule]}} for rule in last],
    }
    if experiment.tool_version:
        driver["semanticVersion"] = experiment.tool_version
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(one) for one in found],
        "properties": {"summary": standing(view).line},
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def render(view: View) -> str:
    """The log as text."""
    return json.dumps(as_dict(view), indent=2, ensure_ascii=True) + "\n"


FORMAT = Format(name="sarif", suffix=".sarif", render=render, help="SARIF 2.1.0, for GitHub's code scanning")

# SPDX-License-Identifier: GPL-2.0-or-later
"""The report as GitLab's code quality report, which it shows beside the lines of a merge request.

docs.gitlab.com, "Code Quality report format": every entry has all of these fields.
"""

from __future__ import annotations

import json
from typing import Any

from kdelta.report.located import Located, located
from kdelta.report.registry import Format
from kdelta.report.view import View

_SEVERITIES = {"fail": "major", "warning": "minor", "success": "info"}


def _entry(one: Located) -> dict[str, Any]:
    return {
        "description": one.message,
        "check_name": f"kdelta/{one.finding.rule}",
        "fingerprint": one.fingerprint,
        "severity": _SEVERITIES[one.finding.word],
        "location": {"path": one.location.path, "lines": {"begin": one.location.line}},
    }


def render(view: View) -> str:
    """A list, empty where there is nothing to look at."""
    return json.dumps([_entry(one) for one in located(view)], indent=2, ensure_ascii=True) + "\n"


FORMAT = Format(name="codequality", suffix=".codequality.json", render=render, help="code quality report of GitLab")

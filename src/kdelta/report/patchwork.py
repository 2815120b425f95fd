# SPDX-License-Identifier: GPL-2.0-or-later
"""The report as a check of Patchwork: the JSON that its API takes at ``/api/patches/ID/checks/``.

Patchwork 3.2, ``api/schemas/latest/patchwork.yaml``, CheckCreate: ``state`` (pending, success, warning or fail) is
required; ``context`` is a slug, ``target_url`` an address or absent.
"""

from __future__ import annotations

import json
import re

from kdelta.report.registry import Format
from kdelta.report.standing import standing
from kdelta.report.view import View

CONTEXT = "kdelta"
SLUG = re.compile(r"^[-a-zA-Z0-9_]{1,255}$")


def check(view: View, context: str = CONTEXT, target_url: str = "") -> dict[str, str]:
    """One check as the API takes it."""
    found = standing(view)
    document = {"state": found.word, "context": context, "description": found.line}
    return document | ({"target_url": target_url} if target_url else {})


def render(view: View) -> str:
    """The check without an address; ``kdelta post patchwork`` adds one and sends it."""
    return json.dumps(check(view), indent=2, ensure_ascii=True) + "\n"


FORMAT = Format(name="patchwork", suffix=".patchwork.json", render=render, help="a check of Patchwork, as JSON")

# SPDX-License-Identifier: GPL-2.0-or-later
"""A check on a patch in Patchwork (3.2, ``docs/api/schemas``): found by its number or Message-ID."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from kdelta.errors import HostError
from kdelta.post.http import Service, call


def service(url: str, token: str) -> Service:
    """A Patchwork by its address; raises UserError as ``Service.at`` does."""
    return Service.at(url, {"Authorization": f"Token {token}"} if token else {})


def post(at: Service, patch: str, check: dict[str, str]) -> str:
    """Add ``check`` to a patch; returns the check's address.

    Raises:
        HostError: no such patch, or it is refused.
    """
    number = int(patch) if patch.isascii() and patch.isdecimal() else _number(at, patch)
    made: Any = call(at, "POST", f"/api/patches/{number}/checks/", check)
    return str(made.get("url", "")) if isinstance(made, dict) else ""


def _number(at: Service, message_id: str) -> int:
    bare = message_id.strip().removeprefix("<").removesuffix(">")
    found: Any = call(at, "GET", f"/api/patches/?msgid={quote(bare, safe='@')}")
    numbers = [one.get("id") for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    if len(numbers) != 1 or not isinstance(numbers[0], int):
        raise HostError(f"{at.url} knows {len(numbers)} patches with the Message-ID {bare}; give the patch's number")
    return numbers[0]

# SPDX-License-Identifier: GPL-2.0-or-later
"""One comment per change, made once and edited in place: pull requests of GitHub, merge requests of GitLab.

It is found again by its first line, among the comments of the token's own account alone: a stranger's comment with that
line is left to the stranger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from kdelta.errors import HostError
from kdelta.post.http import Service, call

_PER_PAGE = 100
_MOST_PAGES = 50
_ACTIONS = "github-actions[bot]"  # whose token a job of GitHub Actions has; it may not ask who it is


class Thread(Struct, frozen=True, kw_only=True):
    """Where comments of one change are listed (``path``), and how one of them is edited."""

    service: Service
    path: str
    edit: Callable[[int], str]
    method: str
    mine: Callable[[dict[str, Any]], bool]


def github(service: Service, repository: str, number: int) -> Thread:
    """A pull request's comments (REST API 2022-11-28, "issues/comments")."""
    try:
        me = str(call(service, "GET", "/user")["login"])
    except (HostError, KeyError, TypeError):
        me = _ACTIONS
    return Thread(
        service=service,
        path=f"/repos/{quote(repository)}/issues/{number}/comments",
        edit=lambda comment: f"/repos/{quote(repository)}/issues/comments/{comment}",
        method="PATCH",
        mine=lambda one: (one.get("user") or {}).get("login") == me,
    )


def gitlab(service: Service, project: str, number: int) -> Thread:
    """A merge request's notes (API v4, "notes")."""
    me = call(service, "GET", "/user")
    if not isinstance(me, dict) or not isinstance(me.get("id"), int):
        raise HostError(
            f"{service.url}: does not say whose token this is; is it the address of GitLab's API (.../api/v4)?"
        )
    path = f"/projects/{quote(project, safe='')}/merge_requests/{number}/notes"
    return Thread(
        service=service,
        path=path,
        edit=lambda note: f"{path}/{note}",
        method="PUT",
        mine=lambda one: (one.get("author") or {}).get("id") == me["id"],
    )


def _comments(thread: Thread) -> Iterator[dict[str, Any]]:
    for page in range(1, _MOST_PAGES + 1):
        found = call(thread.service, "GET", f"{thread.path}?per_page={_PER_PAGE}&page={page}")
        if not isinstance(found, list):
            raise HostError(f"{thread.service.url}{thread.path}: not a list of comments")
        yield from (one for one in found if isinstance(one, dict))
        if len(found) < _PER_PAGE:
            return


def put(thread: Thread, marker: str, body: str) -> bool:
    """Write ``body`` (which begins with ``marker``) as the one comment; True where it was there and is edited.

    Raises:
        HostError: the service refuses.
    """
    for one in _comments(thread):
        if thread.mine(one) and str(one.get("body", "")).startswith(marker) and isinstance(one.get("id"), int):
            call(thread.service, thread.method, thread.edit(one["id"]), {"body": body})
            return True
    call(thread.service, "POST", thread.path, {"body": body})
    return False

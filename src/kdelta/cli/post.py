# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta post: a report as a check of Patchwork, or as one comment on GitHub or GitLab, edited in place."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import click

from kdelta.cli import _stores
from kdelta.cli._say import put, say
from kdelta.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdelta.post.comment import Thread
    from kdelta.report.view import View

EPILOG = """\b
Examples:
  kdelta post patchwork MESSAGE-ID --url https://patchwork.kernel.org
  kdelta post github torvalds/linux#123
  kdelta post gitlab group/project!45 20261121-1530

Tokens come from the environment: PATCHWORK_TOKEN, GITHUB_TOKEN (or GH_TOKEN), GITLAB_TOKEN. Without one nothing is sent, and
what would be is printed.
"""
_GITHUB = re.compile(r"^([A-Za-z0-9-]+/[A-Za-z0-9._-]+)#(\d+)$")
_GITLAB = re.compile(r"^([A-Za-z0-9._/-]+)!(\d+)$")
_PAGES = (  # a change by the address of its page, and how it is named
    (re.compile(r"^https?://[^/]+/([\w-]+/[\w.-]+)/pull/(\d+)"), "#"),
    (re.compile(r"^https?://[^/]+/([\w./-]+)/-/merge_requests/(\d+)"), "!"),
)
_experiment = click.argument("experiment", default="last", metavar="[EXPERIMENT]")
_context = click.option("--context", default="kdelta", show_default=True, metavar="NAME", help="Tells several checks of one change apart.")  # fmt: skip


@click.group(epilog=EPILOG, no_args_is_help=False)
def command() -> None:
    """Send a report to where the change is reviewed."""


@command.command()
@click.argument("patch", metavar="PATCH")
@_experiment
@click.option("--url", required=True, metavar="URL", help="The Patchwork, as in https://patchwork.kernel.org.")
@click.option("--target-url", default="", metavar="URL", help="Where the whole report can be read.")
@_context
def patchwork(patch: str, experiment: str, url: str, target_url: str, context: str) -> None:
    """Add a check to PATCH, a patch's number or Message-ID."""
    import json

    from kdelta.post import patchwork as service
    from kdelta.report import patchwork as layout

    token = os.environ.get("PATCHWORK_TOKEN", "").strip()
    at = service.service(url, token)
    check = layout.check(_view(experiment, context), context, target_url)
    if not token:
        put(json.dumps(check, indent=2) + "\n")
        _not_sent("PATCHWORK_TOKEN")
        return
    say(f"posted {check['state']}: {service.post(at, patch, check)}")


@command.command()
@click.argument("change", metavar="OWNER/REPOSITORY#NUMBER")
@_experiment
@_context
def github(change: str, experiment: str, context: str) -> None:
    """Comment on a pull request; a second post edits the first."""
    from kdelta.post import comment
    from kdelta.post.http import Service

    found = _named(change, _GITHUB, "OWNER/REPOSITORY#NUMBER")
    token = (os.environ.get("GITHUB_TOKEN") or os.environ.get("GH_TOKEN") or "").strip()
    headers = {"Authorization": f"Bearer {token}", "X-GitHub-Api-Version": "2022-11-28"}
    at = Service.at(os.environ.get("GITHUB_API_URL") or "https://api.github.com", headers)
    thread = (lambda: comment.github(at, *found)) if token else None
    _comment(_view(experiment, context), context, thread, "GITHUB_TOKEN")


@command.command()
@click.argument("change", metavar="PROJECT!NUMBER")
@_experiment
@_context
def gitlab(change: str, experiment: str, context: str) -> None:
    """Comment on a merge request; a second post edits the first."""
    from kdelta.post import comment
    from kdelta.post.http import Service

    found = _named(change, _GITLAB, "PROJECT!NUMBER")
    token = os.environ.get("GITLAB_TOKEN", "").strip()
    at = Service.at(os.environ.get("CI_API_V4_URL") or "https://gitlab.com/api/v4", {"PRIVATE-TOKEN": token})
    thread = (lambda: comment.gitlab(at, *found)) if token else None
    _comment(_view(experiment, context), context, thread, "GITLAB_TOKEN")


def _named(change: str, form: re.Pattern[str], said: str) -> tuple[str, int]:
    match = form.match(change)
    if match is None:
        meant = [
            f"{page[1]}{sign}{page[2]}" for page_of, sign in _PAGES if sign in said and (page := page_of.match(change))
        ]
        raise UserError(f"{change!r}: name the change as {said}" + (f"; did you mean {meant[0]}?" if meant else ""))
    return match[1], int(match[2])


def _view(experiment: str, context: str) -> View:
    from kdelta.cli import _show
    from kdelta.report.patchwork import SLUG

    if not SLUG.match(context):
        raise UserError(f"--context {context!r}: letters, digits, - and _ alone, as in kdelta-arm64")
    with _stores.reading() as store:
        return _show.view_of(store, store.id_of(experiment))[1]


def _comment(view: View, context: str, thread: Callable[[], Thread] | None, variable: str) -> None:
    from kdelta.post import comment
    from kdelta.report import comment as layout

    body = layout.render(view, context)
    if thread is None:
        put(body)
        _not_sent(variable)
        return
    edited = comment.put(thread(), layout.marker(context), body)
    say("edited the comment" if edited else "added a comment")


def _not_sent(variable: str) -> None:
    say(f"nothing was sent: {variable} is not set", err=True)

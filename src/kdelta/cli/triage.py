# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta triage: the steps that followed sweeps announced, and what became of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast, get_args

import click
from msgspec.structs import replace

from kdelta.cli import _output, _session, _stores, _terminal
from kdelta.errors import UserError

if TYPE_CHECKING:
    from kdelta.model.diary import Step, Triage

EPILOG = """\b
Examples:
  kdelta triage                                              all steps, open ones first
  kdelta triage --state open --json
  kdelta triage 3fa91c2b0d acknowledged --note "fix is queued for 7.4"
  kdelta triage 3fa91c2b0d explained --note "gcc 16"

Steps are announced by kdelta sweep --follow, each once.
"""


@click.command(epilog=EPILOG)
@click.argument("step", required=False)
@click.argument("state", required=False, metavar="[open|acknowledged|explained|fixed]")
@click.option("--note", metavar="TEXT", help="What is to be remembered of it.")
@click.option("--state", "only", metavar="STATE", help="List only the steps of this state.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (schema kdelta-steps/1).")
def command(step: str | None, state: str | None, note: str | None, only: str | None, as_json: bool) -> None:
    """List steps, or say what became of STEP (the beginning of its name)."""
    from kdelta.report import steps as layout
    from kdelta.report.text import PROSE

    for word in (state, only):
        _refuse_unknown(word)
    if step is None and note is not None:
        raise UserError("--note is of a step: kdelta triage STEP --note TEXT")
    with _stores.listing() if step is None else _stores.reading() as store:
        if step is None:
            found = [one for one in store.steps() if only is None or one.state == only]
        else:
            found = [store.judge(step, lambda one: _judged(one, state, note))]
    _output.write(layout.to_json(found) if as_json else layout.listed(found, min(_terminal.columns(), PROSE)), None)


def _refuse_unknown(word: str | None) -> None:
    from kdelta.model.diary import Triage

    if word is not None and word not in get_args(Triage):
        raise UserError(f"{word!r} is no state of a step: {', '.join(get_args(Triage))}")


def _judged(step: Step, state: str | None, note: str | None) -> Step:
    from kdelta.store.codec import check_note

    if state is None and note is None:
        return step
    return replace(
        step,
        state=cast("Triage", state or step.state),
        note=step.note if note is None else check_note(note),
        judged_at=_session.now().isoformat(timespec="seconds"),
    )

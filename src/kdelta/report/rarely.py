# SPDX-License-Identifier: GPL-2.0-or-later
"""Options that would build what a patch changes, or let cases execute it that this kernel cannot run; line numbers."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from kdelta.model import Looked
from kdelta.units import counted

_SHOWN = 12  # options
_FUNCTIONS = 3  # the JSON result has all


def with_options(options: Sequence[str], given: str) -> str:
    """The command that sets ``options`` over the ``given`` config ("" without)."""
    values = " ".join([*filter(None, [given]), *(one if "=" in one else f"{one}=y" for one in options[:_SHOWN])])
    return f"the same kdelta review with {shlex.join(['--config', values])}"


def sentence(looked: Looked) -> str:
    """Which cases execute what is not looked at, or hardly; "" where all is."""
    hardly = [name for name, (ran, of) in (looked.partly | looked.removed).items() if ran < of]
    titles = [*(one.name for one in looked.unreached), *looked.untouched, *hardly]
    pairs = [(name, looked.rare[name]) for title in titles if (name := title.partition(" (")[0]) in looked.rare]
    if not pairs:
        return ""
    shown = ", ".join(f"{name} in {case}" for name, case in pairs[:_FUNCTIONS])
    more = f" and {len(pairs) - _FUNCTIONS} more" if len(pairs) > _FUNCTIONS else ""
    how = with_options(looked.rare_options, looked.config)
    return f"Cases that need other options execute it, or more of it: {shown}{more}; {how}."


def lined(looked: Looked) -> str:
    """That functions differ in line numbers alone: a clause."""
    names = ", ".join(looked.lined[:_FUNCTIONS])
    more = f" and {len(looked.lined) - _FUNCTIONS} more" if len(looked.lined) > _FUNCTIONS else ""
    return f"line numbers alone (__LINE__) differ in {counted(len(looked.lined), 'function')}: {names}{more}"


def document(looked: Looked) -> dict[str, Any]:
    """The same for scripts."""
    return {"lined": list(looked.lined), "rare": dict(looked.rare), "rare_options": list(looked.rare_options)}

# SPDX-License-Identifier: GPL-2.0-or-later
"""Suites: named lists of cases, one TOML file each in guest/suites. Adding one is adding its file.

A suite whose cases are written as CASEs has them in a directory of its name beside the file.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from kdelta.errors import UserError
from kdelta.paths import shipped

DEFAULT = "patches"


class Suite(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A suite. ``cases`` are what --case takes; ``needs`` says what the user must bring where they are not shipped."""

    name: str = ""
    title: str
    cases: tuple[str, ...]
    needs: str = ""


def suites() -> dict[str, Suite]:
    """All suites by name, the default one first.

    Raises:
        UserError: a damaged file.
    """
    found: dict[str, Suite] = {}
    for path in sorted((shipped("guest") / "suites").glob("*.toml"), key=lambda p: (p.stem != DEFAULT, p.stem)):
        try:
            suite = msgspec.toml.decode(path.read_bytes(), type=Suite)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UserError(f"suite {path}: {error}") from None
        found[path.stem] = msgspec.structs.replace(suite, name=path.stem)
    return found


def suite(name: str, known: Mapping[str, Suite]) -> Suite:
    """The suite of that name.

    Raises:
        UserError: there is none; names those that there are.
    """
    if name not in known:
        raise UserError(f"--suite {name}: there is no such suite; one of {', '.join(known)}")
    return known[name]

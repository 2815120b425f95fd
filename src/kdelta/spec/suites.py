# SPDX-License-Identifier: GPL-2.0-or-later
"""Suites: named lists of cases, one TOML file each in guest/suites. Adding one is adding its file.

A suite whose cases are written as CASEs has them in a directory of its name beside the file; one whose cases are
programs has them as ``[programs.NAME]`` (spec/counted.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct, field

from kdelta import distributions
from kdelta.errors import UserError
from kdelta.paths import shipped
from kdelta.spec import toml
from kdelta.spec.counted import Counted, complaint

DEFAULT = "patches"


class Suite(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A suite. ``cases`` are what --case takes, all of its ``programs`` where it says none.

    ``needs`` says what the user must bring where the cases are not shipped, ``package`` is Debian's with the programs,
    and ``get`` how to have them where Debian has no package.
    """

    name: str = ""
    title: str
    cases: tuple[str, ...] = ()
    needs: str = ""
    package: str = ""
    get: str = ""
    programs: dict[str, Counted] = field(default_factory=dict)

    @property
    def remedy(self) -> str:
        """How the machine gets its programs."""
        return self.get or distributions.install(self.package)


def suites() -> dict[str, Suite]:
    """All suites by name, the default one first.

    Raises:
        UserError: a damaged file.
    """
    found: dict[str, Suite] = {}
    for path in sorted((shipped("guest") / "suites").glob("*.toml"), key=lambda p: (p.stem != DEFAULT, p.stem)):
        found[path.stem] = load(path)
    return found


def load(path: Path) -> Suite:
    """The suite of one file.

    Raises:
        UserError: it is damaged.
    """
    try:
        suite = toml.decode(path.read_bytes(), Suite)
    except (OSError, ValueError) as error:
        raise UserError(f"suite {path}: {error}") from None
    if why := _refused(suite):
        raise UserError(f"suite {path}: {why}")
    return msgspec.structs.replace(suite, name=path.stem, cases=suite.cases or (f"{path.stem}/*",))


def _refused(suite: Suite) -> str:
    if suite.programs and not (suite.package or suite.get):
        return "package: the Debian package of its programs, or get: how to have them"
    if not suite.programs and not suite.cases:
        return "cases or programs: it has neither"
    return next((f"programs.{name}: {why}" for name, one in suite.programs.items() if (why := complaint(one))), "")


def suite(name: str, known: Mapping[str, Suite]) -> Suite:
    """The suite of that name.

    Raises:
        UserError: there is none; names those that there are.
    """
    listed = [piece.strip() for piece in name.split(",")]
    if listed[1:] and set(listed) <= set(known):
        raise UserError(f"--suite {name}: suites are given one by one: {' '.join(f'--suite {one}' for one in listed)}")
    if name not in known:
        raise UserError(f"--suite {name}: there is no such suite; one of {', '.join(known)}")
    return known[name]

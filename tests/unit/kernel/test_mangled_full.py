# SPDX-License-Identifier: GPL-2.0-or-later
"""Real changes of fs/, kernel/ and mm/ between two releases, through every mangling: the same bytes, or a refusal."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

import pytest

from kdelta.errors import UserError
from kdelta.kernel import debian
from kdelta.kernel.mail import steps
from kdelta.kernel.patch import apply
from kdelta.kernel.worktree import decode
from unit.kernel import mangling

pytestmark = pytest.mark.full
_WANTED = re.compile(r"^[^/]+/((?:fs|kernel|mm)/(?:[^/]+/)?[^/]+\.[ch])$")
_LONGEST = 1500  # lines of a diff


def _files(tarball: Path) -> dict[str, str]:
    found = {}
    with tarfile.open(tarball, "r|*") as tar:
        for member in tar:
            if (match := _WANTED.match(member.name.removeprefix("./"))) and member.isreg():
                opened = tar.extractfile(member)
                assert opened is not None
                found[match[1]] = decode(opened.read())
    return found


@pytest.fixture(scope="module")
def changes() -> list[tuple[str, str, str, mangling.Lines]]:
    """(path, old, new, diff) of files that both releases have."""
    before, after = (_files(debian.fetch_source(version)) for version in ("6.12", "7.2"))
    shared = sorted(path for path in before.keys() & after.keys() if before[path] != after[path])
    whole = [(path, before[path], after[path], mangling.diff(before[path], after[path], path)) for path in shared]
    kept = [one for one in whole if len(one[3]) <= _LONGEST and one[1].endswith("\n") and one[2].endswith("\n")]
    assert len(kept) > 500
    return kept


def _made(data: bytes, path: str, old: str) -> str | None:
    (one,) = steps(data, "p")
    return apply(one, {path: old}.get).files[path].text


@pytest.mark.parametrize("name", sorted(mangling.EXACT))
def test_what_the_tree_gives_back_is_the_same_to_the_byte(name: str, changes: list) -> None:  # type: ignore[type-arg]
    for path, old, new, lines in changes:
        made = _made(mangling.mail(mangling.EXACT[name](lines)), path, old)
        assert made == new or (name == "no trailing white space" and _same_but_for_ends(made, new, lines)), path


def _same_but_for_ends(made: str | None, new: str, lines: mangling.Lines) -> bool:
    """Blanks that an author added at a line's end are gone for good; the file's own are not."""
    sloppy = {line[1:] for line in lines if line.startswith("+") and line[1:] != line[1:].rstrip()}
    pairs = list(zip((made or "").split("\n"), new.split("\n"), strict=True))
    return all(a == b or (b in sloppy and a == b.rstrip()) for a, b in pairs)


def test_a_flowed_mail_is_the_same_to_the_byte(changes: list) -> None:  # type: ignore[type-arg]
    for path, old, new, lines in changes:
        made = _made(mangling.flowed(lines), path, old)
        assert made == new or _same_but_for_ends(made, new, lines), path


@pytest.mark.parametrize("name", sorted(mangling.SPACES | mangling.BLANKS | mangling.WRAPS))
def test_what_is_lost_for_good_changes_white_space_alone_or_is_refused(name: str, changes: list) -> None:  # type: ignore[type-arg]
    mangle = (mangling.SPACES | mangling.BLANKS | mangling.WRAPS)[name]
    refused = 0
    for path, old, new, lines in changes:
        try:
            made = _made(mangling.mail(mangle(lines)), path, old)
        except UserError:
            refused += 1
            continue
        assert re.sub(r"\s", "", made or "") == re.sub(r"\s", "", new), path
    assert refused < len(changes) / 20

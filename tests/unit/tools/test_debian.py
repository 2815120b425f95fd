# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's package: whom it names. Nobody has a mail address here, and none of a foreign host may be made up."""

from __future__ import annotations

import re
from pathlib import Path

DEBIAN = Path(__file__).parents[3] / "debian"


def test_the_maintainer_has_an_address_of_a_valid_form_that_names_no_host() -> None:
    control = re.search(r"^Maintainer: (.+)$", (DEBIAN / "control").read_text(encoding="utf-8"), re.MULTILINE)
    changes = re.findall(r"^ -- (.+>)  ", (DEBIAN / "changelog").read_text(encoding="utf-8"), re.MULTILINE)
    assert control and set(changes) == {control[1]}
    # RFC 2606: no host of .invalid will ever be; lintian: a host has a dot
    assert re.fullmatch(r"[\w ]+ <[a-z]+@[a-z]+\.invalid>", control[1])

# SPDX-License-Identifier: GPL-2.0-or-later
"""--layouts: refused where nothing can be linked anew, before anything is fetched."""

from __future__ import annotations

import pytest

from kdelta.cli import _layouts
from kdelta.errors import UserError
from kdelta.kernel.sources import parse_kernel
from kdelta.model import Quiet
from unit.store.store_builders import kernel


def test_an_image_has_one_layout_and_the_remedy_is_named() -> None:
    specs = [parse_kernel("src:debian:6.12"), parse_kernel("debian:7.0/cloud")]
    with pytest.raises(
        UserError, match=r"--layouts 4 links kernels anew, and debian:7\.0/cloud is an image; write src:debian:7\.0$"
    ):
        _layouts.refuse(4, specs, each=False, fleet=False, lab=False)
    _layouts.refuse(None, specs, each=True, fleet=True, lab=True)


@pytest.mark.parametrize("option", ["each", "fleet", "lab"])
def test_what_boots_elsewhere_takes_no_layouts(option: str) -> None:
    given = {"each": False, "fleet": False, "lab": False} | {option: True}
    with pytest.raises(UserError, match="--layouts 2 is not for --"):
        _layouts.refuse(2, [parse_kernel("src:debian:6.12")], **given)


def test_without_the_option_kernels_are_as_they_were() -> None:
    assert _layouts.linked((kernel("a"),), [parse_kernel("src:debian:6.12")], None, 1, Quiet()) == (kernel("a"),)

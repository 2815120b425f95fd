# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernels along a series, of which one may not build."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdelta.errors import HostError
from kdelta.kernel import source
from kdelta.kernel.sources import parse_kernel
from unit.kernel.test_source import pytestmark as needs
from unit.kernel.test_source import tree as tree
from unit.kernel.tiny_tree import PIPE, patch

pytestmark = needs


def test_a_patch_that_does_not_build_without_the_next_is_told_with_what_measures_the_series(
    tree: Path, tmp_path: Path
) -> None:
    """Of a series whose first patch uses what the second brings nothing was measured, and nothing was advised."""
    two = PIPE.replace("LIMIT", "MORE")
    bodies = [
        patch(tmp_path, "x", two).read_text(),
        patch(tmp_path, "x", two.replace("#include", "#define MORE 9\n#include", 1), two).read_text(),
    ]
    mails = (
        f"From 1 Mon Sep 17 00:00:00 2001\nFrom: a@b\nSubject: [PATCH {number}/2] step {number}\n\n{body}\n"
        for number, body in enumerate(bodies, 1)
    )
    (tmp_path / "series.mbox").write_text("".join(mails))
    whole = parse_kernel(f"src:{tree}+{tmp_path / 'series.mbox'}")
    with pytest.raises(HostError, match=r"\[1/2\]: the patch does not compile: .*; .* without --each it is measured"):
        source.resolve_each(whole)
    assert source.resolve_source(whole).image_sha256

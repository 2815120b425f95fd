# SPDX-License-Identifier: GPL-2.0-or-later
"""What differs between two kernels, without what differs in line numbers alone."""

from __future__ import annotations

import shutil

import pytest
from msgspec.structs import replace

from kdelta.attribution import changes, code, images
from kdelta.attribution.disassembly import Image
from kdelta.errors import HostError
from kdelta.experiment import differing
from kdelta.kernel import changed
from kdelta.kernel.sources import parse_kernel
from kdelta.model import Kernel
from unit.attribution.test_changes import make
from unit.attribution.test_code import Maker
from unit.attribution.test_lined import SOURCE, diff

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

__all__ = ["make"]


def test_functions_with_other_line_numbers_alone_are_no_changes(make: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    after = SOURCE.replace("return a * 3;", "a++;\nreturn a * 3;")
    both = {name: Image(make(text)) for name, text in (("old", SOURCE), ("new", after))}
    kernels = [Kernel(label=name, spec="src:x", release="7.3", image_path="/i", image_sha256=name) for name in both]
    specs = [parse_kernel("src:debian:7.3"), parse_kernel("src:debian:7.3+/a.patch")]
    monkeypatch.setattr(images, "image_of", lambda kernel: both[kernel.label])
    monkeypatch.setattr(changed, "texts", lambda _: [diff(SOURCE, after)])
    found = changes.find(both["old"], both["new"], code.compare(both["old"], both["new"]), lambda _: ())
    told = differing.without_lines(found, kernels, specs)
    assert [one.name for one in told.changes] == ["changed"] and told.lined == ("below", "limit")
    assert differing.without_lines(replace(found, whole=True), kernels, specs).lined == ()
    assert differing.without_lines(found, [*kernels, kernels[1]], specs).lined == ()  # --each: between is another diff
    assert differing.without_lines(found, kernels, [specs[1], specs[1]]).lined == ()  # what moved its lines is not told

    def gone(_: object) -> list[list[str]]:
        raise HostError("no tree")

    monkeypatch.setattr(changed, "texts", gone)
    assert differing.without_lines(found, kernels, specs) == found

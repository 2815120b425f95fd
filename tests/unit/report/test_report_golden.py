# SPDX-License-Identifier: GPL-2.0-or-later
"""Every format on every sample against tests/golden/report. ``pytest --snapshot-update`` rewrites them."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from syrupy.location import PyTestLocation
from syrupy.types import SnapshotIndex

from kdelta.report.registry import formats
from kdelta.report.view import build
from unit.report.sweep_samples import SAMPLES

GOLDEN = Path(__file__).parents[2] / "golden" / "report"


class GoldenFile(SingleFileSnapshotExtension):
    """One readable file per snapshot, in tests/golden/report."""

    _write_mode = WriteMode.TEXT
    file_extension = "golden"

    @classmethod
    def get_snapshot_name(cls, *, test_location: PyTestLocation, index: SnapshotIndex = 0) -> str:
        """``exact-csv``: the sample and the format, which stand in brackets behind the test's name."""
        return test_location.snapshot_name.partition("[")[2].removesuffix("]")

    @classmethod
    def dirname(cls, *, test_location: PyTestLocation) -> str:
        return str(GOLDEN)

    @classmethod
    def matches_test_location(cls, *, test_location: PyTestLocation, snapshot_location: str) -> bool:
        return Path(snapshot_location).parent == GOLDEN


def test_there_is_a_golden_file_for_each_sample_and_format_and_no_other() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == {f"{sample}-{name}" for sample in SAMPLES for name in formats()}


@pytest.mark.parametrize("format_name", formats())
@pytest.mark.parametrize("sample", SAMPLES)
def test_a_report_looks_as_it_did(sample: str, format_name: str, snapshot: SnapshotAssertion) -> None:
    form = formats()[format_name]
    text = form.render(build(*SAMPLES[sample]()))
    assert isinstance(text, str)
    assert text.replace("\r\n", "\n") == snapshot.use_extension(GoldenFile)

# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta report --printed: what a program printed first, and that more may have come."""

from __future__ import annotations

import json
import zlib

import pytest

from kdelta.cli import report


class Stored:
    def __init__(self, *lines: str) -> None:
        self._lines = lines

    def stream(self, *_: object) -> bytes:
        found = []
        for number, line in enumerate(self._lines):
            text = f"{number} {json.dumps({'t': 'out', 'j': 0, 'text': line})}"
            found.append(f"kd1 {number} {zlib.crc32(text.encode()):08x} {text.partition(' ')[2]}\n".encode())
        return b"".join(found)


def test_output_that_may_be_cut_is_said_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    assert report._printed(Stored("one", "two"), "last", "0.0") == b"one\ntwo\n"
    assert capsys.readouterr().err == ""
    assert len(report._printed(Stored(*["123"] * 1023, "12"), "last", "0.0")) == 4095
    assert "the last line here may be cut" in capsys.readouterr().err

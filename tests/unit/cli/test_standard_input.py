# SPDX-License-Identifier: GPL-2.0-or-later
"""``kdelta compare A B -- wc -l <file`` counts a program that reads /dev/null: that is said."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdelta.cli import _program


@pytest.fixture
def ours() -> Iterator[None]:
    """Descriptor 0 is put back."""
    kept = os.dup(0)
    yield
    os.dup2(kept, 0)
    os.close(kept)


@pytest.mark.usefixtures("ours")
def test_a_file_on_standard_input_is_named_unless_it_is_read_to_its_end(tmp_path: Path) -> None:
    (file := tmp_path / "words").write_text("one\n")
    fd = os.open(file, os.O_RDONLY)
    os.dup2(fd, 0)
    assert _program._waiting() == f"standard input is {file} here"
    os.read(fd, 100)
    assert _program._waiting() == ""
    os.close(fd)


@pytest.mark.usefixtures("ours")
def test_a_pipe_is_told_where_something_is_in_it() -> None:
    out, into = os.pipe()
    os.dup2(out, 0)
    assert _program._waiting() == ""
    os.write(into, b"one\n")
    assert _program._waiting() == "standard input is a pipe here, with something in it"
    os.close(into)
    os.close(out)


@pytest.mark.usefixtures("ours")
def test_nothing_is_said_of_what_is_closed_or_a_device() -> None:
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    assert _program._waiting() == ""
    os.close(0)
    assert _program._waiting() == ""

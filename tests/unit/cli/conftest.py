# SPDX-License-Identifier: GPL-2.0-or-later
"""What the command line's tests share."""

import pytest

from kdelta.experiment import ahead


@pytest.fixture(autouse=True)
def nothing_compiled_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """In an empty cache each command would start a compiler that nobody waits for: 6 s of CPU beside the next tests."""
    monkeypatch.setattr(ahead, "begin_compiling", lambda: None)

# SPDX-License-Identifier: GPL-2.0-or-later
"""Manual pages made from the help: one for each command, which groff takes without a warning."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import man_pages

TOOL = Path(man_pages.__file__)


def test_what_roff_would_obey_is_shown(tmp_path: Path) -> None:
    assert man_pages.escaped(".so /etc/passwd\n-x \\n(aq") == "\\&.so /etc/passwd\n\\-x \\en(aq"
    assert man_pages.escaped("'s'") == "\\(aqs\\(aq"
    (text,) = man_pages.paragraphs("\b\nkdelta a\n  --b\n")
    assert text == ".PP\n.nf\nkdelta a\n  \\-\\-b\n.fi"


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff here: apt-get install groff-base")
def test_every_command_has_a_page(tmp_path: Path) -> None:
    subprocess.run([sys.executable, TOOL, tmp_path], check=True)
    made = {path.name for path in tmp_path.iterdir()}
    assert {"kdelta.1", "kdelta-compare.1", "kdelta-history.1", "kdelta-history-tag.1"} <= made
    argv = ["groff", "-ww", "-man", "-Tutf8", "-P-c", *map(str, sorted(tmp_path.iterdir()))]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert not done.stderr
    text = re.sub(r".\x08", "", done.stdout)  # grotty prints bold as a letter, a step back, and the letter
    for shown in ("kdelta-compare", "--max-blocks", "EXIT STATUS", "kdelta compare debian:6.12 debian:7.0"):
        assert shown in text

# SPDX-License-Identifier: GPL-2.0-or-later
"""The index of a work tree that is packed, so that git finds its files as unchanged there as they are here.

In a guest every file has another inode and time of change than the index says, and git would read them all in each run:
of a tree of 1,400 files 40 s of a comparison, and nothing that a user's ``git status`` does. So git there compares size
and time of modification alone, and the index is refreshed first, as the first ``git status`` after a clone does it.
Sources: git-config(1), core.checkStat; git-update-index(1), --refresh; git's Documentation/technical/racy-git.txt.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from kdelta.guest.image import Node

# GIT_CONFIG_COUNT: git 2.31. A run may not write the index, and so does not try.
ENVIRONMENT = {
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "core.checkStat",
    "GIT_CONFIG_VALUE_0": "minimal",
    "GIT_OPTIONAL_LOCKS": "0",
}
PLAIN = ("-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false")  # nothing is started or kept for later
LIMIT_S = 5


def refreshed(top: Path, folder: Path, nodes: Sequence[tuple[str, Node]]) -> tuple[tuple[str, Node], ...]:
    """``nodes`` with the index in ``folder`` (the ``.git`` of ``top``) as git would write it now, where git is here.

    It is packed without a time: one as old as the files would have git read them (racy-git). The user's stays as it is.
    """
    index, git = folder / "index", shutil.which("git")
    if git is None or not index.is_file():
        return tuple(nodes)
    with tempfile.TemporaryDirectory(prefix="kdelta-index-") as scratch:
        own = Path(scratch) / "index"
        try:
            shutil.copy2(index, own)  # as old as it is: git reads what is no older
            # By what git there goes by: a file whose time of change alone differs is not written as one to be read.
            argv = [git, *PLAIN, "-c", "core.checkStat=minimal", "update-index", "-q", "--refresh"]
            env = {**os.environ, "GIT_INDEX_FILE": str(own), "GIT_DIR": str(folder), "GIT_WORK_TREE": str(top)}
            subprocess.run(argv, cwd=top, env=env, capture_output=True, timeout=LIMIT_S, check=False)
            text = own.read_bytes()
        except (OSError, subprocess.TimeoutExpired):
            return tuple(nodes)  # git reads the files in each run
    mode = stat.S_IFREG | 0o644
    return tuple((path, replace(node, mode=mode, source=text) if path == str(index) else node) for path, node in nodes)

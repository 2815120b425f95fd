# SPDX-License-Identifier: GPL-2.0-or-later
"""A git tree with two releases of a kernel that has one file."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_READ = "ssize_t vfs_read(struct file *file)\n{\n\tif (!file)\n\t\treturn -EBADF;\n\treturn file->read(file);\n}\n"
_OLD = "static int access_ok_old(struct file *file)\n{\n\treturn file->mode;\n}\n\n"
_OTHER = "\nint vfs_write(struct file *file)\n{\n\treturn vfs_read(file);\n}\n"


def kernel_history(tree: Path) -> Path:
    """v6.1; a commit in vfs_read, one in vfs_write, one that removes access_ok_old; v6.12 and v6.12.3."""
    who = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@b"}
    env = {**os.environ, **who, "GIT_CONFIG_GLOBAL": "/dev/null"}

    def git(*words: str) -> None:
        subprocess.run(["git", "-C", str(tree), *words], check=True, capture_output=True, env=env)

    def commit(subject: str, text: str) -> None:
        (tree / "fs" / "read_write.c").write_text(text, encoding="utf-8")
        git("add", "-A")
        git("commit", "-q", "-m", subject)

    (tree / "fs").mkdir(parents=True)
    git("init", "-q")
    commit("Linux 6.1", _OLD + _READ + _OTHER)
    git("tag", "v6.1")
    twice = _READ.replace("if (!file)", "if (!file || !file->read)")
    commit("fs: check twice", _OLD + twice + _OTHER)
    other = _OTHER.replace("return vfs", "might_sleep();\n\treturn vfs")
    commit("fs: write may sleep", _OLD + twice + other)
    commit("fs: drop access_ok_old", twice + other)
    git("tag", "v6.12")
    git("tag", "v6.12.3")
    return tree

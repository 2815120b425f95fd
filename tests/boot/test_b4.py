# SPDX-License-Identifier: GPL-2.0-or-later
"""b4 prep --check with kdelta's line, by b4 itself: what it tells of each patch of a branch of a kernel tree."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdelta import paths
from kdelta.kernel import debian, origin

LINE = "kdelta review - --tree . --format b4 --quiet"  # docs/how-to/measure-a-patch.md
UNUSED = (  # by kdelta's config; their Kconfig and Makefiles stay
    "Documentation", "samples", "sound", "tools/testing", "arch/[!x]*", "drivers/gpu", "drivers/infiniband",
    "drivers/media", "drivers/net/ethernet", "drivers/net/wireless", "drivers/scsi", "drivers/staging", "drivers/usb",
)  # fmt: skip
COST = '\tasm volatile(".rept 40\\n\\tnop\\n\\t.endr");\n'
CHECK = "\tif (ucnt == ULLONG_MAX)\n"
PATCHES = {  # title -> file, what is there, what takes its place
    "eventfd: write with more care": ("fs/eventfd.c", CHECK, COST + CHECK),
    "eventfd: let the counter be full": ("fs/eventfd.c", "ctx->count > ucnt)\n", "ctx->count >= ucnt)\n"),
    "mqueue: begin something": (
        "ipc/mqueue.c",
        "\nstatic int mqueue_unlink(",
        "\nint x = missing;\nstatic int mqueue_unlink(",
    ),
}


def run(*argv: str | Path, cwd: Path, env: dict[str, str]) -> str:
    done = subprocess.run(argv, cwd=cwd, env=env, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A user with a home of their own, b4 and kdelta on their PATH, and this machine's cache of kernels."""
    program = tmp_path / "bin/kdelta"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nfrom kdelta.cli.main import main\nmain()\n")
    program.chmod(0o755)
    home = {"HOME": str(tmp_path), "KDELTA_STATE": str(tmp_path / "state"), "KDELTA_CACHE": str(paths.cache_dir())}
    who = {f"GIT_{role}_{what}": "a@b.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    (tmp_path / ".gitconfig").write_text("[user]\n\tname = A\n\temail = a@b.org\n")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("XDG_", "GIT_"))}
    places = [str(program.parent), str(Path(sys.executable).parent), kept["PATH"]]
    return {**kept, **home, **who, "PATH": os.pathsep.join(places), "EDITOR": "true"}


def repository(tree: Path, env: dict[str, str]) -> Path:
    """Debian's source in git, a third of its files."""
    tree.mkdir()
    less = [f"--exclude=*/{folder}/*.{ending}" for folder in UNUSED for ending in ("[chS]", "dts*", "rst", "yaml")]
    packed = debian.fetch_source("6.12")
    run("tar", "--wildcards", *less, "-xf", packed, "-C", tree, "--strip-components=1", cwd=tree, env=env)
    for words in (["init", "-q", "-b", "main"], ["add", "-f", "."], ["commit", "-qm", "base"]):
        run("git", *words, cwd=tree, env=env)
    return tree


@pytest.fixture
def tree(tmp_path: Path, env: dict[str, str]) -> Iterator[Path]:
    """What is built of it goes with it: the next test has another directory."""
    made = repository(tmp_path / "linux", env)
    yield made
    shutil.rmtree(paths.cache_dir() / "build" / origin.from_path(str(made), "main").key, ignore_errors=True)


@pytest.mark.full
def test_b4_tells_of_each_patch_what_kdelta_found(tree: Path, env: dict[str, str]) -> None:
    run("git", "config", "b4.prep-perpatch-check-cmd", LINE, cwd=tree, env=env)
    run("b4", "-n", "prep", "-n", "three", "-f", "main", cwd=tree, env=env)
    for title, (path, old, new) in PATCHES.items():
        text = (tree / path).read_text()
        assert text.count(old) == 1, title
        (tree / path).write_text(text.replace(old, new))
        run("git", "commit", "-qasm", title, cwd=tree, env=env)

    said = run("b4", "-n", "prep", "--check", "--no-cache", cwd=tree, env=env)

    parts = re.split(r"[0-9a-f]{12}: ", re.sub(r"\x1b\[[0-9;]*m", "", said))
    costly, same, broken = (part.splitlines() for part in parts[1:])
    assert costly[0] == "eventfd: write with more care"
    assert any(
        "kdelta: ERROR: syscalls/eventfd: instructions: +" in line and "eventfd_write +40" in line for line in costly
    )
    assert same[0] == "eventfd: let the counter be full"
    assert not any("kdelta:" in line for line in same), said
    assert broken[0] == "mqueue: begin something"
    assert "does not build" in broken[1] or "does not compile" in broken[1]
    assert "ipc/mqueue.c" in broken[1] and "missing" in broken[1]
    assert re.search(r"Success: 1, Warning: 0, Error: \d+", said), said

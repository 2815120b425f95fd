#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Record the path names that gcc and the linker look up, for the workload path_lookup.

Builds a small C program of several files under strace, takes the lookups in order, keeps 205 different path names of
which 118 do not exist, and writes them with the tree that makes them succeed or fail in the same way:

    tools/record_paths.py guest/data/path_lookup

paths.txt: ``hit|miss LINKS PATH``, LINKS being the symlinks that the lookup crosses. tree.txt: ``d PATH``, ``f PATH``,
``l PATH TARGET``, parents first. The project's directory is renamed to /home/dev/project, which has as many components.
"""

from __future__ import annotations

import argparse
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

LOOKUPS = 205
MISSES = 118
PROJECT = "/home/dev/project"
_NEVER = ("/proc", "/sys", "/dev")
_MAX_LINKS = 40

# pid, call, first path argument, the other arguments, result
_CALL = re.compile(r'^\d+ +(\w+)\((?:AT_FDCWD, )?"((?:[^"\\]|\\.)*)"(.*)\) += (-?\d+)(?: (\w+))?')
_CALLS = frozenset({"access", "faccessat", "faccessat2", "stat", "newfstatat", "statx", "open", "openat", "execve"})

SOURCES = {
    "main.c": """\
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "shape.h"
#include "text/words.h"
int main(int argc, char **argv)
{
	if (argc < 2) { errno = EINVAL; perror(argv[0]); return 1; }
	printf("%s %zu %.3f %ld\\n", argv[1], words(argv[1]), area(atof(argv[1])), (long)time(NULL));
	return 0;
}
""",
    "shape.c": """\
#include <math.h>
#include <float.h>
#include "shape.h"
double area(double r) { return r > DBL_EPSILON ? M_PI * pow(r, 2) : 0; }
""",
    "text/words.c": """\
#include <ctype.h>
#include <pthread.h>
#include <string.h>
#include "text/words.h"
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
size_t words(const char *s)
{
	size_t n = 0;
	pthread_mutex_lock(&lock);
	for (; *s; s++) n += isspace((unsigned char)*s) != 0;
	pthread_mutex_unlock(&lock);
	return n + 1;
}
""",
    "include/shape.h": "#pragma once\ndouble area(double r);\n",
    "include/text/words.h": "#pragma once\n#include <stddef.h>\nsize_t words(const char *s);\n",
}
FLAGS = ["-O2", "-D_GNU_SOURCE", "-Ilocal/include", "-Iinclude"]
COMMANDS = [
    *(["cc", *FLAGS, "-c", f"{name}.c", "-o", f"{name}.o"] for name in ("main", "shape", "text/words")),
    ["cc", "-Llocal/lib", "main.o", "shape.o", "text/words.o", "-lm", "-lpthread", "-o", "program"],
]


def parse(lines: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """(path, found) of each lookup that follows symlinks to its end and ended well or with ENOENT, in order."""
    for line in lines:
        match = _CALL.match(line)
        if not match or match[1] not in _CALLS or "NOFOLLOW" in match[3] or "\\" in match[2] or not match[2]:
            continue
        if int(match[4]) >= 0 or match[5] == "ENOENT":
            yield match[2], int(match[4]) >= 0


def record(project: Path) -> list[tuple[str, bool]]:
    """Build the program in ``project`` under strace; its lookups in order."""
    for name, text in SOURCES.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    lookups: list[tuple[str, bool]] = []
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
    for number, command in enumerate(COMMANDS):
        trace = project.parent / f"trace.{number}"
        strace = ["strace", "-f", "-e", "trace=%file", "-s", "4096", "-o", str(trace)]
        subprocess.run([*strace, *command], cwd=project, env=env, check=True)
        lookups += parse(trace.read_text(errors="replace").splitlines())
    return lookups


def distinct(lookups: Iterable[tuple[str, bool]]) -> dict[str, bool]:
    """Each path once, where it was first looked up; without those that came or went while recording."""
    found: dict[str, bool] = {}
    unstable = set()
    for path, hit in lookups:
        if found.setdefault(path, hit) != hit:
            unstable.add(path)
    return {p: hit for p, hit in found.items() if p not in unstable and not p.startswith(_NEVER)}


def select(found: Mapping[str, bool]) -> dict[str, bool]:
    """LOOKUPS paths with MISSES misses, spread evenly over the recording, in its order."""
    keep: set[str] = set()
    for wanted, hit in ((MISSES, False), (LOOKUPS - MISSES, True)):
        paths = [p for p, h in found.items() if h == hit]
        if len(paths) < wanted:
            sys.exit(f"record_paths: {len(paths)} paths with found={hit} were recorded, {wanted} are needed")
        keep.update(paths[i * len(paths) // wanted] for i in range(wanted))
    return {p: hit for p, hit in found.items() if p in keep}


class Tree:
    """The entries that lookups meet on the machine where they were recorded."""

    def __init__(self, cwd: str) -> None:
        self.cwd = cwd
        self.entries: dict[str, str] = {}  # path -> "d", "f" or "l TARGET"; parents come first

    def walk(self, path: str, hit: bool) -> int:
        """Resolve ``path`` like the kernel, noting every entry on the way; the number of symlinks crossed."""
        todo = path.split("/")[::-1]
        at = "/" if path.startswith("/") else self._enter(self.cwd)
        links = 0
        while todo:
            name = todo.pop()
            if name in ("", "."):
                continue
            if name == "..":
                at = posixpath.dirname(at)
                continue
            here = posixpath.join(at, name)
            if os.path.islink(here):
                target = os.readlink(here)
                self.entries.setdefault(here, f"l {target}")
                todo += target.split("/")[::-1]
                at = "/" if target.startswith("/") else at
                links += 1
                if links > _MAX_LINKS:
                    sys.exit(f"record_paths: too many symlinks in {path}")
                continue
            directory = os.path.isdir(here)
            if not directory and not os.path.exists(here) and not (hit and not any(todo)):
                break  # the miss
            self.entries.setdefault(here, "d" if directory else "f")
            at = here
        return links

    def _enter(self, path: str) -> str:
        self.walk(path, True)
        return path


def write(folder: Path, selected: Mapping[str, bool], cwd: str) -> None:
    """paths.txt and tree.txt, with ``cwd`` renamed to PROJECT."""
    tree = Tree(cwd)

    def renamed(text: str) -> str:
        return PROJECT + text[len(cwd) :] if text == cwd or text.startswith(cwd + "/") else text

    paths = [f"{'hit' if hit else 'miss'} {tree.walk(path, hit)} {renamed(path)}" for path, hit in selected.items()]
    entries = {"/home": "d", "/home/dev": "d"}
    entries |= {renamed(p): e for p, e in tree.entries.items() if p != posixpath.dirname(cwd)}
    lines = [f"{e[0]} {p}{e[1:]}" for p, e in entries.items()]
    (folder / "paths.txt").write_text("\n".join(paths) + "\n")
    (folder / "tree.txt").write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where paths.txt and tree.txt go")
    folder = parser.parse_args().folder
    for tool in ("strace", "cc"):
        if not shutil.which(tool):
            sys.exit(f"record_paths: {tool} is needed: install it")
    with tempfile.TemporaryDirectory(prefix="record-") as scratch:
        project = Path(scratch) / "project"
        project.mkdir()
        write(folder, select(distinct(record(project))), str(project))


if __name__ == "__main__":
    main()

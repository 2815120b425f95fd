# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel's own tests (tools/testing/selftests), built statically from the source that a kernel was built from.

As Documentation/dev-tools/kselftest.rst says, with the headers of that very source; the results lie in the cache, and
are shared by all patches that change neither tests nor headers.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from kdelta import distributions
from kdelta.errors import HostError, UserError
from kdelta.kernel import build, cache, products, toolchain
from kdelta.kernel.build import Builder, BuildError
from kdelta.kernel.origin import Origin
from kdelta.kernel.patched import Files, patched
from kdelta.kernel.toolchain import Toolchain
from kdelta.kernel.wanted import source_of
from kdelta.kernel.worktree import Worktree
from kdelta.model import Arch, Progress, Quiet
from kdelta.paths import cache_dir
from kdelta.spec.kernels import KernelSpec

FOLDER = "tools/testing/selftests"
FORMAT = 1  # of what is remembered
_NAME = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_-]*(/[A-Za-z0-9_][A-Za-z0-9_-]*)*$")
# What of a source its tests are made from.
_SWAYS = re.compile(r"^(tools|include|scripts)/|^arch/[^/]+/include/|(^|/)Makefile$")
_DATA_BYTES = 1 << 20
# Debian packages of what suites need beside libc, by a word of the compiler's complaint.
_PACKAGES = {"sys/capability.h": "libcap-dev", "-lcap": "libcap-dev", "numa": "libnuma-dev", "libmnl": "libmnl-dev",
             "-lmnl": "libmnl-dev", "liburing": "liburing-dev", "popt": "libpopt-dev", "ssl": "libssl-dev"}  # fmt: skip
_MARKS = {"program": "TEST_GEN_PROGS TEST_CUSTOM_PROGS", "file": "TEST_GEN_PROGS_EXTENDED TEST_GEN_FILES",
          "script": "TEST_PROGS", "data": "TEST_FILES"}  # fmt: skip


class Suite(Struct, frozen=True, kw_only=True):
    """A suite, built. ``programs`` are tests, ``files`` what stands beside them; values are paths on this machine."""

    name: str
    programs: dict[str, str]
    files: dict[str, str] = {}
    notes: tuple[str, ...] = ()  # what is not run, and why


def check_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names of suites, each once.

    Raises:
        UserError: no name of a suite.
    """
    for name in names:
        if not _NAME.match(name):
            raise UserError(f"selftests {name!r}: a suite is a directory of {FOLDER}, such as pidfd")
    if not names:
        raise UserError("selftests: name a suite or several, as in pidfd,clone3,proc")
    return tuple(dict.fromkeys(names))


def _key(origin: Origin, files: Files, tools: Toolchain, name: str) -> str:
    swaying = [(path, file.text) for path, file in sorted(files.items()) if _SWAYS.search(path)]
    facts = json.dumps([FORMAT, origin.base, swaying, tools.id, tools.arch, name])
    return hashlib.sha256(facts.encode("utf-8", "surrogateescape")).hexdigest()[:24]


def _recall(folder: Path) -> Suite | None:
    try:
        suite = msgspec.json.decode((folder / "suite.json").read_bytes(), type=Suite)
    except (OSError, msgspec.MsgspecError):
        return None
    whole = all(Path(path).is_file() for path in (*suite.programs.values(), *suite.files.values()))
    return suite if whole else None


class _Workshop(Struct, frozen=True, kw_only=True):
    """A locked tree with the patches laid over it, and where things go."""

    tree: Worktree
    tools: Toolchain
    headers: Path
    log: Path  # in the folder that everything built goes to

    def make(self, folder: Path, words: list[str]) -> list[str]:
        """Run make in ``folder`` of the source; returns its lines."""
        obj = self.tree.home / f"headers-{self.tools.arch}"
        obj.mkdir(parents=True, exist_ok=True)
        lines: list[str] = []
        Builder(
            folder,
            obj,
            self.tools,
            cache=cache_dir(),
            jobs=build.default_jobs(),
            readable=(self.tree.src,),
            writable=(self.log.parent,),
        ).make(words, self.log, lines.append)
        return lines


def _mark(kind: str, variables: str) -> str:
    return " ".join(f"$(addprefix kdelta:{kind}:,$({variable}))" for variable in variables.split())


def _listed(shop: _Workshop, folder: Path, words: list[str]) -> dict[str, list[str]]:
    """What the suite's Makefile says that it consists of, by kind."""
    shown = " ".join(_mark(kind, variables) for kind, variables in _MARKS.items())
    lines = shop.make(folder, [f"--eval=kdelta-list: ; @printf '%s\\n' {shown} kdelta:end:", "kdelta-list", *words])
    found: dict[str, list[str]] = {kind: [] for kind in _MARKS}
    for line in lines:
        start, _, rest = line.strip().partition(":")
        kind, _, name = rest.partition(":")
        if start == "kdelta" and kind in found and name:
            found[kind].append(name)
    return found


def _remedy(complaint: str) -> str:
    package = next((package for word, package in _PACKAGES.items() if word in complaint), "")
    return f" ({distributions.install(package)})" if package else ""


def _make(shop: _Workshop, name: str, out: Path, jobs: int) -> Suite:
    """Build one suite into ``out``; tests that do not build are left out and named."""
    folder = shop.tree.src / FOLDER / name
    if not (folder / "Makefile").is_file():
        raise UserError(f"selftests {name!r}: this source has no {FOLDER}/{name}")
    words = [f"OUTPUT={out}", f"KHDR_INCLUDES=-isystem {shop.headers}/include", "LDFLAGS=-static -pthread"]
    failed = ""
    try:
        shop.make(folder, ["-k", f"-j{jobs}", *words, "all"])
    except BuildError as error:
        failed = error.line + _remedy(error.line)
    listed = _listed(shop, folder, words)
    programs = {Path(path).name: str(out / Path(path).name) for path in listed["program"]}
    files = {Path(path).name: str(out / Path(path).name) for path in listed["file"]}
    for path in listed["data"]:
        at = folder / path
        if at.is_file() and not at.is_symlink() and at.stat().st_size <= _DATA_BYTES:
            cache.write_atomically(out / Path(path).name, at.read_bytes())
            files[Path(path).name] = str(out / Path(path).name)
    missing = [test for test, path in programs.items() if not Path(path).is_file()]
    if failed and len(missing) == len(programs):
        raise HostError(f"selftests {name}: none builds: {failed}; log: {shop.log}")
    notes = [f"{name}:{test} does not build here: {failed}" for test in missing]
    if listed["script"]:
        notes.append(f"{name}: {len(listed['script'])} shell scripts are not run: the guest has no shell")
    return Suite(
        name=name,
        programs={test: path for test, path in programs.items() if test not in missing},
        files={file: path for file, path in files.items() if Path(path).is_file()},
        notes=tuple(notes),
    )


def _locked_build(
    tree: Worktree, origin: Origin, files: Files, arch: Arch, names: Sequence[str], said: Progress
) -> tuple[Suite, ...]:
    tools = toolchain.probe(arch)
    suites: list[Suite] = []
    shop = None
    for name in names:
        out = products.root() / "selftests" / _key(origin, files, tools, name)
        suite = _recall(out)
        if suite is None:
            out.mkdir(parents=True, exist_ok=True)
            if shop is None:
                shop = _opened(tree, files, tools, out / "build.log", said)
            said.step(f"building selftests {name}")
            log = out / "build.log"
            suite = _make(msgspec.structs.replace(shop, log=log), name, out, build.default_jobs())
            cache.write_atomically(out / "suite.json", msgspec.json.encode(suite))
        suites.append(suite)
    return tuple(suites)


def _opened(tree: Worktree, files: Files, tools: Toolchain, log: Path, said: Progress) -> _Workshop:
    """Lay the patches and install the headers of this very source."""
    tree.lay(files)
    shop = _Workshop(tree=tree, tools=tools, headers=tree.home / f"headers-{tools.arch}" / "usr", log=log)
    said.step("installing the kernel's headers for its selftests")
    shop.make(tree.src, ["headers"])
    return shop


def build_suites(spec: KernelSpec, names: Sequence[str], progress: Progress | None = None) -> tuple[Suite, ...]:
    """The suites ``names`` of the source that ``spec`` (kind ``src`` or ``src-debian``) names, built or found built.

    Raises:
        UserError: no source, or one without such a suite.
        HostError: a suite of which nothing builds; the compiler's line and the log are named.
    """
    said = progress or Quiet()
    wanted = check_names(names)
    if spec.kind not in ("src", "src-debian"):
        raise UserError(f"kernel {spec.text!r}: its selftests are in its source; write src:TREE or src:debian:VERSION")
    origin, steps = source_of(spec, said)
    tree = Worktree(products.root() / origin.key)
    with tree.locked(said):
        return _locked_build(tree, origin, patched(tree, origin, steps, said).files, spec.arch, wanted, said)

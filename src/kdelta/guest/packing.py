# SPDX-License-Identifier: GPL-2.0-or-later
"""A program with its files, packed for guests: an archive that the initramfs ends with, and what to run (``spec``).

Both are kept in the cache under their digest, which is all that the case knows of them. Files keep their places: a
symbolic link is packed as one, with what it points to. The guest's side is guest/workloads/program.c.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path

from msgspec import Struct

from kdelta import paths
from kdelta.errors import HostError, UserError
from kdelta.guest import closure, environment, follow, git_index, here, packed_before, shell
from kdelta.guest.here import Here, work_tree
from kdelta.guest.image import Node, archive
from kdelta.guest.rootfs import Tree
from kdelta.model import Case
from kdelta.spec.program import PACK, Program, refused, words

MOST_BYTES = 256 << 20
ROOT = "program"  # in the guest
SPEC = "program"  # the directory of the data files that say what to run
_ALWAYS = ("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts", "/etc/ld.so.cache")
_SHELL = "/bin/sh"  # what system(3) and popen(3) start, and with them much that names no shell
_PYTHON = re.compile(r"^python3\.\d+$")
# Of a standard library: what is installed beside it, needs a display, tests it, or is there to build and embed Python.
_PYTHON_OUT = (
    r"test|tests|_test.*|_xxtest.*|idlelib|tkinter|turtledemo|ensurepip|lib2to3|dist-packages|site-packages"
    r"|config-.+|.+\.a|.+\.exe"
)
_PYTHON_PLAIN_OUT = _PYTHON_OUT + r"|.+\.opt-[12]\.pyc"  # and what only python -O reads
_PYTHON_O = re.compile(r"-[A-Za-z]*O.*|PYTHONOPTIMIZE=.+")

_MODULES_OUT = re.compile(r"_tkinter|_test.*|_xxtest.*")  # the first is of no use without X, whose libraries are many


class _Lookup(Struct, frozen=True):
    """How the files of a program are looked for: without the ``out`` of a Python, in the ``libraries`` it is given.

    ``packages``: with those of a virtual environment; else it is followed, and what it opens is known.
    """

    out: str
    libraries: tuple[str, ...]
    packages: bool = True


class Pack(Struct, frozen=True):
    """A packed program: ``spec`` is its description, ``tree`` the archive (None natively)."""

    spec: Path
    tree: Path | None


def _python_out(program: Program) -> str:
    """What a run of ``program`` does not need of a Python's standard library: an expression for names."""
    return _PYTHON_OUT if any(map(_PYTHON_O.fullmatch, (*program.argv, *program.env))) else _PYTHON_PLAIN_OUT


def _python(tree: Tree, program: Path, lookup: _Lookup) -> None:
    """The standard library of a Python, and the packages of its virtual environment."""
    real = program.resolve()
    if not _PYTHON.match(real.name):
        return
    library = real.parents[1] / "lib" / real.name
    if library.is_dir():
        tree.add_all(library, lookup.out)
        for path in _extensions_need(library):
            tree.add(path)
    home = program.parent.parent
    if (home / "pyvenv.cfg").is_file():
        tree.add(home / "pyvenv.cfg")
        if lookup.packages:
            tree.add_all(home / "lib" / real.name / "site-packages")


@cache
def _extensions_need(library: Path) -> tuple[Path, ...]:
    """The shared libraries of a standard library's own modules (libz, libssl); a module that lacks one is no less."""
    found: dict[Path, None] = {}
    for module in sorted((library / "lib-dynload").glob("*.so")):
        if _MODULES_OUT.fullmatch(module.name.split(".")[0]):
            continue
        try:
            found |= dict.fromkeys(closure.needed(module))
        except UserError:
            continue
    return tuple(found)


def _lookup(program: Program, cwd: Path) -> _Lookup:
    """Of the environment that it will have (--env), or that env(1) gives to what it starts."""
    given = (text.partition("=")[2] for text in (*program.argv, *program.env) if text.startswith("LD_LIBRARY_PATH="))
    folders = (str(cwd / program.cwd / folder) for text in given for folder in text.split(":") if folder)
    return _Lookup(_python_out(program), tuple(folders), packages=not program.follow)


def _program(tree: Tree, name: str, cwd: Path, lookup: _Lookup) -> Path:
    program = closure.on_path(name, cwd)
    for path in closure.needed(program, lookup.libraries):
        tree.add(path)
        _python(tree, path, lookup)
    return program


def _guessed(tree: Tree, path: str, cwd: Path, lookup: _Lookup) -> None:
    """As ``_program``, of one that perhaps nobody starts: where it could not run here, it is left out."""
    apart = Tree()
    try:
        _program(apart, path, cwd, lookup)
    except UserError:
        return
    tree.nodes = apart.nodes | tree.nodes


def _given(tree: Tree, program: Program, cwd: Path, lookup: _Lookup) -> None:
    """What the user named: --file, --tree, files among the program's words and standard input."""
    for text in program.files:
        name, colon, place = (text, "", "") if (cwd / text).exists() else text.partition(":")
        source = cwd / name
        if not source.exists():
            raise UserError(f"--file {text}: {source} is not there")
        if colon and (not place.startswith("/") or not source.is_file()):
            raise UserError(f"--file {text}: PATH:DEST takes a file and the absolute path that it has in the guest")
        here.refuse_mounted("--file", text, Path(place) if colon else source)
        if colon:
            tree.put_at(source, place)
        else:
            (tree.add_all if source.is_dir() else tree.add)(source)
    for path in (*environment.files(program), *environment.preloaded(program, cwd, lookup.libraries)):
        (tree.add_all if path.is_dir() else tree.add)(path)
    for text in program.trees:
        if not (cwd / text).is_dir():
            raise UserError(f"--tree {text}: there is no such directory")
        here.refuse_mounted("--tree", text, cwd / text)
        tree.add_all(Path(os.path.abspath(cwd / text)))
    words = (*program.argv[1:], *shell.typed(program.argv), *program.env)
    bases = closure.bases(cwd, program.cwd)
    named = [base / text for word in words for text in here.parts(word) for base in bases]
    for path in (path for path in named if os.path.isfile(path)):  # not Path's own: it may be too long for a name
        tree.add(path)
        if os.access(path, os.X_OK):  # strace ./program; but sha256sum ./program-of-another-machine too
            _guessed(tree, os.path.abspath(path), cwd, lookup)


def _spec(
    program: Program, commands: Mapping[str, list[str]], env: Mapping[str, str], more: Mapping[str, str]
) -> bytes:
    """As guest/workloads/program.c reads it."""
    rows = [(key, word) for key, argv in commands.items() for word in argv]
    rows += [("env", f"{name}={value}") for name, value in env.items()]
    rows += [(key, value) for key, value in more.items() if value]
    rows.append(("expect", str(program.expect_status)))
    if program.batch:
        rows.append(("batch", "1"))
    if program.cold:
        rows.append(("cold", "1"))
    return b"".join(f"{key}={value}".encode("utf-8", "surrogateescape") + b"\0" for key, value in rows)


def _commands(tree: Tree, program: Program, cwd: Path, lookup: _Lookup) -> dict[str, list[str]]:
    """The program and the untimed commands, each by a path; their files go into the tree."""
    found = {"arg": list(program.argv)}
    for key, text in (("setup", program.setup), ("between", program.between)):
        if text:
            found[key] = words(text, f"--{key}")
    for argv in found.values():
        if not argv:
            raise UserError("program: --setup and --between take a command")
        typed, argv[0] = argv[0], str(_program(tree, argv[0], closure.base_of(argv[0], cwd, program.cwd), lookup))
        for base in closure.bases(cwd, program.cwd):
            for path in shell.programs(argv, base, environment.SEARCHED):
                _guessed(tree, path, base, lookup)
        argv[0] = argv[0] if program.cwd else closure.as_typed(typed, argv[0], cwd)
    return found


def _kept(spec: bytes, tree: bytes | None) -> str:
    """Put both into the cache, a tree that several programs have once; their digest."""
    content = hashlib.sha256(tree or b"")
    digest = hashlib.sha256(spec + b"\0" + content.digest()).hexdigest()[:32]
    folder = _folder(digest)
    try:
        if (folder / "spec").is_file():
            return digest
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as work:
            if tree is not None:
                (Path(work) / "tree").symlink_to(_shared(tree, content.hexdigest()[:32], Path(work)))
            (Path(work) / "spec").write_bytes(spec)
            folder.mkdir(exist_ok=True)
            for name in ("tree", "spec") if tree is not None else ("spec",):  # with the spec the pack is whole
                os.replace(Path(work) / name, folder / name)
    except OSError as error:
        raise HostError(f"program: {folder}: {error.strerror}; free space or set KDELTA_CACHE") from None
    return digest


def _shared(tree: bytes, digest: str, work: Path) -> Path:
    """Where the cache has ``tree``, from the directory of a program's pack."""
    place = paths.cache_dir() / "programs" / "trees" / digest
    if not place.is_file():
        place.parent.mkdir(exist_ok=True)
        (work / digest).write_bytes(tree)
        os.replace(work / digest, place)
    return Path("..") / "trees" / digest


def _folder(digest: str) -> Path:
    return paths.cache_dir() / "programs" / digest


def _followed(tree: Tree, program: Program, argv: list[str], cwd: Path, stdin: Path | None) -> None:
    for path in follow.files_of(argv, cwd, environment.of(program, tempfile.gettempdir(), cwd / argv[0]), stdin):
        if path.is_file() or path.is_dir():
            tree.add(path)


def _writable(program: Program, place: Path, around: Here | None) -> Path | None:
    """The directory that each run has a copy of.

    Raises:
        UserError: it is the root.
    """
    if program.writable and place == Path("/"):
        raise UserError("--writable: the program runs in /, which cannot be copied; start it in a directory of its own")
    if not program.writable:
        return None
    return around.root if around and around.said else place


def _for_guests(
    programs: Sequence[Program],
    cwd: Path,
    place: Path,
    stdin: Path | None,
    around: Here | None = None,
    named: Sequence[Here] = (),
) -> tuple[list[str], list[Path]]:
    """All ``programs``, which differ in their words alone, with the files of the first, and what these are here."""
    program, tree = programs[0], Tree(4 * MOST_BYTES)
    lookup = _lookup(program, cwd)
    commands = _commands(tree, program, cwd, lookup)
    for argv in commands.values():
        closure.refuse_unstartable(cwd / argv[0])
    _guessed(tree, _SHELL, cwd, lookup)
    _given(tree, program, cwd, lookup)
    if program.follow:
        _followed(tree, program, commands["arg"], place, stdin)
    for path in (*map(Path, _ALWAYS), *([stdin] if stdin else [])):
        if path.is_file():
            tree.add(path)
    tree.folder(place)
    for one in (*([around] if around else []), *named):
        for path in (one.root, *one.outside):
            tree.add(path)
        tree.take(one.nodes)
    writable = _writable(program, place, around)
    scratch = tree.scratch(writable)
    for name in (*here.MOUNTED, scratch):
        tree.folder(Path("/") / name)
    if (size := tree.size()) > MOST_BYTES:
        remedy = "" if program.follow else "; --follow packs what it opens here"
        raise UserError(
            f"program: its files are {'more than ' * tree.cut}{size >> 20} MiB, and a guest takes "
            f"{MOST_BYTES >> 20}: {tree.largest()}{remedy}"
        )
    more = {"root": f"/{ROOT}", "scratch": f"/{scratch}", "cwd": str(place), "stdin": str(stdin or "")}
    more["writable"] = str(writable or "")
    env = environment.of(program, f"/{scratch}", cwd / commands["arg"][0])
    if any(os.path.lexists(work_tree(one) / ".git") for one in (place, *(one.root for one in named))):
        env = {**git_index.ENVIRONMENT, **env}
    argvs = [[commands["arg"][0], *each.argv[1:]] for each in programs]
    try:
        packed = archive(_rooted(tree.nodes))
        made = [_kept(_spec(program, commands | {"arg": argv}, env, more), packed) for argv in argvs]
    except OSError as error:
        raise UserError(f"program: {error.filename} cannot be read: {error.strerror}") from None
    return made, [Path("/") / name for name in tree.nodes if os.path.lexists(f"/{name}")]


def _is_made(place: Path, program: Program) -> bool:
    """Whether --file PATH:DEST puts something into the directory ``place`` of the guest, which this machine lacks."""
    made = (Path(text.partition(":")[2]) for text in program.files)
    return not place.exists() and any(one.is_relative_to(place) for one in made)


def _for_here(program: Program, cwd: Path, place: Path, stdin: Path | None) -> str:
    here.refuse_natively(program)
    more = {"cwd": str(place), "stdin": str(stdin or "")}
    commands = _commands(Tree(), program, cwd, _lookup(program, cwd))
    env = environment.of(program, tempfile.gettempdir(), cwd / commands["arg"][0])
    return _kept(_spec(program, commands, env, more), None)


@lru_cache(maxsize=8)
def pack(
    program: Program, cwd: Path, native: bool = False, around: Here | None = None, named: tuple[Here, ...] = ()
) -> Case:
    """Find and pack the program and its files; natively only what to run is kept.

    Args:
        around: what it finds where it is started, which is packed too.
        named: the directories that its words name.
        cwd: the absolute directory that relative paths begin at, and where the program runs.

    Raises:
        UserError: something is not on this machine, or the files are too large.
        HostError: no strace for --follow, or the cache cannot be written.
    """
    if why := refused(program):
        raise UserError(f"program: {why}")
    stdin = cwd / program.stdin if program.stdin else None
    if stdin is not None and (why := closure.no_input(stdin)):
        raise UserError(f"--stdin {program.stdin}: {why}")
    place = Path(os.path.abspath(cwd / program.cwd))
    if not (place.is_dir() or (not native and _is_made(place, program))):
        raise UserError(f"--cwd {program.cwd}: there is no such directory")
    if native:
        return program.case(_for_here(program, cwd, place, stdin))
    found = [one.said for one in (*([around] if around else []), *named) if one.said]
    return program.case(_for_guests((program,), cwd, place, stdin, around, named)[0][0], "; ".join(found))


@lru_cache(maxsize=8)
def pack_alike(programs: tuple[Program, ...], native: bool = False) -> tuple[str, ...]:
    """Pack programs that differ in their words alone, with one set of files for all; their digests.

    Raises:
        UserError: as ``pack``.
    """
    root, place = Path("/"), Path(programs[0].cwd)
    if native:
        return tuple(_for_here(program, root, place, None) for program in programs)
    known = packed_before.recall(programs)
    if known is not None and all((_folder(digest) / "spec").is_file() for digest in known):
        return known
    made, files = _for_guests(programs, root, place, None)
    packed_before.remember(programs, made, files)
    return tuple(made)


def known(digest: str) -> Pack | None:
    """The pack of this digest, where the cache has it."""
    folder = _folder(digest)
    if not (folder / "spec").is_file():
        return None
    return Pack(folder / "spec", folder / "tree" if (folder / "tree").is_file() else None)


def take(digest: str, spec: bytes, tree: bytes | None) -> None:
    """Keep a pack that another machine made.

    Raises:
        HostError: it is not the one of this digest, or the cache cannot be written.
    """
    if (kept := _kept(spec, tree)) != digest:
        raise HostError(f"program: the files that were sent are those of {kept[:12]}, not of {digest[:12]}")


def _rooted(nodes: Mapping[str, Node]) -> Iterable[tuple[str, Node]]:
    yield ROOT, Node(stat.S_IFDIR | 0o755)
    for name, node in sorted(nodes.items()):
        yield f"{ROOT}/{name}", node


def of_cases(cases: Iterable[Case]) -> tuple[dict[str, Path], tuple[Path, ...]]:
    """The descriptions of the programs ``cases``, by their name as data files, and their archives, each once.

    Raises:
        UserError: as ``of_case``.
    """
    packs = {case.params.get(PACK, ""): of_case(case) for case in cases}
    trees = dict.fromkeys(pack.tree.resolve() for pack in packs.values() if pack.tree is not None)
    return {f"{SPEC}/{digest}": pack.spec for digest, pack in packs.items()}, tuple(trees)


def of_case(case: Case) -> Pack:
    """The pack of a program's case.

    Raises:
        UserError: the case names none, or the cache has it no more.
    """
    digest = case.params.get(PACK, "")
    if not digest:
        raise UserError("case program: it is run as kdelta compare A B -- PROGRAM ARGS...")
    found = known(digest)
    if found is None:
        raise UserError(f"case {case.name}: its packed files are no longer in {_folder(digest)}; run the command again")
    return found

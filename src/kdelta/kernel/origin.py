# SPDX-License-Identifier: GPL-2.0-or-later
"""Where kernel source comes from: a git repository, an unpacked directory, or a tarball; each fills a work tree.

git is run with an index of our own and without hooks: the user's repository, index and files are only read.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from kdelta import digests, distributions, vouched
from kdelta.errors import HostError, UserError
from kdelta.kernel.patch import File
from kdelta.kernel.worktree import Worktree, decode, encode, require_space, version_of
from kdelta.model.progress import Progress
from kdelta.paths import expanded
from kdelta.spec.kernels import released

TREE_BYTES = 3 << 30
SWAYS_CONFIG = re.compile(r"(^|/)(Kconfig[^/]*|Makefile[^/]*)$|^scripts/|/configs/")  # paths of what Kconfig reads
_SWAYING = "swaying"  # in a work tree's folder: its base, and the digest of what of it sways a .config
_UNTRACKED_BYTES = 16 << 20
_BUILT_FOLDERS = frozenset({"include/config", "include/generated", ".git", "debian/build"})
_BUILT_SUFFIXES = (".o", ".a", ".ko", ".cmd", ".o.d", ".mod", ".order")
_BUILT_FILES = frozenset({".config", ".config.old", "vmlinux", "System.map", "Module.symvers", "vmlinux.o"})
_GIT_OPTIONS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.autocrlf=false",
    "core.sparseCheckout=false",
    "core.splitIndex=false",
    "core.untrackedCache=false",
)


class _Source(Struct, frozen=True, kw_only=True):
    """``key`` names the work tree, ``base`` what fills it, ``id`` the whole content: the base and ``files`` over it."""

    key: str
    base: str
    id: str
    title: str
    version: tuple[int, int]
    files: dict[str, File] = {}  # uncommitted changes
    notes: tuple[str, ...] = ()

    def config_base(self, tree: Worktree) -> str:
        """Identifies all in the base, as it fills ``tree``, that can sway a .config: of most sources the whole base."""
        return self.base


class Tarball(_Source, frozen=True, kw_only=True):
    """A packed source tree (Debian's linux-source)."""

    path: str

    def fill(self, tree: Worktree, progress: Progress) -> None:
        """Make the base of ``tree`` this source's; unchanged files keep their times where they can."""
        require_space(tree.home, TREE_BYTES)
        progress.step(f"unpacking {Path(self.path).name}")
        with tree.changing_base(self.base):
            shutil.rmtree(tree.src, ignore_errors=True)
            tree.src.mkdir(parents=True)
            argv = ["tar", "--extract", f"--file={self.path}", f"--directory={tree.src}", "--strip-components=1"]
            run([*argv, "--no-same-owner", "--no-same-permissions"], f"unpacking {self.path}")


def tarball(path: Path, key: str, title: str, version: tuple[int, int]) -> Tarball:
    """The origin for a source tarball of a kernel ``version`` (major, minor)."""
    digest = _sum_of(path)
    return Tarball(path=str(path), key=key, base=f"tar:{digest}", id=f"tar:{digest}", title=title, version=version)


def _sum_of(path: Path) -> str:
    """The sha256 of a file that takes a tenth of a second to read, as it was read before where it is unchanged."""
    book, said = path.with_name(f".{path.name}.seen"), vouched.stamp((path,))
    known = vouched.recall(book, said)
    if not re.fullmatch(r"[0-9a-f]{64}", known):
        known = digests.of_file(path)
        vouched.vouch(book, said and said + known)
    return known


def run(argv: list[str], doing: str, env: dict[str, str] | None = None) -> bytes:
    """Run a program to its end and return its output.

    Raises:
        HostError: it is missing or fails; its last words are in the message.
        UserError: git finds a tree of another user, as containers mount one, and reads nothing there.
    """
    try:
        done = subprocess.run(argv, check=False, capture_output=True, stdin=subprocess.DEVNULL, env=env)
    except FileNotFoundError:
        raise HostError(f"{doing}: {argv[0]} is missing; {distributions.install(argv[0])}") from None
    if done.returncode:
        words = decode(done.stderr).strip().splitlines() or [f"exit code {done.returncode}"]
        if argv[0] == "git" and (trust := re.search(r"git config --global --add safe\.directory .*", words[-1])):
            raise UserError(f"{doing}: the tree belongs to another user; git reads it once you say: {trust[0]}")
        raise HostError(f"{doing}: {argv[0]} failed: {words[-1]}")
    return done.stdout


class Git(_Source, frozen=True, kw_only=True):
    """A commit's tree of a repository, with the work tree's uncommitted changes where no ref was named."""

    git_dir: str
    tree_id: str

    def fill(self, tree: Worktree, progress: Progress) -> None:
        """Make the base of ``tree`` this source's; unchanged files keep their times where they can."""
        first = not tree.src.exists()
        if first:
            require_space(tree.home, TREE_BYTES)
        progress.step(f"checking out {self.title}")
        with tree.changing_base(self.base):
            tree.src.mkdir(parents=True, exist_ok=True)
            env = git_environment(GIT_INDEX_FILE=str(tree.home / "index"))
            base = [*_git(), f"--git-dir={self.git_dir}", f"--work-tree={tree.src}"]
            if not first:
                # times of files that were patched and restored: not a change
                subprocess.run([*base, "update-index", "-q", "--refresh"], check=False, capture_output=True, env=env)
            run([*base, "read-tree", "--reset", "-u", self.tree_id], f"checking out {self.title}", env)
            (tree.home / _SWAYING).write_text(f"{self.base} {self._swaying()}")

    def _swaying(self) -> str:
        argv = [*_git(), f"--git-dir={self.git_dir}", "ls-tree", "-r", "-z", "--full-tree", self.tree_id]
        listed = decode(run(argv, f"listing {self.title}", git_environment())).split("\0")
        swaying = [line for line in listed if SWAYS_CONFIG.search(line.partition("\t")[2])]
        return hashlib.sha256(encode("\0".join(swaying))).hexdigest()

    def config_base(self, tree: Worktree) -> str:
        """Of those files alone: most commits of a branch change none of them. Told as the tree was filled."""
        told = tree.home / _SWAYING
        base, _, digest = told.read_text().partition(" ") if told.exists() else ("", "", "")
        return digest if base == self.base else self.base


def _git() -> list[str]:
    return ["git", *(word for option in _GIT_OPTIONS for word in ("-c", option))]


def git_environment(**extra: str) -> dict[str, str]:
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return {**env, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", **extra}


@contextmanager
def _own_index(git_dir: Path) -> Iterator[dict[str, str]]:
    """The environment of a git that compares the work tree: git-diff would refresh the user's own index."""
    with tempfile.TemporaryDirectory(prefix="kdelta-") as folder:
        index = Path(folder) / "index"
        if (git_dir / "index").exists():
            shutil.copy2(git_dir / "index", index)  # as old as it is: git reads what is no older
        yield git_environment(GIT_INDEX_FILE=str(index))


def _changed(root: Path, env: dict[str, str]) -> bytes:
    argv = [*_git(), "-C", str(root), "diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", "HEAD"]
    return run(argv, str(root), env)


def uncommitted(root: Path) -> int:
    """How many files of a git work tree differ from HEAD, untracked ones aside; 0 of anything else."""
    git_dir = _git_dir(root)
    if git_dir is None or git_dir == root:
        return 0
    with _own_index(git_dir) as env:
        return _changed(root, env).count(b"\0")


def _uncommitted(root: Path, git_dir: Path) -> tuple[dict[str, File], list[str]]:
    """Changes of a git work tree against HEAD, untracked files with them; and notes on what is left out."""
    with _own_index(git_dir) as env:
        return _changes(root, env)


def _changes(root: Path, env: dict[str, str]) -> tuple[dict[str, File], list[str]]:
    base = [*_git(), "-C", str(root)]
    changed = _changed(root, env)
    untracked = run([*base, "ls-files", "--others", "--exclude-standard", "-z"], str(root), env)
    files: dict[str, File] = {}
    notes = []
    new = set(untracked.split(b"\0"))
    for name in sorted({*changed.split(b"\0"), *new} - {b""}):
        path, at = decode(name), root / os.fsdecode(name)
        if at.is_symlink() or at.is_dir():
            raise UserError(
                f"{root}: the uncommitted {path} is a link or a directory: commit it, and name the ref (@REF)"
            )
        if not at.exists():
            files[path] = File(None)
        elif name in new and at.stat().st_size > _UNTRACKED_BYTES:
            notes.append(f"{root}: untracked {path} ({at.stat().st_size >> 20} MiB) is left out")
        else:
            files[path] = File(decode(at.read_bytes()), bool(at.stat().st_mode & 0o100))
    return files, notes


def _digest(files: dict[str, File]) -> str:
    facts = [(path, file.text, file.executable) for path, file in sorted(files.items())]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16] if files else ""


def _git_dir(path: Path) -> Path | None:
    """The git directory if ``path`` is the top of a work tree or a bare repository."""
    if not ((path / ".git").exists() or ((path / "HEAD").is_file() and (path / "objects").is_dir())):
        return None
    return Path(
        os.fsdecode(
            run([*_git(), "-C", str(path), "rev-parse", "--absolute-git-dir"], str(path), git_environment())
        ).strip()
    )


def _asked(path: str, *words: str) -> str:
    """The answer of git in ``path``; "" where it has none."""
    try:
        return decode(run([*_git(), "-C", path, *words], path, git_environment())).strip()
    except HostError:
        return ""


def shallow(path: str) -> str:
    """What to do where a commit may be missing because the clone has not the whole history; "" in any other."""
    if _asked(path, "rev-parse", "--is-shallow-repository") != "true":
        return ""
    return f"; the clone is shallow, the rest comes with: git -C {shlex.quote(path)} fetch --unshallow --tags"


def no_commit(path: str, ref: str) -> UserError:
    """Why ``ref`` is no commit of the repository at ``path``."""
    if not _asked(path, "rev-parse", "--git-dir"):
        return UserError(f"src:{path}: not a git repository, so there is no commit {ref!r}")
    peeled = _asked(path, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{}}")
    if peeled:
        return UserError(f"src:{path}: {ref!r} names a {_asked(path, 'cat-file', '-t', peeled)}, not a commit")
    return UserError(f"src:{path}: no commit {ref!r} in this repository{shallow(path)}")


def _resolve_ref(path: Path, ref: str) -> tuple[str, str]:
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options")
    commit, tree = (_asked(str(path), *words, f"{ref}^{{{kind}}}") for kind in ("commit", "tree"))
    if not (commit and tree):
        raise no_commit(str(path), ref)
    return commit.splitlines()[-1], tree.splitlines()[-1]


def _git_version(path: Path, tree_id: str, title: str) -> tuple[int, int]:
    return version_of(_asked(str(path), "cat-file", "blob", f"{tree_id}:Makefile"), title)


class Folder(_Source, frozen=True, kw_only=True):
    """An unpacked source without git, copied; products of a build inside it stay behind."""

    path: str

    def fill(self, tree: Worktree, progress: Progress) -> None:
        """Make the base of ``tree`` this source's; unchanged files keep their times where they can."""
        require_space(tree.home, 0 if tree.src.exists() else TREE_BYTES)
        progress.step(f"copying {self.path}")
        manifest = tree.home / "manifest.json"
        before: dict[str, list[int]] = json.loads(manifest.read_text()) if manifest.exists() else {}
        root = Path(self.path)
        after = {name: list(facts) for name, facts in listing(root)}
        with tree.changing_base(self.base):
            manifest.unlink(missing_ok=True)
            for name in before.keys() - after.keys():
                (tree.src / name).unlink(missing_ok=True)
            for name, facts in after.items():
                if before.get(name) != facts or not os.path.lexists(tree.src / name):
                    _copy(root / name, tree.src / name)
            manifest.write_text(json.dumps(after))


def _copy(source: Path, target: Path) -> None:
    """Copy content and mode, with the time of now: make must see a replaced file as newer than its object."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    if source.is_symlink():
        target.symlink_to(os.readlink(source))
    else:
        shutil.copyfile(source, target)
        shutil.copymode(source, target)


def listing(root: Path) -> Iterator[tuple[str, tuple[int, int, int]]]:
    """(path, (size, mtime_ns, mode)) of all source files and links, sorted."""
    for folder, folders, files in os.walk(root):
        below = os.path.relpath(folder, root)
        prefix = "" if below == "." else f"{below}/"
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        folders[:] = sorted(
            name
            for name in folders
            if name not in links
            and f"{prefix}{name}" not in _BUILT_FOLDERS
            and not (prefix.startswith("arch/") and name == "generated")
        )
        for name in sorted([*files, *links]):
            built = name.endswith(_BUILT_SUFFIXES) or (not prefix and name in _BUILT_FILES)
            facts = os.lstat(os.path.join(folder, name))
            if not built:
                yield f"{prefix}{name}", (facts.st_size, facts.st_mtime_ns, facts.st_mode)


Origin = Tarball | Git | Folder


def has_commit(path: Path, commit: str) -> bool:
    """Whether the git repository at ``path`` has ``commit`` (a hash)."""
    try:
        _resolve_ref(path, commit)
    except UserError:
        return False
    return True


class Seen(Struct, frozen=True, kw_only=True):
    """A source tree as it was found: a git repository where ``git_dir`` is set."""

    path: Path
    version: tuple[int, int]
    git_dir: Path | None = None
    commit: str = ""
    tree_id: str = ""


def look(target: str, ref: str) -> Seen:
    """The tree that ``src:TARGET[@REF]`` names; nothing of it is copied or hashed.

    Raises:
        UserError: no such directory, not a kernel, an unknown ref.
    """
    path = expanded(target)
    try:
        if not path.is_dir():
            hint = f"; Debian's source is src:debian:{number}" if (number := released(target)) else ""
            raise UserError(f"src:{target}: {'not a directory' if path.exists() else 'no such directory'}{hint}")
        path = path.resolve()
        os.listdir(path)
        git_dir = _git_dir(path)
        if git_dir is None:
            if ref:
                raise UserError(f"src:{target}@{ref}: {path} is not a git repository, so it has no refs")
            makefile = path / "Makefile"
            text = makefile.read_text("utf-8", "replace") if makefile.is_file() else ""
            return Seen(path=path, version=version_of(text, f"src:{target}"))
    except OSError as error:
        raise UserError(f"src:{target}: cannot be read ({error.strerror}: {error.filename})") from None
    commit, tree_id = _resolve_ref(path, ref or "HEAD")
    version = _git_version(path, tree_id, f"src:{target}{f'@{ref}' if ref else ''}")
    return Seen(path=path, version=version, git_dir=git_dir, commit=commit, tree_id=tree_id)


def from_path(target: str, ref: str) -> Origin:
    """The origin that ``src:TARGET[@REF]`` names.

    Raises:
        UserError: no such directory, not a kernel, an unknown ref.
    """
    seen = look(target, ref)
    path = seen.path
    if seen.git_dir is None:
        name = hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
        digest = hashlib.sha256(json.dumps(list(listing(path))).encode()).hexdigest()
        content = f"folder:{digest}"
        return Folder(
            path=str(path), key=f"tree-{name}", base=content, id=content, title=str(path), version=seen.version
        )
    files, notes = ({}, []) if ref or seen.git_dir == path else _uncommitted(path, seen.git_dir)
    title = f"{path}@{ref or 'HEAD'} ({seen.commit[:12]})"
    title += f" with {len(files)} uncommitted files" if files else ""
    common = os.fsdecode(
        run([*_git(), "-C", str(path), "rev-parse", "--git-common-dir"], str(path), git_environment())
    ).strip()
    name = hashlib.sha256(os.fsencode((path / common).resolve())).hexdigest()[:12]
    return Git(
        git_dir=str(seen.git_dir),
        tree_id=seen.tree_id,
        key=f"git-{name}",
        base=f"git:{seen.tree_id}",
        id=f"git:{seen.tree_id}{_digest(files)}",
        title=title,
        version=seen.version,
        files=files,
        notes=tuple(notes),
    )

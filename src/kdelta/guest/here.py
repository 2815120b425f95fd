# SPDX-License-Identifier: GPL-2.0-or-later
"""What a program finds where it is started, the working directory or all of the git work tree that it lies in, and
what its words name: ``ls -lR /usr/share/doc`` is about that directory.

A rule that does not ask what the program is: all of it within a bound, else what git does not ignore, else nothing.
Sources: gitrepository-layout(5) for ``.git`` files, ``commondir`` and alternates; git-ls-files(1).
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from kdelta import paths
from kdelta.errors import UserError
from kdelta.guest import git_index
from kdelta.guest.image import Node
from kdelta.spec.program import Program

MOST_BYTES = 32 << 20  # unpacked under emulation in about 1 s, once for each content and kernel
MOST_FILES = 10_000  # in about 3 s
_SUBMODULES_MOST = 5
_PATH_BYTES = 4096
_LITTLE = " only what it runs with"
_UNLINKED = ", without the files elsewhere that its links lead to"
MOUNTED = ("/proc", "/sys", "/dev")  # in the guest, which has its own


class Here(Struct, frozen=True, kw_only=True):
    """What is packed of ``root``: ``said`` for the report, "" where nothing is; ``note`` for the user, mostly ""."""

    root: Path
    nodes: tuple[tuple[str, Node], ...] = ()  # by whole path, as Tree has them
    outside: tuple[Path, ...] = ()  # what links lead to
    said: str = ""
    note: str = ""


class _Walked(Struct):
    nodes: list[tuple[str, Node]]
    outside: list[Path]
    size: int = 0
    over: bool = False
    barred: int = 0  # files that may not be read
    linked: bool = True  # also the files outside that links lead to


def work_tree(cwd: Path) -> Path:
    """The directory at or above ``cwd`` that holds ``.git``, ``cwd`` where there is none; never / or the home."""
    for one in (cwd, *cwd.parents):
        if os.path.lexists(one / ".git") and not _too_high(one):
            return one
    return cwd


def _too_high(one: Path) -> bool:
    return one == Path("/") or one.resolve() == paths.expanded("~").resolve()


def git_folders(top: Path) -> list[Path]:
    """Directories outside of ``top`` that its repository needs: of a worktree or submodule, and alternates."""
    found: list[Path] = []
    at = top / ".git"
    if at.is_file() and (place := _first_line(at)).startswith("gitdir:"):
        at = Path(os.path.abspath(top / place.removeprefix("gitdir:").strip()))
        found.append(at)
    if common := _first_line(at / "commondir"):
        at = Path(os.path.abspath(at / common))
        found.append(at)
    for _ in range(_SUBMODULES_MOST):
        line = _first_line(at / "objects" / "info" / "alternates")
        if not line:
            break
        objects = Path(os.path.abspath(at / "objects" / line))
        found.append(objects)
        at = objects.parent
    return [one for one in found if one.is_dir() and not one.is_relative_to(top)]


def _first_line(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="surrogateescape") as file:
            return file.readline(4096).strip()
    except OSError:
        return ""


def _own() -> set[tuple[int, int]]:
    """Our own: the cache and the state directory, and the file that our output goes to. They change with each run."""
    found = set()
    for one in (paths.cache_dir(), paths.state_dir(), 1, 2):
        try:
            facts = os.stat(one)
        except OSError:
            continue
        found.add((facts.st_dev, facts.st_ino))
    return found


def _walk(walked: _Walked, folder: Path, top: Path, but: set[str], own: set[tuple[int, int]]) -> None:
    """Add all below ``folder`` but these directories, which stay empty; stops where it is too much."""
    for one in _entries(folder):
        if _is_over(walked):
            return
        facts = one.stat(follow_symlinks=False)
        if (facts.st_dev, facts.st_ino) in own:
            continue
        if stat.S_ISDIR(facts.st_mode):
            walked.nodes.append((one.path, Node(stat.S_IFDIR | 0o755)))
            if one.path not in but:
                _walk(walked, Path(one.path), top, but, own)
        elif stat.S_ISLNK(facts.st_mode):
            _link(walked, Path(one.path), top)
        elif stat.S_ISREG(facts.st_mode) and not os.access(one.path, os.R_OK):
            walked.barred += 1
        elif stat.S_ISREG(facts.st_mode):
            walked.nodes.append((one.path, Node(stat.S_IFREG | stat.S_IMODE(facts.st_mode) & 0o777, Path(one.path))))
            walked.size += facts.st_size


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            yield from sorted(found, key=lambda one: one.name)
    except PermissionError:
        return


def _link(walked: _Walked, link: Path, top: Path) -> None:
    """As a link; with the file that it leads to where that lies outside. To a directory outside it leads nowhere."""
    walked.nodes.append((str(link), Node(stat.S_IFLNK | 0o777, os.fsencode(os.readlink(link)))))
    if not walked.linked:
        return
    if not Path(os.path.realpath(link)).is_relative_to(top) and link.is_file() and os.access(link, os.R_OK):
        walked.size += link.stat().st_size
        walked.outside.append(link)


def _walked(tops: Sequence[Path], but: set[str]) -> _Walked:
    """All below ``tops`` but these directories; where it is too much by what links lead to (/etc), without that."""
    own = _own()
    for linked in (True, False):
        walked = _Walked([], [], linked=linked)
        for top in tops:
            _walk(walked, top, top, but, own)
        walked.over = _is_over(walked)
        if not walked.over or not walked.outside:
            break
    return walked


def _is_over(walked: _Walked) -> bool:
    return len(walked.nodes) > MOST_FILES or walked.size > MOST_BYTES


def _ignored(top: Path) -> set[str]:
    """The directories that git ignores below ``top``; none where there is no git, or it does not answer."""
    git = shutil.which("git")
    if git is None or not os.path.lexists(top / ".git"):
        return set()
    asked = ("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
    argv = [git, *git_index.PLAIN, *asked]
    try:
        said = subprocess.run(argv, cwd=top, capture_output=True, timeout=git_index.LIMIT_S, check=False).stdout
    except subprocess.TimeoutExpired:
        return set()
    return {str(top / os.fsdecode(name[:-1])) for name in said.split(b"\0") if name.endswith(b"/")}


def _left_out(top: Path, why: str) -> Here:
    remedy = "--tree . packs them all the same, --follow what the program opens"
    return Here(root=top, note=f"the files of {top} are not packed: {why}; {remedy}")


def find(cwd: Path) -> Here:
    """What a program that is started in ``cwd`` (absolute) finds there, and what is not packed of it."""
    top = work_tree(cwd)
    if _too_high(top):
        what = "it is the root of this machine" if top == Path("/") else "it is your home directory"
        return _left_out(top, what) if any(_entries(top)) else Here(root=top)
    folders = git_folders(top)
    tops = [top, *(one.resolve() for one in folders)]
    walked, note = _walked(tops, set()), ""
    if walked.over and (ignored := _ignored(top)):
        walked = _walked(tops, ignored)
        names = sorted(f"{os.path.relpath(name, top)}/" for name in ignored)
        note = f"of {top}, what git ignores is packed as empty directories ({_some(names)}): with it, it is more than "
        note += f"{_bound()}; --file DIR packs one of them too"
    if walked.over:
        return _left_out(top, f"they are more than {_bound()}")
    if not walked.nodes:
        return Here(root=top)
    size = f"{walked.size / (1 << 20):.1f} MiB"
    said = f"{top}: {len(walked.nodes):,} files and directories, {size}{', without what git ignores' if note else ''}"
    said += _UNLINKED if not walked.linked else ""
    note = "; ".join(filter(None, (note, *_lacks(walked, top))))
    folder = tops[1] if (top / ".git").is_file() and folders else top / ".git"
    nodes = git_index.refreshed(top, folder, walked.nodes)
    return Here(root=top, nodes=nodes, outside=(*folders, *tops[1:], *walked.outside), said=said, note=note)


def named(words: Sequence[str], cwd: Path, around: Here | None) -> tuple[Here, ...]:
    """The directories that ``words`` of a program name, but what is packed ``around`` it, or a guest has of its own."""
    names = (os.path.abspath(cwd / text) for word in words for text in parts(word))
    folders = dict.fromkeys(Path(name) for name in names if os.path.isdir(name))
    return tuple(_named(folder.resolve(), folder) for folder in folders if not _is_there(folder, around))


def _is_there(folder: Path, around: Here | None) -> bool:
    if any(folder.is_relative_to(mount) for mount in MOUNTED):
        return True
    return around is not None and (folder.is_relative_to(around.root) if around.nodes else folder == around.root)


def parts(word: str) -> tuple[str, ...]:
    """What of a word may be a path: itself, and one behind its first ``=`` (``if=/etc/passwd``) or ``file://``."""
    behind = word.partition("=")[2]
    paths = (word, *(one for one in (behind, word.partition("file://")[2]) if one.startswith(("/", "./", "../"))))
    return tuple(text for text in paths if text and "\0" not in text and len(text) < _PATH_BYTES)


def _named(folder: Path, name: Path) -> Here:
    """``folder``, which is called ``name``: with links on the way where that is another."""
    found = find(folder) if os.path.lexists(work_tree(folder) / ".git") else _folder(folder)
    return found if folder == name or not found.nodes else replace(found, outside=(name, *found.outside))


def refuse_mounted(option: str, text: str, path: Path) -> None:
    """Raises:
    UserError: the user names with ``text`` what a guest has of its own, so that no file of here is seen there.
    """
    place = Path(os.path.abspath(path))
    if place == Path("/") and option == "--tree":
        raise UserError("--tree /: no guest takes all of it; name what the program reads, or --follow packs that")
    if mount := next((mount for mount in MOUNTED if place.is_relative_to(mount)), ""):
        raise UserError(f"{option} {text}: a guest has a {mount} of its own, which hides what is packed there")


def refuse_natively(program: Program) -> None:
    """Raises:
    UserError: it has what goes with guests alone: here nothing is packed.
    """
    if program.writable:
        raise UserError("--writable is for guests: here the program may write where it runs, and does")
    given = {"--file": program.files, "--tree": program.trees, "--follow": program.follow}
    if option := next((name for name, value in given.items() if value), ""):
        raise UserError(f"{option} is for guests: here the program finds every file where it is")


def packs_all(folder: str) -> str:
    """How the user has ``folder`` packed that was too large to be so unasked."""
    return (
        "--follow packs what it opens" if folder == "/" else f"--tree {folder} packs all of it, --follow what it opens"
    )


def _folder(folder: Path) -> Here:
    walked = _walked([folder], set())
    if walked.over:
        said = f"of {folder}{_LITTLE}: it is more than {_bound()}"
        note = f"{folder} is not packed, it is more than {_bound()}: the program finds there only what it runs with; "
        return Here(root=folder, said=said, note=note + packs_all(str(folder)))
    size = f"{walked.size / (1 << 20):.1f} MiB"
    said = f"{folder}: {len(walked.nodes):,} files and directories, {size}{'' if walked.linked else _UNLINKED}"
    note = "; ".join(_lacks(walked, folder))
    return Here(root=folder, nodes=tuple(walked.nodes), outside=tuple(walked.outside), said=said, note=note)


def _lacks(walked: _Walked, top: Path) -> Iterator[str]:
    if walked.barred:
        yield f"{walked.barred} files below {top} may not be read and are left out"
    if not walked.linked:
        yield f"files that links of {top} lead to are not packed: with them, it is more than {_bound()}"


def _bound() -> str:
    return f"{MOST_BYTES >> 20} MiB or {MOST_FILES:,} files"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def lacking(said: str) -> tuple[str, ...]:
    """The directories that a program's words name and its guests do not have, by what the report has of it."""
    return tuple(re.findall(rf"\bof (/[^;]*?){_LITTLE}: ", said))

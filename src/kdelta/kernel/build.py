# SPDX-License-Identifier: GPL-2.0-or-later
"""Run the kernel's own build: configured, incremental, reproducible, its log kept. make is started only here.

Reproducible as in the kernel's Documentation/kbuild/reproducible-builds.rst: fixed time stamp, user, host and version.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from pathlib import Path

from msgspec import Struct

from kdelta.errors import HostError, UserError
from kdelta.kernel import config_fragment, described, kconfig, sandbox, unfinished, withheld
from kdelta.kernel.config_fragment import Request
from kdelta.kernel.overseen import Overseer
from kdelta.kernel.toolchain import Toolchain
from kdelta.model import Arch
from kdelta.model.progress import Progress

TARGETS: dict[Arch, str] = {"x86_64": "vmlinux", "arm64": "Image"}
IMAGES: dict[Arch, str] = {"x86_64": "vmlinux", "arm64": "arch/arm64/boot/Image"}
# Steps that make prints for the guest config, until a build in the same directory has been counted.
FIRST_STEPS: dict[Arch, int] = {"x86_64": 1818, "arm64": 1527}
_STEP = re.compile(r"^  ([A-Z][A-Z0-9_]+)(?: \[M\])? +(\S+)")
_ERROR = re.compile(
    r"^(\S+?:\d+(?::\d+)?: (?:fatal )?error: .*|.*undefined reference to .*|.*multiple definition of .*)$"
)
_SOURCE = re.compile(r"^source_\S+ := (\S+)$", re.MULTILINE)  # of what an object was made
_PLACED = re.compile(r"^\S+?:\d+: (?!.*(?:warning|note|In function|[Ii]n file|from))")
_MAKE_ERROR = re.compile(r"^(?:make\S*: \*\*\* .*|\*\*\* .*|.*\berror: .*|.*: not found)$", re.IGNORECASE)
# No commit is at fault: a disk, or memory, of which compilers are killed for want.
_OF_HOST = re.compile(
    r"No space left on device|Disk quota exceeded|Read-only file system|Input/output error|annot allocate memory"
    r"|out of memory|memory exhausted|Killed signal terminated program|\] Killed$"
)


class BuildError(HostError):
    """make failed. ``line`` is the compiler's line, ``log`` where all of it is."""

    def __init__(self, line: str, log: Path) -> None:
        super().__init__(f"{line}; log: {log}")
        self.line, self.log = line, log


def fault_of_source(error: BaseException) -> str:
    """What the compiler said where the source does not build; "" where that was not it, but a full disk or memory."""
    chain = (error, error.__cause__, error.__context__)
    line = next((each.line for each in chain if isinstance(each, BuildError)), "")
    return "" if _OF_HOST.search(line) else line


class Products(Struct, frozen=True, kw_only=True):
    """What came out: paths in the build directory. ``steps`` counts what make did."""

    image: Path
    vmlinux: Path
    config: str
    release: str
    unmet: tuple[str, ...]
    steps: int
    elapsed_s: float
    types: bytes = b""  # see described.py; b"" where this compiler does not say


def environment(cache: Path) -> dict[str, str]:
    """Nothing of the caller's environment but where programs are: a KCFLAGS or ARCH set there must not leak in."""
    kept = {key: os.environ[key] for key in ("PATH", "HOME", "TMPDIR") if key in os.environ}
    return kept | {
        "LC_ALL": "C",
        "TZ": "UTC",
        "KBUILD_BUILD_TIMESTAMP": "@0",
        "KBUILD_BUILD_USER": "kdelta",
        "KBUILD_BUILD_HOST": "kdelta",
        "KBUILD_BUILD_VERSION": "1",
        "SOURCE_DATE_EPOCH": "0",
        "CCACHE_DIR": str(cache / "ccache"),
        "CCACHE_BASEDIR": str(cache / "build"),
        "CCACHE_NOHASHDIR": "1",
        "CCACHE_COMPILERCHECK": "content",
        # Headers are known from the compiler's own list (-MMD), not from a second run of the preprocessor.
        "CCACHE_DEPEND": "1",
    }


def error_line(lines: Iterable[str]) -> str:
    """The line of a log that says what failed: the compiler's first error, else make's first."""
    kept = [line.strip() for line in lines]
    for pattern in (_ERROR, _PLACED, _MAKE_ERROR):
        for line in kept:
            if pattern.match(line):
                return line
    return next((line for line in reversed(kept) if line), "make failed without an error message")


class Builder:
    """One build directory of one source: ``obj`` belongs to a config, a compiler and an architecture."""

    def __init__(
        self,
        src: Path,
        obj: Path,
        tools: Toolchain,
        *,
        cache: Path,
        jobs: int,
        held: tuple[int, ...] = (),
        readable: tuple[Path, ...] = (),
        writable: tuple[Path, ...] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``held`` are locks that make inherits: should kdelta be killed, they last as long as make does.

        make runs in a sandbox: ``readable`` and ``writable`` are what it needs besides ``src`` and ``obj``.
        """
        self.src, self.obj, self.tools, self.cache, self.jobs = src, obj, tools, cache, jobs
        self._held, self._clock = held, clock
        self._readable, self._writable = (src, *readable), (obj, *writable)

    def argv(self, *words: str) -> list[str]:
        """The make line, which can be pasted."""
        compiler = f"{self.tools.prefix}gcc"
        return [
            "make",
            "-C",
            str(self.src),
            f"O={self.obj}",
            f"ARCH={self.tools.arch}",
            f"CROSS_COMPILE={self.tools.prefix}",
            f"CC=ccache {compiler}" if self.tools.ccache else f"CC={compiler}",
            *words,
        ]

    def make(self, words: list[str], log: Path, on_line: Callable[[str], None]) -> None:
        """Run make to its end; a Ctrl-C takes all its children along.

        Raises:
            BuildError: it failed, hung, or was about to fill the disk.
            HostError: there is no sandbox here.
        """
        self._run(self.argv(*words), log, on_line)

    def _run(self, argv: list[str], log: Path, on_line: Callable[[str], None]) -> None:
        recent: deque[str] = deque(maxlen=4000)
        with open(log, "a", buffering=1, encoding="utf-8", errors="replace") as out:
            out.write(" ".join(argv) + "\n")
            make = subprocess.Popen(
                self._sandboxed(argv),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=environment(self.cache),
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
                pass_fds=self._held,
            )
            try:
                assert make.stdout is not None
                with Overseer(make.pid, self.obj, self._clock) as overseer:
                    for line in make.stdout:
                        overseer.heard()
                        out.write(line)
                        recent.append(line)
                        on_line(line)
                    code = make.wait()
            except BaseException:
                os.killpg(make.pid, signal.SIGKILL)
                make.wait()
                raise
        if overseer.why:
            raise BuildError(overseer.why, log)
        if code:
            raise BuildError(error_line(recent).replace(f"{self.src}/", ""), log)  # as in the user's own tree

    def _sandboxed(self, argv: list[str]) -> list[str]:
        cached = (self.cache / "ccache",) if self.tools.ccache else ()
        for folder in (self.obj, *cached):
            folder.mkdir(parents=True, exist_ok=True)
        return sandbox.inside(argv, self._readable, (*self._writable, *cached))

    def configure(self, request: Request, log: Path, basis: str = "") -> tuple[str, ...]:
        """Make ``.config`` what ``request`` asks for; untouched where it is that already, so that nothing rebuilds.

        ``basis`` identifies all in the source that sways Kconfig; Kconfig is not even asked while it stays, and while
        the programs stay whose versions it writes down (rustc, pahole).

        Returns:
            what could not be had, a sentence each.
        """
        config, mark = self.obj / ".config", self.obj / "kdelta-config"
        stamp = hashlib.sha256("\0".join([basis, request.base, request.text, *request.new]).encode()).hexdigest()
        there = sandbox.read(config) if config.exists() else ""
        if basis and there and mark.exists() and sandbox.read(mark) == stamp and self.tools.suits(there):
            return config_fragment.unmet(request, there)
        mark.unlink(missing_ok=True)
        self.obj.mkdir(parents=True, exist_ok=True)
        fresh = self.obj / ".config.kdelta"
        fresh.unlink(missing_ok=True)
        words = [f"KCONFIG_CONFIG={fresh}"]
        if request.base:
            sandbox.write(fresh, f"{request.base}\n{request.text}")
        else:
            self.make([*words, "tinyconfig"], log, _ignore)
            sandbox.write(fresh, config_fragment.over_tiny(sandbox.read(fresh), request))
        self.make([*words, "olddefconfig"], log, _ignore)
        text = sandbox.read(fresh)
        if there != text:
            sandbox.write(config, text)
        for leftover in (fresh, fresh.with_name(".config.kdelta.old")):
            leftover.unlink(missing_ok=True)
        sandbox.write(mark, stamp)
        return config_fragment.unmet(request, text)

    def compile(self, title: str, log: Path, progress: Progress, again: int = 0, own: bool = True) -> tuple[int, float]:
        """Build the image; returns the steps made and the seconds taken.

        Args:
            again: objects that are made again where it was built before; 0 where nobody knows.
            own: by our own config; of a user's whole .config nobody knows the steps before the first build.

        Raises:
            BuildError: it does not build.
        """
        counted = self.obj / "kdelta-steps"
        first = not (self.obj / "vmlinux").exists()
        known = sandbox.read(counted) if first and counted.exists() else ""
        unknown = FIRST_STEPS[self.tools.arch] if own else 0
        total = again if not first else int(known) if known.isdecimal() else unknown
        begun = sum(1 for _ in self.obj.rglob(".*.o.cmd")) if first else 0  # by a build that was interrupted
        started, done = self._clock(), 0

        def on_line(line: str) -> None:
            nonlocal done
            if match := _STEP.match(line):
                done += 1
                said = "" if total else f": {match[1]} {match[2]}, {self._clock() - started:.0f} s"
                progress.step(f"building {title}{said}", begun + done, max(total, begun + done) if total else None)

        progress.step(f"building {title}", begun, max(total, begun) if total else None)
        self.make([f"-j{self.jobs}", "LOCALVERSION=", TARGETS[self.tools.arch]], log, on_line)
        if first:
            sandbox.write(counted, str(begun + done))
        return done, self._clock() - started

    def build(
        self, request: Request, title: str, log: Path, progress: Progress, basis: str = "", again: int = 0
    ) -> Products:
        """Configure and compile; ``log`` is begun anew.

        Raises:
            BuildError: it does not configure or does not build.
            UserError: no guest could start it, which is told before it is compiled.
        """
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("")
        if sandbox.off():
            progress.note(f"{title} is built WITHOUT a sandbox: what its patch runs has your rights, files and network")
        progress.step(f"configuring {title}")
        self.obj.mkdir(parents=True, exist_ok=True)
        unfinished.begin(self.obj)
        unmet = self.configure(request, log, basis)
        text = sandbox.read(self.obj / ".config")
        if missed := config_fragment.refused(request, text):
            why = withheld.reasons(self.src, self.tools.arch, missed, kconfig.parse(text))
            unmet = config_fragment.unmet(request, text, why)
            for line in (line for line in unmet if line.partition(":")[0].removeprefix("CONFIG_") in missed):
                progress.note(f"{title}: {line}")  # a first build takes minutes
        if lost := config_fragment.lost(request, text):
            unmet = (*unmet, lost)
            progress.note(f"{title}: {lost}")
        if lacking := config_fragment.lacking(text, self.tools.arch):
            names = ", ".join(f"CONFIG_{name}" for name in lacking)
            raise UserError(
                f"{title}: nothing was built: no guest starts with {names} off in the config {request.title}; set to y"
            )
        steps, elapsed_s = self.compile(title, log, progress, again, own=not request.base)
        unfinished.end(self.obj)
        return Products(
            image=sandbox.plain(self.obj / IMAGES[self.tools.arch]),
            vmlinux=sandbox.plain(self.obj / "vmlinux"),
            config=sandbox.read(self.obj / ".config"),
            release=sandbox.read(self.obj / "include/config/kernel.release").strip(),
            unmet=unmet,
            steps=steps,
            elapsed_s=elapsed_s,
            types=self.types(log),
        )

    def types(self, log: Path) -> bytes:
        """What the compiler says of the types of the kernel that was just built, as BTF; b"" where it cannot."""
        recorded = next((sandbox.read(path) for name in described.LIKE if (path := self.obj / name).is_file()), "")
        argv, made = described.argv(recorded, self.src, self.obj), self.obj / described.MADE
        for text in described.attempts() if argv else ():
            sandbox.write(self.obj / described.SOURCE, text)
            made.unlink(missing_ok=True)
            try:
                self._run(argv, log, _ignore)
                return described.read(sandbox.plain(made).read_bytes()) if made.is_file() else b""
            except BuildError:
                continue  # a compiler without BTF, or headers that want to be included otherwise: names are missing
        return b""

    def forget_sourceless(self) -> None:
        """Remove objects whose source is gone, by a patch or in another commit: make would link them all the same.

        Raises:
            HostError: an earlier build left a link in place of one of Kbuild's files.
        """
        inside = (f"../{self.src.name}/", f"{self.src}/")  # the former is what ccache makes of the latter
        for made in self.obj.rglob(".*.o.cmd"):
            match = _SOURCE.search(sandbox.read(made))
            if match and match[1].startswith(inside) and not (self.obj / match[1]).exists():
                _object_of(made).unlink(missing_ok=True)

    def not_built(self, paths: Iterable[str]) -> list[str]:
        """Of the source files ``paths``, those from which this config makes no object.

        One that is older than its source is left of another commit, whose Makefile named it.
        """
        there = (path for path in paths if (self.src / path).exists())  # not those that a patch takes away
        return not_built(self.obj, self.src.name, there, lambda made, path: _newer(made, self.src / path))


def not_built(obj: Path, src_name: str, paths: Iterable[str], current: Callable[[Path, str], bool]) -> list[str]:
    """Of the source files ``paths``, those of which no object in ``obj`` is made that is ``current``, nor includes one.

    ``src_name`` is the name of the directory of the source, as the compiler was told it.
    """
    ours = [path for path in paths if not path.startswith(("tools/", "samples/"))]
    code = (one for one in ours if one.endswith((".c", ".S")))
    missing = {one for one in code if not any(current(made, one) for made in _made_of(obj / one))}
    missing -= _included(obj, src_name, missing, current)
    missing |= _unused(obj, src_name, [path for path in ours if path.endswith((".h", ".rs"))])  # a crate has many
    return [path for path in ours if path in missing]


def _made_of(source: Path) -> Iterable[Path]:
    """What Kbuild may make of a source: an object, numbers for assembly; a linker script, a program of the build."""
    return (source.with_suffix(".o"), *filter(Path.is_file, map(source.with_suffix, (".s", ""))))


def _included(obj: Path, src_name: str, sources: Set[str], current: Callable[[Path, str], bool]) -> frozenset[str]:
    """Of ``sources`` those that another one includes, as kernel/sched/build_policy.c does, also of another directory:

    arch/x86/entry/vdso/ has lib/vdso/gettimeofday.c.
    """
    named = re.compile(rf"(?=/{re.escape(src_name)}/(\S+))")
    found: set[str] = set()
    for told, text in _told(obj, ".o.cmd") if sources else ():
        found |= {path for path in sources & set(named.findall(text)) if current(_object_of(told), path)}
    return frozenset(found)


def _told(obj: Path, suffix: str) -> Iterator[tuple[Path, str]]:
    """What Kbuild keeps of each thing that it made; another build in ``obj`` may take it away meanwhile."""
    for folder, _, names in os.walk(obj):
        for path in (Path(folder) / name for name in names if name.startswith(".") and name.endswith(suffix)):
            with contextlib.suppress(FileNotFoundError):
                yield path, sandbox.read(path)


def _unused(obj: Path, src_name: str, headers: Sequence[str]) -> frozenset[str]:
    """Of ``headers``, and parts of crates, those that nothing in ``obj`` was made of."""
    left = set(headers)
    for _, text in _told(obj, ".cmd") if left else ():
        if not left:
            break
        left -= {path for path in left if re.search(rf"/{re.escape(f'{src_name}/{path}')}\s", text)}
    return frozenset(left)


def _object_of(told: Path) -> Path:
    """The object beside which Kbuild keeps ``told``: .NAME.o.cmd."""
    return told.with_name(told.name[1 : -len(".cmd")])


def _newer(made: Path, source: Path) -> bool:
    return made.exists() and made.stat().st_mtime_ns >= source.stat().st_mtime_ns


def _ignore(_: str) -> None:
    """Lines of the configuration steps are only logged."""


def default_jobs() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0))

# SPDX-License-Identifier: GPL-2.0-or-later
"""A private apt: the package index and downloads of Debian's archive, without root and beside the system's own apt.

Which mirror is asked, and how (proxy, timeouts, credentials), comes from the machine's apt configuration. Everything is
verified by apt against Debian's archive keyring. Source: apt.conf(5), sources.list(5), apt-get(8).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from kdelta.errors import HostError
from kdelta.kernel import cache
from kdelta.model.progress import Progress

# Releases oldest first; each has -updates and -backports beside it and -security in the security archive.
RELEASES = ("bullseye", "bookworm", "trixie", "forky", "duke")
OLDEST = "bookworm"  # what is asked for on a newer machine too: its kernels are the older end of most sweeps
ROLLING = ("sid", "experimental")
_KEYRINGS = (
    "/usr/share/keyrings/debian-archive-keyring.pgp",
    "/usr/share/keyrings/debian-archive-keyring.gpg",
    "/etc/apt/trusted.gpg.d/debian-archive-keyring.gpg",
)
_ABSENT = re.compile(
    r"The repository '(\S+) (\S+) (?:InRelease|Release)' (?:does not have|no longer has|is not signed)"
    r"|GPG error: (\S+) (\S+) InRelease"
)
# apt 2.6: such a copy may be an old one that somebody replays, so apt takes nothing of it
_EXPIRED = re.compile(r"Release file for \S+/dists/(\S+)/(?:InRelease|Release) is expired \(invalid since (\d+\S+)")
_ONE_LINE = re.compile(r"^deb\s+(?:\[([^]]*)\]\s+)?(\S+)\s+(\S+)\s+(.+)$")
EXPIRED = "expired on this mirror, their kernels are left out"
_EXPIRED_REMEDY = "; is the clock right? Else: another mirror, or Acquire::Check-Valid-Until in apt's configuration"
_UNREACHED_REMEDY = "; what needs no archive: the path of an image, deb:FILE, and kdelta run"
_UPDATE_LIMIT_S = 900
_DOWNLOAD_LIMIT_S = 3600
# Index files of all suites, as they arrive and as they are kept. apt 2.6 does not return when they do not fit.
_INDEX_BYTES = 256 << 20
_UNPACKED_BYTES = 128 << 20


class Source(Struct, frozen=True, kw_only=True):
    """One archive of the machine's apt sources."""

    uri: str
    suites: tuple[str, ...]
    components: tuple[str, ...]
    signed_by: str = ""


def parse_deb822(text: str) -> list[Source]:
    """The enabled binary sources of a .sources file."""
    found = []
    for stanza in re.split(r"\n\s*\n", "\n".join(line for line in text.splitlines() if not line.startswith("#"))):
        fields: dict[str, str] = {}
        key = ""
        for line in stanza.splitlines():
            if line[:1] in (" ", "\t"):
                fields[key] = f"{fields.get(key, '')} {line.strip()}"
            elif ":" in line:
                name, _, value = line.partition(":")
                key = name.strip().lower()
                fields[key] = value.strip()
        if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes").lower() in ("no", "false", "0"):
            continue
        for uri in fields.get("uris", "").split():
            found.append(
                Source(
                    uri=uri,
                    suites=tuple(fields.get("suites", "").split()),
                    components=tuple(fields.get("components", "").split()),
                    signed_by=fields.get("signed-by", ""),
                )
            )
    return found


def parse_one_line(text: str) -> list[Source]:
    """The binary sources of a sources.list file."""
    found = []
    for line in text.splitlines():
        match = _ONE_LINE.match(line.split("#")[0].strip())
        if match is None:
            continue
        options = dict(part.partition("=")[::2] for part in (match[1] or "").split())
        found.append(
            Source(
                uri=match[2],
                suites=(match[3],),
                components=tuple(match[4].split()),
                signed_by=options.get("signed-by", ""),
            )
        )
    return found


def _tail(uri: str) -> str:
    return uri.rstrip("/").rsplit("/", 1)[-1]


def archives(sources: list[Source]) -> tuple[Source | None, Source | None]:
    """Debian's main archive and its security archive among the machine's sources, None where there is none.

    A mirror keeps the archive under a directory ``debian`` (``debian-security``) with a component ``main``; other
    vendors sign with keys of their own.
    """
    main = security = None
    for source in sources:
        own_key = source.signed_by and "debian" not in source.signed_by
        if own_key or "main" not in source.components or not source.uri.startswith(("http://", "https://")):
            continue
        if _tail(source.uri) == "debian" and main is None:
            main = source
        if _tail(source.uri) in ("debian-security", "security") and security is None:
            security = source
    return main, security


def suites(machine: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(suites of the main archive, of the security archive) for a machine whose sources name ``machine`` suites."""
    bases = {name.split("-")[0] for name in machine}
    first = min([RELEASES.index(OLDEST)] + [RELEASES.index(base) for base in bases if base in RELEASES])
    wanted = RELEASES[first:]
    main = [name for release in wanted for name in (release, f"{release}-updates", f"{release}-backports")]
    return (*main, *ROLLING), tuple(f"{release}-security" for release in wanted)


def lacks_suites_alone(errors: str) -> bool:
    """Whether nothing else is wrong than suites that the mirror lacks; with --error-on=any it would be said. Pure."""
    said = [line for line in errors.splitlines() if line.startswith("E: ")]
    return bool(said) and all(_ABSENT.search(line) and "not signed" not in line for line in said)


def absent_suites(errors: str) -> frozenset[str]:
    """Suites that apt's messages call absent on the mirror, or signed with a key that this machine lacks."""
    return frozenset(match[2] or match[4] for match in _ABSENT.finditer(errors))


def expired_suites(errors: str) -> dict[str, str]:
    """Suites whose copy on the mirror apt calls too old, and since when, as in ``17d``."""
    return dict(_EXPIRED.findall(errors))


def first_error(errors: str) -> str:
    """apt's own line that says what failed."""
    lines = [line for line in errors.splitlines() if line.startswith("E: ")] or errors.strip().splitlines()
    return lines[0].removeprefix("E: ") if lines else "no message"


def _run(
    argv: list[str], *, limit_s: float, config: Path | None = None, folder: Path | None = None
) -> tuple[int, str, str]:
    program = shutil.which(argv[0])
    if program is None:
        raise HostError(f"{argv[0]} is not installed: debian: kernels need apt; give an image or deb:FILE instead")
    environment = {**os.environ, "LC_ALL": "C", **({"APT_CONFIG": str(config)} if config else {})}
    try:
        run = subprocess.run(
            [program, *argv[1:]], capture_output=True, text=True, errors="replace", check=False,
            timeout=limit_s, env=environment, cwd=folder, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise HostError(f"{' '.join(argv[:2])} took more than {limit_s:.0f} s: is the mirror reachable?") from None
    return run.returncode, run.stdout, run.stderr


def _settings() -> dict[str, list[str]]:
    """The machine's apt configuration: key -> values."""
    _, dump, _ = _run(["apt-config", "dump"], limit_s=60)
    found: dict[str, list[str]] = {}
    for line in dump.splitlines():
        key, _, value = line.partition(" ")
        found.setdefault(key, []).append(value.strip().rstrip(";").strip('"'))
    return found


def machine_sources() -> list[Source]:
    """The machine's apt sources, as its configuration places them."""
    settings = _settings()

    def place(key: str, default: str) -> Path:
        folder = Path((settings.get("Dir") or ["/"])[0] or "/") / ((settings.get("Dir::Etc") or ["etc/apt"])[0])
        return folder / ((settings.get(key) or [default])[0] or default)

    lists = [place("Dir::Etc::sourcelist", "sources.list")]
    parts = place("Dir::Etc::sourceparts", "sources.list.d")
    lists += sorted(parts.iterdir()) if parts.is_dir() else []
    found = []
    for path in lists:
        if path.is_file() and os.access(path, os.R_OK):
            parse = parse_deb822 if path.suffix == ".sources" else parse_one_line
            if path.suffix in (".sources", ".list"):
                found += parse(path.read_text(errors="replace"))
    return found


def _keyring(source: Source) -> str:
    named = source.signed_by.split()
    candidates = ([named[0]] if len(named) == 1 and "debian-archive" in named[0] else []) + list(_KEYRINGS)
    for candidate in candidates:
        if Path(candidate).is_file():
            return candidate
    raise HostError(
        "Debian's archive keyring is not installed: install debian-archive-keyring, or give an image instead"
    )


class Apt:
    """A private apt root in ``folder`` for one architecture (``amd64`` or ``arm64``)."""

    def __init__(self, folder: Path, architecture: str) -> None:
        self.folder = folder
        self.architecture = architecture
        self.config = folder / "apt.conf"

    def _configure(self, without: frozenset[str]) -> bool:
        """Write apt's configuration; False where no suite of the main archive is left."""
        main, security = archives(machine_sources())
        if main is None:
            raise HostError(
                "no Debian archive in this machine's apt sources (http, component main): "
                "add one, or give an image or deb:FILE"
            )
        main_suites, security_suites = suites(main.suites)
        stanzas = [(main, main_suites)] + ([(security, security_suites)] if security else [])
        text = "\n".join(
            f"Types: deb\nURIs: {source.uri}\nSuites: {' '.join(kept)}\nComponents: main\n"
            f"Targets: Packages\nSigned-By: {_keyring(source)}\n"
            for source, names in stanzas
            if (kept := [name for name in names if name not in without])
        )
        try:
            for name in ("state/lists/partial", "cache/archives/partial", "etc/sources.list.d", "etc/none"):
                (self.folder / name).mkdir(parents=True, exist_ok=True)
            (self.folder / "state/status").touch()
        except OSError as error:
            raise cache.disk_error(error, self.folder) from None
        cache.write_atomically(self.folder / "etc/sources.list.d/debian.sources", text.encode())
        cache.write_atomically(self.config, self._conf().encode())
        return not without.issuperset(main_suites)

    def _conf(self) -> str:
        """apt.conf: everything in our directory, the machine's way of fetching, and none of its hooks."""
        folder = self.folder.absolute()
        own = {
            "Dir::State": folder / "state",
            "Dir::State::status": folder / "state/status",
            "Dir::Cache": folder / "cache",
            "Dir::Etc::main": "/dev/null",
            "Dir::Etc::parts": folder / "etc/none",
            "Dir::Etc::sourcelist": "/dev/null",
            "Dir::Etc::sourceparts": folder / "etc/sources.list.d",
            "Dir::Etc::preferences": "/dev/null",
            "Dir::Etc::preferencesparts": folder / "etc/none",
            "APT::Architecture": self.architecture,
            # Else root's downloads run as a user that cannot write a cache in a home directory; a user stays a user.
            "APT::Sandbox::User": "root",
            "Acquire::GzipIndexes": "true",
            # Some 200 MB that save seconds in a month: what is needed of the index is kept apart.
            "Dir::Cache::pkgcache": "",
            "Dir::Cache::srcpkgcache": "",
        }
        lines = [f'{key} "{value}";' for key, value in own.items()]
        lines += [f'APT::Architectures {{ "{self.architecture}"; }};', 'Acquire::Languages { "none"; };']
        skipped = ("Acquire::IndexTargets", "Acquire::Languages", "Acquire::GzipIndexes", "Acquire::Changelogs")
        for key, values in _settings().items():
            if key.startswith("Acquire::") and not key.startswith(skipped):
                lines += [f'{key} "{value}";' for value in values if value]
        return "\n".join(lines) + "\n"

    def update(self, progress: Progress) -> tuple[str, ...]:
        """Fetch the package index; suites that the mirror lacks, or that expired there, are left out with a note.

        Returns:
            the suites that expired.

        Raises:
            HostError: apt failed, with its own line, or nothing is left.
        """
        cache.require_space(self.folder, _INDEX_BYTES, "the index of Debian's archive")
        without: frozenset[str] = frozenset()
        stale: set[str] = set()
        errors = ""
        for _ in range(4):
            if not self._configure(without):
                raise HostError(f"apt could not update its index: {first_error(errors)}{_EXPIRED_REMEDY}")
            progress.step(f"updating the index of Debian's archive ({self.architecture})")
            argv = ["apt-get", "--quiet", "--error-on=any", "update"]
            status, _, errors = _run(argv, limit_s=_UPDATE_LIMIT_S, config=self.config)
            if status == 0:
                return tuple(sorted(stale))
            missing, expired = absent_suites(errors) - without, expired_suites(errors)
            if missing:
                progress.step(f"not on this mirror, left out: {', '.join(sorted(missing))}")
            if expired:
                named = ", ".join(f"{suite} ({since} ago)" for suite, since in sorted(expired.items()))
                progress.note(f"{EXPIRED}: {named}{_EXPIRED_REMEDY}")
                stale |= set(expired)
            if not missing and not expired:
                break
            without |= missing | set(expired)
            if missing and lacks_suites_alone(errors) and self._configure(without) and self._arrived():
                return tuple(sorted(stale))  # no second update, of half a minute
        raise HostError(f"apt could not update its index: {first_error(errors)}{_UNREACHED_REMEDY}")

    def _arrived(self) -> bool:
        """Whether the lists of all configured suites are here: apt 2.6 keeps them where others were not found."""
        lists = self.folder / "state/lists"
        sources = parse_deb822((self.folder / "etc/sources.list.d/debian.sources").read_text())
        return all(any(lists.glob(f"*_dists_{suite}_*Release")) for source in sources for suite in source.suites)

    def show(self, pattern: str) -> str:
        """The index's stanzas of all versions of all packages whose name matches ``pattern`` (a regular expression)."""
        argv = ["apt-cache", "--names-only", "search", pattern]
        _, found, _ = _run(argv, limit_s=_UPDATE_LIMIT_S, config=self.config)
        names = sorted({line.split(" ")[0] for line in found.splitlines() if line})
        if not names:
            return ""
        status, text, errors = _run(["apt-cache", "show", *names], limit_s=_UPDATE_LIMIT_S, config=self.config)
        if status:
            raise HostError(f"apt could not read its index: {first_error(errors)}")
        return text

    @contextmanager
    def download(self, package: str, version: str, size_bytes: int = 0) -> Iterator[Path]:
        """The verified .deb of one version, in a directory that is deleted afterwards.

        Raises:
            HostError: apt failed, with its own line, or the disk is full.
        """
        with self.downloads([package], version, size_bytes) as found:
            yield found[0]

    @contextmanager
    def downloads(self, packages: Sequence[str], version: str, size_bytes: int = 0) -> Iterator[list[Path]]:
        """As ``download``, of several packages that have the same version, by one apt: each reads the whole index."""
        named = ", ".join(packages)
        cache.require_space(self.folder, size_bytes + _UNPACKED_BYTES, f"downloading {named}")
        try:
            folder = Path(tempfile.mkdtemp(prefix="deb-", dir=self.folder))
        except OSError as error:
            raise cache.disk_error(error, self.folder) from None
        try:
            argv = ["apt-get", "--quiet", "download", *(f"{package}={version}" for package in packages)]
            status, _, errors = _run(argv, limit_s=_DOWNLOAD_LIMIT_S, config=self.config, folder=folder)
            found = [path for package in packages for path in folder.glob(f"{package}_*.deb")]
            if status or len(found) != len(packages):
                free_mib = shutil.disk_usage(folder).free >> 20
                hint = f" ({free_mib} MiB free in {self.folder})" if free_mib < 1024 else ""
                raise HostError(f"apt could not download {named}: {first_error(errors)}{hint}")
            yield found
        finally:
            shutil.rmtree(folder, ignore_errors=True)

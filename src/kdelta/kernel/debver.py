# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's version order and the names of its kernel packages. Pure.

Source: deb-version(7), and the package names of the Debian kernel team.
"""

from __future__ import annotations

import re
from functools import cmp_to_key

from msgspec import Struct

from kdelta.model import Arch

DEBIAN_ARCH: dict[Arch, str] = {"x86_64": "amd64", "arm64": "arm64"}
_PARTS = re.compile(r"(\D*)(\d*)")
_SIGNED_OR_BINARY = re.compile(r"^linux-(image|binary)-(\d.*?)(-unsigned)?$")
_SERIES = re.compile(r"^(\d+)\.(\d+)")
_UPSTREAM_NUMBERS = re.compile(r"^(\d+)\.(\d+)(?:\.(\d+))?(?:~rc(\d+))?")
# A package below this is a metapackage, or the signed image beside linux-binary-*.
_SMALLEST_IMAGE_BYTES = 2 << 20


class DebianKernel(Struct, frozen=True, kw_only=True):
    """A kernel in Debian's archive. ``config_package`` has its .config, "" when ``package`` itself or none does."""

    release: str  # as uname -r says: 6.12.117+deb13-cloud-amd64
    upstream: str  # 6.12.117, 7.3~rc7
    flavour: str  # "" = the generic one
    arch: Arch
    package: str
    package_version: str
    size_bytes: int
    config_package: str = ""

    @property
    def series(self) -> str:
        return series(self.upstream)


class DebianSource(Struct, frozen=True, kw_only=True):
    """A linux-source package: the kernel with Debian's patches."""

    upstream: str
    package: str
    package_version: str
    size_bytes: int


def _order(character: str) -> int:
    if character == "~":
        return -1
    return ord(character) if character.isalpha() else ord(character) + 256


def _number(digits: str) -> int:
    """What they say, 0 where that is no number that a package has."""
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 19 else 0


def _compare_part(a: str, b: str) -> int:
    """Compare two upstream versions or two revisions: letters, then numbers, in turns; "~" sorts before the end."""
    for (text_a, number_a), (text_b, number_b) in zip(
        [*_PARTS.findall(a), *[("", "")] * len(b)], [*_PARTS.findall(b), *[("", "")] * len(a)], strict=False
    ):
        orders_a, orders_b = [*map(_order, text_a), 0], [*map(_order, text_b), 0]
        if orders_a != orders_b:
            return -1 if orders_a < orders_b else 1
        if _number(number_a) != _number(number_b):
            return -1 if _number(number_a) < _number(number_b) else 1
    return 0


def compare(a: str, b: str) -> int:
    """-1, 0 or 1 as version ``a`` is older than, equal to or newer than ``b``."""

    def split(version: str) -> tuple[int, str, str]:
        epoch, colon, rest = version.partition(":")
        if not colon:
            epoch, rest = "0", version
        upstream, _, revision = rest.rpartition("-") if "-" in rest else (rest, "", "0")
        return _number(epoch), upstream, revision

    (epoch_a, upstream_a, revision_a), (epoch_b, upstream_b, revision_b) = split(a), split(b)
    if epoch_a != epoch_b:
        return -1 if epoch_a < epoch_b else 1
    return _compare_part(upstream_a, upstream_b) or _compare_part(revision_a, revision_b)


version_key = cmp_to_key(compare)


def series(upstream: str) -> str:
    """``6.12.117`` -> ``6.12``."""
    match = _SERIES.match(upstream)
    return f"{match[1]}.{match[2]}" if match else upstream


def series_key(upstream: str) -> tuple[int, int]:
    """``6.12.117`` -> (6, 12), for ordering series."""
    match = _SERIES.match(upstream)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def upstream_of(package_version: str) -> str:
    """``7.3~rc7-1~exp1`` -> ``7.3~rc7``."""
    return package_version.partition(":")[2] or package_version.rpartition("-")[0] or package_version


def numbers(upstream: str) -> tuple[int, int, int, int]:
    """``6.12.117`` -> (6, 12, 117, 999), ``7.3~rc7`` -> (7, 3, 0, 7): how near two versions are."""
    match = _UPSTREAM_NUMBERS.match(upstream)
    if match is None:
        return (0, 0, 0, 0)
    return int(match[1]), int(match[2]), int(match[3] or 0), int(match[4]) if match[4] else 999


def release_of(package: str, arch: Arch) -> tuple[str, str, str] | None:
    """(kind, release, flavour) of a package name, None for a package that is no image."""
    named = _SIGNED_OR_BINARY.match(package)
    if named is None:
        return None
    parts = re.match(rf"^\d[\w.+~]*(?:-\d+)?(?:-([a-z]+))?-{DEBIAN_ARCH[arch]}(?:-(\d+k))?$", named[2])
    if parts is None:
        return None
    kind = "unsigned" if named[3] else named[1]
    return kind, named[2], "-".join(part for part in parts.groups() if part)


def _stanzas(text: str) -> list[dict[str, str]]:
    found = []
    for stanza in text.split("\n\n"):
        lines = (line.partition(": ") for line in stanza.splitlines() if line[:1].isalpha())
        fields = {key: value for key, _, value in lines}
        if "Package" in fields and "Version" in fields:
            found.append(fields)
    return found


def _size(fields: dict[str, str]) -> int:
    return _number(fields.get("Size", ""))


def kernels(index: str, arch: Arch) -> list[DebianKernel]:
    """The kernels that an index (as ``apt-cache show`` prints it) offers, oldest first; each release and version once.

    Where several packages hold one image, the signed one wins over ``-unsigned``.
    """
    stanzas = _stanzas(index)
    configs = {(f["Package"], f["Version"]) for f in stanzas if f["Package"].startswith("linux-base-")}
    found: dict[tuple[str, str], tuple[int, DebianKernel]] = {}
    for fields in stanzas:
        named = release_of(fields["Package"], arch)
        if named is None or _size(fields) < _SMALLEST_IMAGE_BYTES:
            continue
        kind, release, flavour = named
        version, base = fields["Version"], f"linux-base-{release}"
        kernel = DebianKernel(
            release=release,
            upstream=upstream_of(version),
            flavour=flavour,
            arch=arch,
            package=fields["Package"],
            package_version=version,
            size_bytes=_size(fields),
            config_package=base if kind == "binary" and (base, version) in configs else "",
        )
        rank = ("unsigned", "image", "binary").index(kind)
        known = found.get((release, version))
        if known is None or rank > known[0]:
            found[release, version] = rank, kernel
    return sorted((kernel for _, kernel in found.values()), key=lambda k: (version_key(k.package_version), k.flavour))


def sources(index: str) -> list[DebianSource]:
    """The linux-source packages of an index, oldest first."""
    found = {
        (fields["Package"], fields["Version"]): DebianSource(
            upstream=upstream_of(fields["Version"]),
            package=fields["Package"],
            package_version=fields["Version"],
            size_bytes=_size(fields),
        )
        for fields in _stanzas(index)
        if re.match(r"^linux-source-\d", fields["Package"])
    }
    return sorted(found.values(), key=lambda source: version_key(source.package_version))


def _wanted(version: str) -> str:
    return re.sub(r"-rc(\d+)$", r"~rc\1", version)


def matches(version: str, upstream: str, package_version: str, release: str = "") -> bool:
    """Whether a user's ``version`` names a package: a series, an upstream version, a package's version or a release."""
    if re.fullmatch(r"\d+\.\d+", version):
        return series(upstream) == version
    if _wanted(version) in (upstream, package_version):
        return True
    # The release without its flavour and architecture, as in 6.1.0-56 or 6.12.117+deb13.
    return bool(release) and (release == version or re.match(rf"{re.escape(version)}(-[a-z]|$)", release) is not None)


def newest(found: list[DebianKernel], version: str, flavour: str) -> DebianKernel | None:
    """The kernel of the highest package version that ``version`` and ``flavour`` name; candidates (~rc) sort before."""
    fitting = [
        k for k in found
        if (k.flavour == flavour or k.release == version) and matches(version, k.upstream, k.package_version, k.release)
    ]  # fmt: skip
    return max(fitting, key=lambda k: version_key(k.package_version), default=None)


def expand(found: list[DebianKernel], first: str, last: str, flavour: str) -> list[DebianKernel]:
    """The kernels of a range, oldest first: the newest of each series; inside one series, the newest of each version.

    An end without a patch level includes its whole series.
    """

    def above(kernel: DebianKernel) -> bool:
        whole = re.fullmatch(r"\d+\.\d+", first)
        low = (
            series_key(kernel.upstream) >= series_key(first) if whole else compare(kernel.upstream, _wanted(first)) >= 0
        )
        whole = re.fullmatch(r"\d+\.\d+", last)
        high = (
            series_key(kernel.upstream) <= series_key(last) if whole else compare(kernel.upstream, _wanted(last)) <= 0
        )
        return low and high

    inside = [kernel for kernel in found if kernel.flavour == flavour and above(kernel)]
    one_series = series(first) == series(last)
    chosen: dict[str, DebianKernel] = {}
    for kernel in sorted(inside, key=lambda k: version_key(k.package_version)):
        chosen[kernel.upstream if one_series else kernel.series] = kernel
    return list(chosen.values())


def nearest(found: list[str], version: str, limit: int = 4) -> list[str]:
    """The upstream versions of ``found`` that are nearest to ``version``, in order.

    Of a major version that has none of its own, how many releases lie between counts: 6.1 is nearer to 5.10 than 6.12.
    """
    wanted = numbers(_wanted(version))
    if re.fullmatch(r"\d+\.\d+", version):  # a series: the newest of its neighbours
        found = list({series(upstream): upstream for upstream in sorted(found, key=version_key)}.values())

    ranks = {upstream: rank for rank, upstream in enumerate(sorted(set(found), key=numbers))}
    place = sum(numbers(upstream) < wanted for upstream in ranks) - 0.5

    def distance(upstream: str) -> tuple[float, ...]:
        major, *others = (abs(a - b) for a, b in zip(numbers(upstream), wanted, strict=True))
        return (0, *others) if not major else (major, abs(ranks[upstream] - place))

    return sorted(sorted(ranks, key=distance)[:limit], key=version_key)

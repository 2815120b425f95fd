# SPDX-License-Identifier: GPL-2.0-or-later
"""What a build asks of Kconfig, and what it got. Pure but for reading the shipped fragments.

Three kinds of request: kdelta's own small guest (over tinyconfig), that with a user's fragment over it, or a whole
.config as a user or a distribution has it.
"""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from kdelta.errors import UserError
from kdelta.kernel import kconfig
from kdelta.model import Arch
from kdelta.paths import expanded, shipped

_LINE = re.compile(r'^CONFIG_([A-Za-z0-9_]+)=("(?:[^"\\]|\\.)*"|[A-Za-z0-9_.+-]+|)\s*(?:#.*)?$')
_VALUE = re.compile(r'[ynm]|-?[0-9]+|0[xX][0-9a-fA-F]+|".*"|')
_UNSET = re.compile(r"^# CONFIG_([A-Za-z0-9_]+) is not set\s*$")
_WORD = re.compile(r"(?:CONFIG_)?[A-Z0-9_]+=[A-Za-z0-9_-]+")
_LIKE_OPTION = re.compile(r"^[A-Za-z0-9_]+(?:=\w*)?$")  # of one that is no file
_LIKE_OPTIONS = re.compile(r"^(?:CONFIG_)?[A-Z0-9_]+\s*=|^#\s*CONFIG_")
_LIMIT_BYTES = 4 << 20
_WHOLE_LINES = 600  # even tinyconfig writes more
_NOT_THERE = "n (does not exist, or a dependency is off)"
_STARTS = ("BLK_DEV_INITRD", "BINFMT_ELF")  # the guest's program is an ELF file in an initramfs
_STARTS_ON: dict[Arch, tuple[str, ...]] = {"x86_64": ("PVH",), "arm64": ()}  # QEMU starts the ELF image


# Of each choice that our fragments decide its options: of two that are set Kconfig takes the one that stands last.
_CHOICES = tuple(
    frozenset(names.split())
    for names in (
        "HZ_100 HZ_250 HZ_300 HZ_1000",
        "HZ_PERIODIC NO_HZ_IDLE NO_HZ_FULL",
        "PREEMPT_NONE PREEMPT_VOLUNTARY PREEMPT PREEMPT_LAZY PREEMPT_RT",  # PREEMPT_RT excludes others since 6.13
        "DEBUG_INFO_NONE DEBUG_INFO_DWARF_TOOLCHAIN_DEFAULT DEBUG_INFO_DWARF4 DEBUG_INFO_DWARF5",
        "CC_OPTIMIZE_FOR_PERFORMANCE CC_OPTIMIZE_FOR_SIZE",
        "UNWINDER_ORC UNWINDER_FRAME_POINTER UNWINDER_GUESS",
        "ARM64_4K_PAGES ARM64_16K_PAGES ARM64_64K_PAGES",
        "ARM64_VA_BITS_36 ARM64_VA_BITS_39 ARM64_VA_BITS_42 ARM64_VA_BITS_47 ARM64_VA_BITS_48 ARM64_VA_BITS_52",
        "KERNEL_GZIP KERNEL_BZIP2 KERNEL_LZMA KERNEL_XZ KERNEL_LZO KERNEL_LZ4 KERNEL_ZSTD KERNEL_UNCOMPRESSED",
    )
)


class Request(Struct, frozen=True, kw_only=True):
    """Options by name (without CONFIG_) with their values as Kconfig writes them; ``base`` is a whole .config or "".

    A value that begins with "?" is asked for, but not missed. ``new`` are options that the source's patches bring: they
    get the defaults that their users get, where tinyconfig would turn them off.
    """

    options: dict[str, str]
    base: str = ""
    title: str = "guest"
    named: tuple[str, ...] = ()  # by the user, over our own
    new: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The fragment to lay over the base."""
        return "".join(
            f"# CONFIG_{name} is not set\n" if value == "n" else f"CONFIG_{name}={value.removeprefix('?')}\n"
            for name, value in sorted(self.options.items())
        )


def over_tiny(tiny: str, request: Request) -> str:
    """What olddefconfig is to complete, from what tinyconfig made: ``request``, and nothing of what is new."""
    off = {f"# CONFIG_{name} is not set" for name in request.new}
    return "".join(f"{line}\n" for line in tiny.splitlines() if line not in off) + request.text


def parse(text: str, name: str) -> dict[str, str]:
    """The options of a fragment.

    Raises:
        UserError: a line that is neither an option nor a comment.
    """
    options: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if match := _LINE.match(line):
            if not _VALUE.fullmatch(match[2]):  # Kconfig would take the default, with a word in a log
                told = f"{match[1]}={match[2]}: an option is y, n, m (small), a number, or a text in quotes"
                raise UserError(f"config {name} line {number}: {told}")
            options[match[1]] = match[2] or "n"
        elif match := _UNSET.match(line):
            options[match[1]] = "n"
        elif line.strip() and not line.lstrip().startswith("#"):
            raise UserError(f"config {name} line {number}: {line.strip()[:60]!r} is not of the form CONFIG_FOO=y")
    return options


def _version(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(".")
    return int(major), int(minor)


def adjusted(
    options: Mapping[str, str], table: str, version: tuple[int, int], arch: Arch, *, force: frozenset[str] = frozenset()
) -> dict[str, str]:
    """``options`` with the adjustments of ``table`` (TOML, see recipes/kconfig/versions.toml) for a version.

    ``force`` are options that stay as they are: the user asked for them by that name.
    """
    result = dict(options)
    for entry in tomllib.loads(table)["adjust"]:
        if "before" in entry and version >= _version(entry["before"]):
            continue
        if "since" in entry and version < _version(entry["since"]):
            continue
        if entry.get("arch", arch) != arch:
            continue
        for name, value in entry["set"].items():
            if name in force:
                continue
            if value:
                result[name] = value
            else:
                result.pop(name, None)
    return result


def is_whole(text: str) -> bool:
    """Whether ``text`` is a complete .config, not a fragment."""
    return "Automatically generated file; DO NOT EDIT" in text or text.count("CONFIG_") > _WHOLE_LINES


def _as_option(word: str) -> str:
    name, _, value = word.partition("=")
    return f"{name.upper().removeprefix('CONFIG_')}={value or 'y'}"


def parts(config: str) -> tuple[str, str]:
    """The file, and the options that are written out behind it; "" of what is not there."""
    words = config.split()
    file, options = config, list(itertools.takewhile(_WORD.fullmatch, reversed(words)))
    for word in options:
        file = file.rstrip().removesuffix(word)
    return (file.rstrip() if options else config), " ".join(reversed(options))


def _written(config: str) -> dict[str, str]:
    """The options that are written out: ``FOO=y BAR=n``."""
    return parse("".join(f"CONFIG_{word.removeprefix('CONFIG_')}\n" for word in config.split()), config)


def _read(config: str) -> tuple[str, dict[str, str]]:
    """The text of a user's fragment or .config, "" without, and the options named: all of a fragment's.

    Options may be written out (``FOO=y BAR=n``), also behind the file over which they go (``my.config FOO=y``).

    Raises:
        UserError: no such file, or not a config.
    """
    name, words = parts(config)
    if name and words and _is_there(config):  # a file of such a name
        name, words = config, ""
    text, options = _file(name) if name else ("", {})
    return text, options | _written(words)


def _is_there(config: str) -> bool:
    try:
        return expanded(config).exists()
    except (OSError, ValueError):
        return False


def _file(config: str) -> tuple[str, dict[str, str]]:
    """Of a whole .config no option is named by the user.

    Raises:
        UserError: no such file, or not a config.
    """
    path = expanded(config)
    try:
        if path.exists() and not path.is_file():
            raise UserError(f"config {config}: it is not a regular file")
        if path.stat().st_size > _LIMIT_BYTES:
            raise UserError(f"config {config}: {path.stat().st_size >> 20} MiB is too large for a config")
        text = path.read_text("utf-8")
    except (OSError, ValueError) as error:
        hint = f"; an option is written {_as_option(config)}" if _LIKE_OPTION.match(config) else ""
        if not hint and _LIKE_OPTIONS.match(config):
            hint = '; options are written config="FOO=y BAR=n"'
        raise UserError(
            f"config {config}: cannot be read ({getattr(error, 'strerror', None) or error}){hint}"
        ) from None
    options = parse(text, config)
    return text, {} if is_whole(text) else options


def check(config: str) -> None:
    """Raises:
    UserError: ``config`` is no path of a fragment or .config, and no options ("" is none, and good).
    """
    if config:
        _read(config)


def asked(config: str) -> frozenset[str]:
    """The options that ``config`` names; none of a whole .config, which names all.

    Raises:
        UserError: no such file, or not a config.
    """
    return frozenset(_read(config)[1] if config else ())


def request(config: str, version: tuple[int, int], arch: Arch) -> Request:
    """What to ask for: ``config`` is a fragment's or .config's path, options written out, both, or "".

    Raises:
        UserError: no such file, or not a config.
    """
    folder = shipped("recipes") / "kconfig"
    text, user = _read(config) if config else ("", {})
    if is_whole(text):
        own = parse((folder / "whole.config").read_text(), "whole.config")
        return Request(options=own | user, base=text, title=Path(config).name, named=tuple(user))
    options = parse((folder / "guest.config").read_text(), "guest.config")
    options |= parse((folder / f"guest-{arch}.config").read_text(), f"guest-{arch}.config")
    options = adjusted(options | user, (folder / "versions.toml").read_text(), version, arch, force=frozenset(user))
    chosen = {name for name, value in user.items() if value == "y"}
    for choice in (one for one in _CHOICES if one & chosen):
        options = {name: value for name, value in options.items() if name not in choice or name in user}
    title = f"guest + {Path(config).name}" if config else "guest"
    return Request(options=options, title=title, named=tuple(user))


def unmet(wanted: Request, result: str, why: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """One line for each option that did not come out as asked, first those that the user named.

    Options that do not exist count as ``n``. ``why`` has the reason, of such as it is known of.
    """
    got = kconfig.parse(result)
    told = {name: f"{got.get(name, 'n')} ({reason})" for name, reason in (why or {}).items()}
    return tuple(
        f"CONFIG_{name}: requested {value}, got {told.get(name) or got.get(name, _NOT_THERE)}"
        for name, value in _other(wanted, got).items()
    )


def lost(wanted: Request, result: str) -> str:
    """The options of a whole .config that move figures and came out otherwise in ``result``, in a line; "" if none.

    Such a .config may be of another compiler (LTO_CLANG) or release (PREEMPT_LAZY), and Kconfig drops what it does not
    know, or takes a default, without a word.
    """
    before = kconfig.parse(wanted.base)
    lines = kconfig.that_may_move_figures(differences(wanted.base, result))
    names = [line.partition(":")[0].removeprefix("CONFIG_") for line in lines]
    had = [
        line
        for line, name in zip(lines, names, strict=True)
        if before.get(name, "n") != "n" and name not in wanted.options
    ]
    moving = kconfig.moving_figures(had)
    if not moving:
        return ""
    more = f" and {len(had) - moving} more" if len(had) > moving else ""
    return (
        f"of the config {wanted.title} came out otherwise, by this source or compiler: {', '.join(had[:moving])}{more}"
    )


def refused(wanted: Request, result: str) -> dict[str, str]:
    """The options that the user asked for and that the .config ``result`` has otherwise, with what was asked."""
    other = _other(wanted, kconfig.parse(result)).items()
    return {name: value for name, value in other if name in wanted.named}


def _other(wanted: Request, got: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in sorted(wanted.options.items(), key=lambda one: (one[0] not in wanted.named, one[0]))
        if not value.startswith("?") and value.strip('"') != got.get(name, "" if value == '""' else "n")
    }


def lacking(result: str, arch: Arch) -> tuple[str, ...]:
    """Options of the .config ``result`` that are off, and without which no guest starts."""
    got = kconfig.parse(result)
    return tuple(name for name in (*_STARTS, *_STARTS_ON[arch]) if got.get(name) != "y")


def differences(baseline: str, patched: str) -> tuple[str, ...]:
    """Options that differ between two .config files, as ``CONFIG_FOO: y -> n``."""
    before, after = kconfig.parse(baseline), kconfig.parse(patched)
    return tuple(
        f"CONFIG_{name}: {before.get(name, 'n')} -> {after.get(name, 'n')}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name, "n") != after.get(name, "n")
    )

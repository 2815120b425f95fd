# SPDX-License-Identifier: GPL-2.0-or-later
"""Image bytes to a cache entry: recognised, unpacked, its config found, stored. One way in for all kinds of kernels."""

from __future__ import annotations

import hashlib
import time

from kdelta.kernel import cache, elf, image, kconfig, symbols


def _config(unpacked: image.Unpacked, text: str) -> tuple[str, dict[str, str], str]:
    """(.config text, facts, where they come from): first what the image says of itself."""
    embedded = unpacked.config or ""
    if embedded and (facts := kconfig.facts(embedded)):
        return embedded, facts, "image"
    if text and (facts := kconfig.facts(text)):
        return text, facts, "package"
    proven = _proven(unpacked)
    return "", proven, "symbols" if proven else ""


def _proven(unpacked: image.Unpacked) -> dict[str, str]:
    """The options that the functions of an image prove, {} where it has no names."""
    table = symbols.from_image(unpacked.plain) if unpacked.plain is not None else symbols.NoSymbols("packed")
    return {} if isinstance(table, symbols.NoSymbols) else kconfig.facts_from_symbols(table.all_names)


def may_be_of(unpacked: image.Unpacked, text: str) -> bool:
    """Whether nothing of an image speaks against the .config ``text``: it has no function of an option that is off."""
    facts = kconfig.facts(text)
    return all(facts.get(option) == "y" for option in _proven(unpacked))


def store(
    name: str, data: bytes, config: str | bytes = "", *, origin: str, package: str = "", version: str = "",
    system_map: bytes = b"", types: bytes = b"",
) -> cache.Stored:  # fmt: skip
    """Store the kernel image ``data``; ``name`` is for messages, what follows where it is known.

    Raises:
        UserError: not a kernel that can be booted.
        HostError: the cache cannot be written.
    """
    unpacked = image.unpack(name, data)
    text = config.decode("utf-8", "replace") if isinstance(config, bytes) else config
    text, facts, source = _config(unpacked, text)
    if unpacked.plain is not None and unpacked.arch == "x86_64" and elf.has_pvh(elf.parse(unpacked.plain)):
        facts = {**facts, "PVH": "y"}
    # An arm64 Image is its own uncompressed form, and so is a vmlinux: nothing is stored twice.
    plain = unpacked.plain if unpacked.plain is not None and unpacked.plain is not unpacked.boot else None
    build_id = elf.build_id(elf.parse(plain)) if plain else None
    if unpacked.form == "vmlinux":
        build_id = elf.build_id(elf.parse(unpacked.boot))
    sha256 = hashlib.sha256(unpacked.boot).hexdigest()
    entry = cache.Entry(
        sha256=sha256,
        vmlinux_sha256=hashlib.sha256(plain).hexdigest() if plain else "",
        release=unpacked.release,
        arch=unpacked.arch,
        form=unpacked.form,
        build_id=build_id,
        origin=origin,
        package=package,
        package_version=version,
        source_sha256=hashlib.sha256(data).hexdigest() if unpacked.boot is not data else "",
        config=facts,
        config_source=source,
        added_s=time.time(),
    )
    return cache.put(entry, unpacked.boot, plain, text, {cache.SYSTEM_MAP: system_map, cache.TYPES: types})

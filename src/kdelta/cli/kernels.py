# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta kernels: what is in the cache, what Debian's archive offers, and what each kernel can be used for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from kdelta.cli import _given, _groups, _kernels
from kdelta.cli._say import say
from kdelta.errors import UserError

if TYPE_CHECKING:
    from kdelta.kernel.cache import Stored
    from kdelta.kernel.debver import DebianKernel
    from kdelta.model import Arch, Kernel

EPILOG = """\b
Examples:
  kdelta kernels list                       kernels in the cache
  kdelta kernels list --available           kernels in Debian's archive
  kdelta kernels fetch debian:6.12 debian:7.3/cloud
  kdelta kernels show debian:6.12           config options, and what needs them
  kdelta kernels prune --older-than 30d --size 2G
"""
LIST_EPILOG = """\b
Examples:
  kdelta kernels list
  kdelta kernels list --available --flavour cloud
  kdelta kernels list --available --arch arm64 --all --json
"""
FETCH_EPILOG = """\b
Examples:
  kdelta kernels fetch debian:6.12
  kdelta kernels fetch 'debian:6.1..7.3/cloud' debian:7.3,arch=arm64
  kdelta kernels fetch deb:./linux-image.deb ./bzImage
"""
SHOW_EPILOG = """\b
Examples:
  kdelta kernels show debian:6.12
  kdelta kernels show /boot/vmlinuz-6.12 --json
  kdelta kernels show running
"""
PRUNE_EPILOG = """\b
Examples:
  kdelta kernels prune --older-than 30d     what was not used for 30 days
  kdelta kernels prune --size 2G            least recently used, until 2 GiB
  kdelta kernels prune --all --keep 6.12    everything but 6.12
  kdelta kernels prune --all --dry-run
"""
_AGE = re.compile(r"^(\d+)\s*([dhw])$")
_AGE_S = {"h": 3600, "d": 86_400, "w": 7 * 86_400}
_SIZE = re.compile(r"^(\d+(?:\.\d+)?)\s*([MGT]?)(i?B)?$", re.IGNORECASE)
_SIZE_BYTES = {"": 1, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_quiet = click.option("--quiet", "-q", is_flag=True, help="No progress on standard error.")


def _print_json(value: object) -> None:
    import json

    say(json.dumps(value, indent=2))


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / (1 << 20):.1f} MiB"


@click.group(cls=_groups.DefaultGroup, epilog=EPILOG)
def command() -> None:
    """Kernels: those in the cache, and those in Debian's archive."""


@command.command("list", epilog=LIST_EPILOG)
@click.option("--available", is_flag=True, help="List Debian's archive instead of the cache.")
@click.option(
    "--arch", type=click.Choice(["x86_64", "arm64"]), default="x86_64", show_default=True, help="With --available."
)
@click.option(
    "--flavour", default=None, metavar="NAME", help="With --available: only this flavour; '' is the generic one."
)
@click.option(
    "--all", "everything", is_flag=True, help="With --available: every version, not the newest of each series."
)
@_json
@_quiet
def list_(available: bool, arch: Arch, flavour: str | None, everything: bool, as_json: bool, quiet: bool) -> None:
    """List kernels."""
    if available:
        _list_available(arch, flavour, everything, as_json, quiet)
        return
    from kdelta.kernel import cache

    _given.refuse(["arch", "flavour", "everything"], "goes with --available, which lists Debian's archive")
    found = cache.entries()
    if as_json:
        _print_json({"kernels": [_stored_json(stored) for stored in found]})
        return
    if not found:
        say(f"no kernels in {cache.root()}; fetch one: kdelta kernels fetch debian:6.12")
        return
    say(f"{'RELEASE':30} {'ARCH':7} {'SIZE':>10}  {'SHA256':12} ORIGIN")
    for stored in found:
        entry = stored.entry
        kind = entry.origin.split(" ")[0]
        say(f"{entry.release:30.30} {entry.arch:7} {_mib(stored.size_bytes):>10}  {entry.sha256:.12} {kind}")
    say(f"{len(found)} kernels, {_mib(sum(stored.size_bytes for stored in found))} in {cache.root()}")


def _list_available(arch: Arch, flavour: str | None, everything: bool, as_json: bool, quiet: bool) -> None:
    from kdelta.cli.progress import Reporter
    from kdelta.kernel import debian

    with Reporter(quiet or as_json) as reporter:
        found = debian.available(arch, reporter)
    if flavour is not None and flavour not in {kernel.flavour for kernel in found}:
        names = ", ".join(sorted({kernel.flavour for kernel in found} - {""}))
        raise UserError(f"--flavour {flavour}: no such flavour for {arch}; there are {names}")
    shown = [kernel for kernel in found if flavour is None or kernel.flavour == flavour]
    if not everything:
        shown = list({(kernel.series, kernel.flavour): kernel for kernel in shown}.values())
    if as_json:
        _print_json({"kernels": [_available_json(kernel) for kernel in shown]})
        return
    say(f"{'SPEC':30} {'RELEASE':34} {'DOWNLOAD':>12}")
    for kernel in shown:
        say(f"{_spec(kernel):30.30} {kernel.release:34.34} {_mib(kernel.size_bytes):>12}")


def _spec(kernel: DebianKernel) -> str:
    flavour = f"/{kernel.flavour}" if kernel.flavour else ""
    arch = ",arch=arm64" if kernel.arch == "arm64" else ""
    return f"debian:{kernel.upstream}{flavour}{arch}"


def _available_json(kernel: DebianKernel) -> dict[str, Any]:
    import msgspec

    fields: dict[str, Any] = msgspec.to_builtins(kernel)
    return {"spec": _spec(kernel), **fields}


def _stored_json(stored: Stored) -> dict[str, Any]:
    import msgspec

    fields: dict[str, Any] = msgspec.to_builtins(stored.entry)
    return {**fields, "folder": str(stored.folder), "size_bytes": stored.size_bytes, "used_s": stored.used_s}


def _resolve(texts: tuple[str, ...], quiet: bool) -> tuple[Kernel, ...]:
    from kdelta.cli.progress import Reporter

    with Reporter(quiet) as reporter:
        return _kernels.fetched(_kernels.named(texts), reporter)


@command.command("fetch", epilog=FETCH_EPILOG)
@click.argument("kernels", nargs=-1, required=True, metavar="KERNEL...")
@_json
@_quiet
def fetch(kernels: tuple[str, ...], as_json: bool, quiet: bool) -> None:
    """Fetch kernels into the cache, so that later commands need no network."""
    import msgspec

    found = _resolve(kernels, quiet or as_json)
    if as_json:
        _print_json({"kernels": [msgspec.to_builtins(kernel) for kernel in found]})
        return
    for kernel in found:
        say(f"{kernel.label:20} {kernel.release:34} {kernel.image_sha256:.12}")


@command.command("show", epilog=SHOW_EPILOG)
@click.argument("kernel", metavar="KERNEL")
@_json
@_quiet
def show(kernel: str, as_json: bool, quiet: bool) -> None:
    """Describe one kernel: where it comes from, and what its config means for the cases."""
    import msgspec

    _kernels.single(kernel, f"kernel {kernel!r}: a range is several kernels; show takes one")
    (found,) = _resolve((kernel,), quiet or as_json)
    facts = _describe(found)
    if as_json:
        _print_json({**msgspec.to_builtins(found), **facts})
        return
    _print_kernel(found, facts)


def _describe(kernel: Kernel) -> dict[str, Any]:
    """What the cache and the symbols add to a Kernel."""
    import os
    from pathlib import Path

    from kdelta.kernel import naming, symbols

    table = naming.load(kernel)
    names = len(table) if isinstance(table, symbols.SymbolTable) else None
    sizes = [os.stat(path).st_size for path in (kernel.image_path, kernel.vmlinux_path) if path]
    return {
        "size_bytes": sum(sizes) if kernel.image_path else None,
        "functions": names,
        "functions_source": table.source if isinstance(table, symbols.SymbolTable) else None,
        "functions_why": table.why if isinstance(table, symbols.NoSymbols) else "",
        "config_source": _config_source(Path(kernel.image_path).parent) if kernel.image_path else "",
    }


def _config_source(folder: Any) -> str:
    from kdelta.kernel import cache

    return next((s.entry.config_source for s in cache.entries() if s.folder == folder), "")


def _print_kernel(kernel: Kernel, facts: dict[str, Any]) -> None:
    from kdelta.kernel.kconfig import FACTS

    functions = (
        f"{facts['functions']} (from {facts['functions_source']})" if facts["functions"] else facts["functions_why"]
    )
    rows = (
        ("release", kernel.release),
        ("arch", kernel.arch),
        ("origin", kernel.origin),
        ("image", kernel.image_path or "not readable here (measured natively)"),
        ("size", _mib(facts["size_bytes"]) if facts["size_bytes"] else "-"),
        ("sha256", kernel.image_sha256 or "-"),
        ("build id", kernel.build_id or "-"),
        ("functions", functions),
        ("command line", kernel.cmdline or "-"),
    )
    for name, value in rows:
        say(f"{name:13} {value}")
    unknown = not kernel.config
    source = {"symbols": ", known from its functions only", "image": ", from the image itself"}.get(
        facts["config_source"], ""
    )
    say(f"\nconfig{source}" + (": unknown, no .config was found" if unknown else ""))
    for fact in FACTS:
        value = kernel.config.get(fact.option)
        if value is not None:
            say(f"  {fact.option:32} {value:4.40} {fact.needed_for if len(value) < 5 else ''}".rstrip())


def _age_s(text: str | None) -> float | None:
    if text is None:
        return None
    match = _AGE.match(text.strip())
    if match is None:
        raise UserError(f"--older-than {text!r} is not an age such as 12h, 30d or 4w")
    return float(int(match[1]) * _AGE_S[match[2]])


def _size_bytes(text: str | None) -> int | None:
    if text is None:
        return None
    match = _SIZE.match(text.strip())
    if match is None:
        raise UserError(f"--size {text!r} is not a size such as 500M or 2G")
    return int(float(match[1]) * _SIZE_BYTES[match[2].upper()])


@command.command("prune", epilog=PRUNE_EPILOG)
@click.option("--older-than", default=None, metavar="AGE", help="Remove what was not used for this long: 12h, 30d, 4w.")
@click.option(
    "--size", default=None, metavar="SIZE", help="Remove the least recently used until the rest fits: 500M, 2G."
)
@click.option("--all", "everything", is_flag=True, help="Remove everything that is not kept.")
@click.option(
    "--keep", multiple=True, metavar="RELEASE", help="Keep releases or SHA-256 sums with this prefix; repeatable."
)
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@_json
def prune(
    older_than: str | None, size: str | None, everything: bool, keep: tuple[str, ...], dry_run: bool, as_json: bool
) -> None:
    """Remove kernels, their maps and build trees from the cache; all can be made again (--size spares build trees)."""
    import time

    from kdelta.kernel import cache, maps, trees

    age_s, limit_bytes = _age_s(older_than), _size_bytes(size)
    if age_s is None and limit_bytes is None and not everything:
        raise UserError("kernels prune: say what to remove: --older-than, --size or --all")
    found = cache.entries()
    kept = frozenset(
        s.entry.sha256 for s in found if keep and (s.entry.release.startswith(keep) or s.entry.sha256.startswith(keep))
    )
    gone = cache.doomed(
        found, now_s=time.time(), keep=kept, older_than_s=age_s, limit_bytes=limit_bytes, everything=everything
    )
    builds = [t for t in trees.trees() if everything or (age_s is not None and time.time() - t.used_s > age_s)]
    rows = maps.doomed(
        list(maps.maps()),
        gone=[s.entry.sha256 for s in gone],
        kept=kept,
        now_s=time.time(),
        older_than_s=age_s,
        everything=everything,
    )
    if not dry_run:
        for one in rows:
            maps.remove(one)
        with cache.locked(cache.root()):
            for stored in gone:
                cache.remove(stored)
        builds = [tree for tree in builds if trees.remove(tree)]  # one in use stays
    if as_json:
        removed = [_stored_json(stored) for stored in gone]
        trees_gone, maps_gone = [tree.name for tree in builds], [one.name for one in rows]
        _print_json({"removed": removed, "build_trees": trees_gone, "maps": maps_gone, "dry_run": dry_run})
        return
    would = "would remove" if dry_run else "removed"
    for stored in gone:
        say(f"{would} {stored.entry.release} ({_mib(stored.size_bytes)})")
    for tree in builds:
        say(f"{would} the build tree {tree.name} ({_mib(tree.size_bytes)})")
    freed = _mib(sum([*(s.size_bytes for s in gone), *(t.size_bytes for t in builds), *(m.size_bytes for m in rows)]))
    counts = f"{len(gone)} of {len(found)} kernels, {len(builds)} build trees, {len(rows)} maps"
    say(f"{counts}, {freed} {'would be freed' if dry_run else 'freed'}")

# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta kernels: what is in the cache, what Debian's archive offers, and what each kernel can be used for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import click

from kdelta.cli import _given, _groups, _kernels, _prune, _terminal
from kdelta.cli._say import say
from kdelta.errors import UserError

if TYPE_CHECKING:
    from kdelta.kernel.cache import Stored
    from kdelta.kernel.debver import DebianKernel
    from kdelta.model import Arch, Kernel
    from kdelta.spec.kernels import KernelSpec

_LONGEST = 72  # characters of a value
_ORIGIN = 60  # characters
_COMMIT = re.compile(r"[0-9a-f]{40}")
_NAME, _RELEASE = 30, 30  # columns, where none needs more

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
_quiet = click.option("--quiet", "-q", is_flag=True, help="No progress on standard error.")


class _Kernels(_groups.DefaultGroup):
    also: ClassVar[dict[str, tuple[str, ...]]] = {"ls": ("list",), "available": ("list", "--available")}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] in ("rm", "remove", "delete", "clean"):
            raise click.UsageError(f"there is no command {args[0]!r}; as in: kdelta kernels prune --only 6.12.118", ctx)
        return super().parse_args(ctx, args)


@click.group(cls=_Kernels, epilog=EPILOG)
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
@_prune.json_option
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
        _prune.print_json({"kernels": [_prune.stored_json(stored) for stored in found]})
        return
    if not found:
        say(f"no kernels in {cache.root()}; fetch one: kdelta kernels fetch debian:6.12")
        return
    rows = [(one.entry.release, _beside(one)) for one in found]
    _say_table(("RELEASE", f"{'ARCH':6} {'SIZE':>10} {'SHA256':12} ORIGIN"), rows)
    told = f"{len(found)} kernels, {_prune.mib(sum(stored.size_bytes for stored in found))} in"
    root = str(cache.root())
    say(f"{told}{' ' if len(told) + len(root) < _terminal.columns() else chr(10)}{root}")


def _beside(stored: Stored) -> str:
    entry = stored.entry
    size = _prune.mib(stored.size_bytes)
    return f"{entry.arch:6} {size:>10} {entry.sha256:.12} {_whence(entry.origin)}"


def _whence(origin: str) -> str:
    """An origin in a word or two: whose package, or the tree by its last name, and up to which patches of which files."""
    source, *patches = origin.partition("; ")[0].split(" +")
    word = source.rpartition(" (")[0] if source.startswith("/") else source.partition(" ")[0]
    tree, at, ref = word.rpartition("/")[2].partition("@")
    tree += " source" if " linux-source " in source else ""
    last = {one.partition(" [")[0]: one for one in patches}
    return " +".join([f"{tree}{at}{ref[:12] if _COMMIT.fullmatch(ref) else ref}", *last.values()])[:_ORIGIN]


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
        _prune.print_json({"kernels": [_available_json(kernel) for kernel in shown]})
        return
    releases = max([_RELEASE, *(len(kernel.release) for kernel in shown)])
    rows = [(_spec(one), f"{one.release:{releases}} {_prune.mib(one.size_bytes):>12}") for one in shown]
    _say_table(("SPEC", f"{'RELEASE':{releases}} {'DOWNLOAD':>12}"), rows)


def _say_table(heads: tuple[str, str], rows: Sequence[tuple[str, str]]) -> None:
    """Rows of a name and what is beside it; where the terminal is too narrow for both, it stands below."""
    longest = max(_NAME, *(len(name) for name, _ in rows))
    beside = max(len(rest) for _, rest in (heads, *rows))
    below = longest + 1 + beside > _terminal.columns()
    for name, rest in (heads, *rows):
        say(f"{name}\n  {rest}" if below else f"{name:{longest}} {rest}")


def _spec(kernel: DebianKernel) -> str:
    flavour = f"/{kernel.flavour}" if kernel.flavour else ""
    arch = ",arch=arm64" if kernel.arch == "arm64" else ""
    return f"debian:{kernel.upstream}{flavour}{arch}"


def _available_json(kernel: DebianKernel) -> dict[str, Any]:
    import msgspec

    fields: dict[str, Any] = msgspec.to_builtins(kernel)
    return {"spec": _spec(kernel), **fields}


def _resolve(specs: Sequence[KernelSpec], quiet: bool) -> tuple[Kernel, ...]:
    from kdelta.cli.progress import Reporter

    with Reporter(quiet) as reporter:
        return _kernels.fetched(specs, reporter)


@command.command("fetch", epilog=FETCH_EPILOG)
@click.argument("kernels", nargs=-1, required=True, metavar="KERNEL...")
@_prune.json_option
@_quiet
def fetch(kernels: tuple[str, ...], as_json: bool, quiet: bool) -> None:
    """Fetch kernels into the cache, so that later commands need no network."""
    import msgspec

    found = _resolve(_kernels.named(kernels), quiet or as_json)
    if as_json:
        _prune.print_json({"kernels": [msgspec.to_builtins(kernel) for kernel in found]})
        return
    for kernel in found:
        say(f"{kernel.label:20} {kernel.release:34} {kernel.image_sha256:.12}")


@command.command("show", epilog=SHOW_EPILOG)
@click.argument("kernel", metavar="KERNEL")
@_prune.json_option
@_quiet
def show(kernel: str, as_json: bool, quiet: bool) -> None:
    """Describe one kernel: where it comes from, and what its config means for the cases."""
    import msgspec

    spec = _kernels.single(kernel, f"kernel {kernel!r}: a range is several kernels; show takes one")
    (found,) = _resolve([spec], quiet or as_json)
    facts = _describe(found)
    if as_json:
        _prune.print_json({**msgspec.to_builtins(found), **facts})
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
        ("size", _prune.mib(facts["size_bytes"]) if facts["size_bytes"] else "-"),
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
            shown = value if len(value) <= _LONGEST else f"{value[: _LONGEST - 1]}…"
            say(f"  {fact.option:32} {shown:4} {fact.needed_for if len(value) < 5 else ''}".rstrip())


command.add_command(_prune.command)

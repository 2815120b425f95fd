# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta kernels prune: make room in the cache."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from kdelta.cli._say import say
from kdelta.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kdelta.kernel import excerpts
    from kdelta.kernel.cache import Stored
    from kdelta.kernel.maps import Map
    from kdelta.kernel.trees import Tree
    from kdelta.machine.room import Kept

EPILOG = """\b
Examples:
  kdelta kernels prune --older-than 30d     what was not used for 30 days
  kdelta kernels prune --size 2G            least recently used, until 2 GiB
  kdelta kernels prune --all --keep 6.12    everything but 6.12
  kdelta kernels prune --only 6.12.118      that release, and nothing else
  kdelta kernels prune --all --dry-run
"""
_AGE = re.compile(r"^(\d+)\s*([dhw])$")
_AGE_S = {"h": 3600, "d": 86_400, "w": 7 * 86_400}
_SIZE = re.compile(r"^(\d+(?:\.\d+)?)\s*([MGT]?)(i?B)?$", re.IGNORECASE)
_SIZE_BYTES = {"": 1, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def print_json(value: object) -> None:
    """Print ``value`` as JSON."""
    import json

    say(json.dumps(value, indent=2))


def mib(size_bytes: int) -> str:
    """A size in MiB."""
    return f"{size_bytes / (1 << 20):.1f} MiB"


def stored_json(stored: Stored) -> dict[str, Any]:
    """A kernel of the cache as JSON."""
    import msgspec

    fields: dict[str, Any] = msgspec.to_builtins(stored.entry)
    return {**fields, "folder": str(stored.folder), "size_bytes": stored.size_bytes, "used_s": stored.used_s}


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


@dataclass(frozen=True, kw_only=True)
class _Doomed:
    """What a prune removes: kernels, the maps of their images, build trees, snapshots of guests, sources' functions."""

    kernels: Sequence[Stored]
    maps: Sequence[Map]
    trees: Sequence[Tree]
    snapshots: Sequence[Kept]
    sources: Sequence[excerpts.Kept]

    @property
    def size_bytes(self) -> int:
        parts = (self.kernels, self.maps, self.trees, self.snapshots, self.sources)
        return sum(one.size_bytes for part in parts for one in part)


def _doomed(
    found: list[Stored], keep: tuple[str, ...], age_s: float | None, limit_bytes: int | None, everything: bool
) -> _Doomed:
    import time

    from kdelta import paths
    from kdelta.kernel import cache, excerpts, maps, trees
    from kdelta.machine import room

    now_s = time.time()
    kept = frozenset(
        s.entry.sha256 for s in found if keep and (s.entry.release.startswith(keep) or s.entry.sha256.startswith(keep))
    )
    gone = cache.doomed(
        found, now_s=now_s, keep=kept, older_than_s=age_s, limit_bytes=limit_bytes, everything=everything
    )
    rows = maps.doomed(
        list(maps.maps()),
        gone=[s.entry.sha256 for s in gone],
        kept=kept,
        now_s=now_s,
        older_than_s=age_s,
        everything=everything,
    )

    def old(used_s: float) -> bool:
        return everything or (age_s is not None and now_s - used_s > age_s)

    saved = room.snapshots(paths.cache_dir() / "snapshots")
    idle = [one for one in saved if old(one.used_s) and now_s - one.used_s > room.IN_USE_S]
    return _Doomed(
        kernels=gone,
        maps=rows,
        trees=[one for one in trees.trees() if old(one.used_s)],
        snapshots=idle,
        sources=[one for one in excerpts.kept() if old(one.used_s)],
    )


def _only(found: Sequence[Stored], wanted: tuple[str, ...]) -> _Doomed:
    """The kernels of these releases or sums; their maps stay for the same image, built anew."""
    gone = [one for one in found if one.entry.release.startswith(wanted) or one.entry.sha256.startswith(wanted)]
    if not gone:
        raise UserError(
            f"kernels prune: no kernel in the cache is {' or '.join(wanted)}; kdelta kernels list shows them"
        )
    return _Doomed(kernels=gone, maps=(), trees=(), snapshots=(), sources=())


def _remove(doomed: _Doomed) -> _Doomed:
    """Remove it; what was removed: a build tree in use stays."""
    from kdelta.kernel import cache, excerpts, maps, trees
    from kdelta.machine import room

    for one in doomed.maps:
        maps.remove(one)
    for source in doomed.sources:
        excerpts.remove(source)
    for saved in doomed.snapshots:
        room.remove(saved)
    with cache.locked(cache.root()):
        for stored in doomed.kernels:
            cache.remove(stored)
    return replace(doomed, trees=[tree for tree in doomed.trees if trees.remove(tree)])


@click.command("prune", epilog=EPILOG)
@click.option("--older-than", default=None, metavar="AGE", help="Remove what was not used for this long: 12h, 30d, 4w.")
@click.option(
    "--size", default=None, metavar="SIZE", help="Remove the least recently used until the rest fits: 500M, 2G."
)
@click.option("--all", "everything", is_flag=True, help="Remove everything that is not kept.")
@click.option(
    "--keep", multiple=True, metavar="RELEASE", help="Keep releases or SHA-256 sums with this prefix; repeatable."
)
@click.option(
    "--only",
    multiple=True,
    metavar="RELEASE",
    help="Remove releases or SHA-256 sums with this prefix alone; repeatable.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@json_option
def command(
    older_than: str | None,
    size: str | None,
    everything: bool,
    keep: tuple[str, ...],
    only: tuple[str, ...],
    dry_run: bool,
    as_json: bool,
) -> None:
    """Remove kernels, their maps, build trees, snapshots and functions of sources from the cache; all can be made again.

    --size spares all but kernels and their maps.
    """
    from kdelta.kernel import cache

    age_s, limit_bytes = _age_s(older_than), _size_bytes(size)
    by_rule = age_s is not None or limit_bytes is not None or everything
    if not by_rule and not only:
        raise UserError("kernels prune: say what to remove: --older-than, --size, --all or --only")
    if only and (by_rule or keep):
        raise UserError(
            "kernels prune: --only names all that is removed; leave --older-than, --size, --all, --keep out"
        )
    if not all((*only, *keep)):
        raise UserError("kernels prune: a release or a sum is missing")
    found = cache.entries()
    gone = _only(found, only) if only else _doomed(found, keep, age_s, limit_bytes, everything)
    if not dry_run:
        gone = _remove(gone)
    if as_json:
        print_json(
            {
                "removed": [stored_json(stored) for stored in gone.kernels],
                "build_trees": [tree.name for tree in gone.trees],
                "maps": [one.name for one in gone.maps],
                "snapshots": [one.stem.name for one in gone.snapshots],
                "sources": [one.name for one in gone.sources],
                "dry_run": dry_run,
            }
        )
        return
    would = "would remove" if dry_run else "removed"
    for stored in gone.kernels:
        say(f"{would} {stored.entry.release} ({mib(stored.size_bytes)})")
    for tree in gone.trees:
        say(f"{would} the build tree {tree.name} ({mib(tree.size_bytes)})")
    counts = f"{len(gone.kernels)} of {len(found)} kernels, {len(gone.trees)} build trees, {len(gone.maps)} maps"
    counts += f", {len(gone.snapshots)} snapshots"
    if gone.sources:
        counts += f", the functions of {len(gone.sources)} sources"
    say(f"{counts}, {mib(gone.size_bytes)} {'would be freed' if dry_run else 'freed'}")

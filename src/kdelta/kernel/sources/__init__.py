# SPDX-License-Identifier: GPL-2.0-or-later
"""All ways to name a kernel, found by file: every module here without an underscore has a ``SOURCE``.

A further distribution is one more file (docs/how-to/add-a-kernel-source.md).
"""

from __future__ import annotations

import importlib
import pkgutil
from difflib import get_close_matches
from functools import cache

from msgspec.structs import replace

from kdelta.errors import UserError
from kdelta.kernel.sources._source import Source
from kdelta.spec.kernels import KernelSpec, joined, packaged, released, split


@cache
def all_sources() -> tuple[Source, ...]:
    """Every source, by prefix; the one without a prefix first.

    Raises:
        ImportError: two of them share a prefix or a kind.
    """
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))
    found: list[Source] = [importlib.import_module(f"{__name__}.{name}").SOURCE for name in names]
    for keys in ([one.prefix for one in found], [kind for one in found for kind in one.kinds]):
        if twice := sorted({key for key in keys if keys.count(key) > 1}):
            raise ImportError(f"{__name__}: two files claim {twice[0]!r}")
    return tuple(sorted(found, key=lambda one: one.prefix))


def source_of(spec: KernelSpec) -> Source:
    """The source that answers for ``spec``."""
    return next(one for one in all_sources() if spec.kind in one.kinds)


def forms() -> str:
    """How kernels are written, for help and messages."""
    return ", ".join(one.forms for one in all_sources())


def parse_kernel(text: str) -> KernelSpec:
    """Parse one kernel name. Pure. A version alone is Debian's, a package alone gets its prefix: see its ``text``.

    Raises:
        UserError: the text fits no form of the grammar.
    """
    bare, named = split(text)
    numbers = released(named)
    if full := f"debian:{numbers}" if numbers else packaged(named):
        named = full
        bare = replace(bare, text=joined(bare, named))
    prefix, colon, body = named.partition(":")
    found = next((one for one in all_sources() if one.prefix and one.prefix == prefix), None)
    if found is not None and found.word != bool(colon):
        if colon and not body:
            raise UserError(f"kernel {text!r}: nothing after {prefix}:, it is written {found.forms}")
        return found.parse(bare, body)
    if not named.strip() or (colon and "/" not in prefix):
        raise UserError(f"kernel {text!r}: not a kernel; {_meant(prefix, body)}forms: {forms()}")
    return next(one for one in all_sources() if not one.prefix).parse(bare, named)


def _meant(prefix: str, body: str) -> str:
    """What somebody may have meant by a prefix that is none."""
    if body.startswith("//") or "@" in prefix:
        return (
            "nothing is downloaded from an address: download an image or a package and name the file, or clone a "
            "repository and name it as in src:./linux@v6.12; "
        )
    if not prefix:
        return ""
    close = get_close_matches(prefix.lower(), [one.prefix for one in all_sources()], n=1, cutoff=0.8)
    if close:
        return f"did you mean {close[0]}:{body}? "
    return "of another distribution than Debian name the package, as deb:FILE or rpm:FILE; "


def written(spec: KernelSpec) -> str:
    """A text that ``parse_kernel`` reads as ``spec``; unlike ``spec.text`` also of one version out of a range."""
    return joined(spec, source_of(spec).write(spec))

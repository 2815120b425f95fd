# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a case is still the one that was seen before: a digest of what it is written in and asked to do.

Comments and white space are nothing. The harness that all cases share is left out, what starts programs too, and of a
program that is installed here its version and its number of operations: they change what comes around a case, or how
often it does the same, not which driver it uses.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from pathlib import Path

import msgspec
from msgspec.structs import replace

from kdelta.model import Case
from kdelta.spec import counted, sources, users
from kdelta.spec.program import PACK
from kdelta.spec.workloads import Workload

_BLANKS = re.compile(r"\s+")
_PLACES = (PACK, counted.START)  # parameters that say where the program was packed


def digest(workload: Workload, case: Case) -> str:
    """Twelve hexadecimal digits of ``case`` and its workload.

    Raises:
        UserError: a source that cannot be read.
    """
    asked = {name: value for name, value in sorted(case.params.items()) if name not in _PLACES}
    program = replace(workload.counted, operations=1) if workload.counted else None
    facts = [workload.exact_ops, workload.endless, program, asked]
    files = () if workload.counted else _codes(workload.source_path)
    data = [hashlib.sha256(path.read_bytes()).hexdigest() for path in workload.data_files.values()]
    return hashlib.sha256(msgspec.json.encode([facts, files, data])).hexdigest()[:12]


@lru_cache(maxsize=512)
def _codes(path: Path) -> tuple[str, ...]:
    """Of a C file, and of those whose names begin with its own: ``path_lookup_tree.c``."""
    beside = (
        one for one in path.parent.iterdir() if one.suffix in (".c", ".h") and one.stem.startswith(f"{path.stem}_")
    )
    return tuple(_code(one) for one in (path, *sorted(beside)))


def _code(path: Path) -> str:
    text = sources.without_comments(users.read(path))
    return hashlib.sha256(_BLANKS.sub(" ", text).encode("utf-8", "surrogateescape")).hexdigest()

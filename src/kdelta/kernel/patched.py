# SPDX-License-Identifier: GPL-2.0-or-later
"""A source with its patches, in its work tree: what the files then are, before they are laid out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from msgspec import Struct

from kdelta.kernel import patch
from kdelta.kernel.origin import SWAYS_CONFIG, Origin
from kdelta.kernel.steps import Step
from kdelta.kernel.worktree import Worktree, encode
from kdelta.model import Progress

Files = Mapping[str, patch.File]


class Patched(Struct, frozen=True, kw_only=True):
    """``files`` are those that differ from the origin's base, ``touched`` those that a patch changes."""

    files: Files
    touched: Files
    diff: str
    notes: tuple[str, ...]

    def config_basis(self, origin: Origin, tree: Worktree) -> str:
        """Identifies what of the source, patched on ``origin`` in ``tree``, can sway its .config."""
        swaying = [(path, file.text or "") for path, file in sorted(self.files.items()) if SWAYS_CONFIG.search(path)]
        return hashlib.sha256(encode(json.dumps([origin.config_base(tree), swaying]))).hexdigest()


def patched(tree: Worktree, origin: Origin, steps: Sequence[Step], progress: Progress) -> Patched:
    """The source ``origin`` with ``steps``, on the locked ``tree``, which is filled where it holds another.

    Raises:
        UserError: a patch that does not fit.
    """
    if tree.base_id != origin.base:
        origin.fill(tree, progress)

    def read(path: str) -> str | None:
        return origin.files[path].text if path in origin.files else tree.read_base(path)

    applied = patch.apply_series(((step.mail, step.take_out) for step in steps), read)
    return Patched(
        files={**origin.files, **applied.files},
        touched=applied.files,
        diff=applied.diff,
        notes=tuple(applied.notes),
    )

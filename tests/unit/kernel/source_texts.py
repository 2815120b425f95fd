# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel source in memory."""

from __future__ import annotations

from kdelta.kernel import definitions


class Texts(dict[str, str]):
    """Paths with their texts, as a ``rewrites.Source``."""

    def where(self, name: str) -> list[str]:
        """The files that define a function."""
        return [path for path, text in sorted(self.items()) if name in definitions.names(path, text)]

    def read(self, path: str) -> str:
        """The text of a file."""
        return self.get(path, "")

    def has_word(self, name: str) -> bool:
        """Whether an identifier occurs anywhere."""
        return any(name.encode() in definitions.words(text.encode()) for text in self.values())

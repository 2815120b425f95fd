# SPDX-License-Identifier: GPL-2.0-or-later
"""Patches that do not fit, and of which the tree has what they call."""

from __future__ import annotations

import pytest

from kdelta.errors import UserError
from kdelta.kernel.mail import steps
from kdelta.kernel.patch import apply

LOCKS = "\tmutex_lock(&thing->mutex);\n\tthing->total++;\n\tmutex_unlock(&thing->mutex);\n"
TREE = "".join(f"void f{n}(struct thing *thing)\n{{\n{LOCKS}}}\n\n" for n in range(4))
PATCH = """\
--- a/fs/a.c
+++ b/fs/a.c
@@ -3,4 +3,5 @@ void f0(struct thing *thing)
 \tif (thing->elsewhere)
 \t\treturn;
+\tmutex_unlock(&thing->mutex);
 \tthing->left--;
 \tthing->right++;
"""


def test_what_a_file_calls_all_over_is_no_sign_that_a_patch_is_in_it() -> None:
    """A patch for another version was "already merged: the names it adds exist (mutex_unlock)"."""
    with pytest.raises(UserError, match=r"hunk 1 .* does not apply within"):
        apply(steps(PATCH.encode(), "p")[0], {"fs/a.c": TREE}.get)

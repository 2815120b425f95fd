# SPDX-License-Identifier: GPL-2.0-or-later
"""Files that a patch copies or renames, and whether they stay executable."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdelta.errors import UserError
from kdelta.kernel.mail import steps
from kdelta.kernel.patch import Applied, File, apply, apply_series
from kdelta.kernel.worktree import Worktree

OLD = "a\nb\nc\n"
BECAME = """\
diff --git a/o.sh b/n.sh
similarity index 90%
{word} from o.sh
{word} to n.sh
--- a/o.sh
+++ b/n.sh
@@ -1,3 +1,3 @@
 a
-b
+B
 c
"""
LATER = "--- a/n.sh\n+++ b/n.sh\n@@ -1,3 +1,3 @@\n a\n-B\n+bb\n c\n"
COPIED, RENAMED = (BECAME.format(word=word) for word in ("copy", "rename"))
NEW = "diff --git a/n.sh b/n.sh\nnew file mode 100755\n--- /dev/null\n+++ b/n.sh\n@@ -0,0 +1,3 @@\n+a\n+B\n+c\n"


def applied(text: str, tree: dict[str, str], *, take_out: bool = False) -> Applied:
    return apply(steps(text.encode(), "p")[0], tree.get, take_out=take_out)


def test_a_copy_leaves_what_it_was_made_of() -> None:
    """git format-patch -C; the refusal named an option that git does not have."""
    made = applied(COPIED, {"o.sh": OLD})
    assert {path: file.text for path, file in made.files.items()} == {"n.sh": "a\nB\nc\n"}
    assert "copy from o.sh\ncopy to n.sh\n" in made.diff
    there = {"o.sh": OLD, "n.sh": "a\nB\nc\n"}
    gone = applied(COPIED, there, take_out=True)
    assert {path: file.text for path, file in gone.files.items()} == {"n.sh": None}
    with pytest.raises(UserError, match="already merged in this tree: it reverts cleanly"):
        applied(COPIED, there)


@pytest.mark.parametrize("text", [COPIED, RENAMED])
def test_a_script_under_another_name_stays_executable(text: str, tmp_path: Path) -> None:
    """A Makefile that executes it could not any more."""
    work = Worktree(tmp_path)
    (work.src).mkdir()
    (work.src / "o.sh").write_text(OLD)
    (work.src / "o.sh").chmod(0o755)
    series = [(steps(one.encode(), "p")[0], False) for one in (text, LATER)]
    work.lay(apply_series(series, work.read_base).files)
    assert (work.src / "n.sh").read_text() == "a\nbb\nc\n"
    assert (work.src / "n.sh").stat().st_mode & 0o777 == 0o755
    work.lay({})
    assert not (work.src / "n.sh").exists() and (work.src / "o.sh").stat().st_mode & 0o777 == 0o755


def test_a_script_that_a_later_patch_changes_stays_executable() -> None:
    series = [(steps(one.encode(), "p")[0], False) for one in (NEW, LATER)]
    assert apply_series(series, lambda _: None).files == {"n.sh": File("a\nbb\nc\n", True)}

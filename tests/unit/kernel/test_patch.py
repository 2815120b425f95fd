# SPDX-License-Identifier: GPL-2.0-or-later
"""Patches against trees: repaired, applied, refused."""

from __future__ import annotations

import difflib
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kdelta.errors import UserError
from kdelta.kernel.diff import parse
from kdelta.kernel.mail import PatchMail, steps
from kdelta.kernel.patch import Applied, apply, apply_series

OLD = """\
#include <linux/fs.h>

static int helper(int value)
{
	if (value < 0)
		return -EINVAL;

	return value + 1;
}

static int work(struct thing *thing, int count)
{
	int total = 0;
	int i;

	for (i = 0; i < count; i++)
		total += helper(thing->values[i]);

	mutex_lock(&thing->mutex);
	thing->total = total;
	mutex_unlock(&thing->mutex);

	return total;
}

/* the end */
"""
NEW = OLD.replace(
    "\tmutex_lock(&thing->mutex);\n",
    "\t/* taken late, on purpose */\n"
    '\tif (total) {\n\t\tpr_debug("%d\\n",\n\t\t\t total);\n\t}\n\n'
    "\tmutex_lock(&thing->mutex);\n",
).replace("\tint i;\n", "\tint i; /* index */\n")  # fmt: skip


def diff(old: str, new: str, path: str = "fs/a.c", context: int = 3) -> str:
    lines = difflib.unified_diff(old.splitlines(True), new.splitlines(True), f"a/{path}", f"b/{path}", n=context)
    return f"diff --git a/{path} b/{path}\n" + "".join(lines)


def mail(text: str, name: str = "my.patch") -> PatchMail:
    (one,) = steps(text.encode("utf-8", "surrogateescape"), name)
    return one


def applied(text: str, tree: dict[str, str], *, take_out: bool = False) -> Applied:
    return apply(mail(text), tree.get, take_out=take_out)


def result(text: str, tree: dict[str, str], path: str = "fs/a.c") -> str | None:
    return applied(text, tree).files[path].text


def collapsed(text: str) -> str:
    return "".join(
        line[:1] + re.sub(r"[ \t]+", " ", line[1:]) if line[:1] in "+- " else line for line in text.splitlines(True)
    )


def test_a_clean_patch_is_applied_and_emitted_as_it_was() -> None:
    made = applied(diff(OLD, NEW), {"fs/a.c": OLD})
    assert made.files["fs/a.c"].text == NEW
    assert made.diff == diff(OLD, NEW)
    assert made.notes == ()


def test_collapsed_tabs_are_taken_from_the_tree_and_added_lines_are_indented_again() -> None:
    made = applied(collapsed(diff(OLD, NEW)), {"fs/a.c": OLD})
    text = made.files["fs/a.c"].text
    assert text is not None
    assert re.sub(r"\s+", " ", text) == re.sub(r"\s+", " ", NEW)
    assert "\tif (total) {\n\t\tpr_debug(" in text
    assert "\n\t}\n" in text
    assert "lost whitespace" in made.notes[0]


def test_the_clean_diff_of_a_repaired_patch_applies_with_git(tmp_path: Path) -> None:
    made = applied(collapsed(diff(OLD, NEW)), {"fs/a.c": OLD})
    (tmp_path / "fs").mkdir()
    (tmp_path / "fs/a.c").write_text(OLD)
    (tmp_path / "clean.diff").write_text(made.diff)
    subprocess.run(["git", "apply", "clean.diff"], cwd=tmp_path, check=True)
    assert (tmp_path / "fs/a.c").read_text() == made.files["fs/a.c"].text


def test_context_lines_without_their_blank_are_known() -> None:
    stripped = "".join(line[1:] if line.startswith(" ") else line for line in diff(OLD, NEW).splitlines(True))
    assert result(stripped, {"fs/a.c": OLD}) == NEW


def test_a_tail_cut_off_a_hunk_is_filled_from_the_tree() -> None:
    cut = "".join(diff(OLD, NEW).splitlines(True)[:-2]) + "-- \n2.39.5\n"
    assert result(cut, {"fs/a.c": OLD}) == NEW


def test_a_cut_that_may_hide_a_change_is_refused() -> None:
    change = diff(OLD, OLD.replace("\treturn total;\n", "\treturn total + 1;\n"))
    lines = change.splitlines(True)
    cut = "".join(lines[: next(i for i, line in enumerate(lines) if line.startswith("-\treturn"))])
    with pytest.raises(UserError, match="hunk 1"):
        applied(cut, {"fs/a.c": OLD})


def test_wrapped_lines_are_joined() -> None:
    long = "\tpr_info('a rather long line that a mail program will surely wrap at seventy columns', total);\n"
    new = OLD.replace("\tthing->total = total;\n", "\tthing->total = total;\n" + long)
    wrapped = diff(OLD, new).replace("surely wrap", "surely\nwrap")
    assert result(wrapped, {"fs/a.c": OLD}) == new


def test_a_moved_place_is_found_and_said() -> None:
    moved = "/* line */\n" * 30 + OLD
    made = applied(diff(OLD, NEW), {"fs/a.c": moved})
    assert made.files["fs/a.c"].text == "/* line */\n" * 30 + NEW
    assert "applied with an offset of +30 lines" in made.notes[0]


def test_what_is_so_of_several_hunks_is_said_once() -> None:
    old = "".join(f"line {n}\n" for n in range(100))
    new = old.replace("line 20\n", "twenty\n").replace("line 50\n", "fifty\n").replace("line 80\n", "eighty\n")
    made = applied(diff(old, new), {"fs/a.c": "/* moved */\n" + old})
    assert made.notes == ("patch my.patch: fs/a.c hunks 1-3 applied with an offset of +1 line",)


def test_files_that_only_moved_share_a_note_without_the_mails_folder() -> None:
    old = "".join(f"line {n}\n" for n in range(100))
    new = old.replace("line 20\n", "twenty\n").replace("line 80\n", "eighty\n")
    names = [f"fs/{letter}.c" for letter in "abcdefgh"]
    files = {name: "/* moved */\n" * (at + 1) + old for at, name in enumerate(names)}
    change = "".join(diff(old, new, name) for name in names)
    (note,) = apply(replace(mail(change), name="/home/me/my.patch"), files.get).notes
    assert note.startswith("patch my.patch: applied with offsets in lines: fs/a.c hunks 1-2 +1, fs/b.c hunks 1-2 +2, ")
    assert note.endswith("fs/f.c hunks 1-2 +6 and 2 other places, the farthest +8")


def test_two_places_that_fit_are_ambiguous() -> None:
    block = "".join(f"\tline{i};\n" for i in range(8))
    change = diff("head\n" * 20 + block, "head\n" * 20 + block.replace("line4;", "line4; added;"))
    with pytest.raises(UserError, match="more than one place"):
        applied(change, {"fs/a.c": "other\n" * 5 + block + "other\n" * 5 + block})


def twice(body: str, drift: int = 0, more: str = "") -> str:
    """Two functions alike with ``body``, as hrtimer_interrupt() and hrtimer_run_queues() have it."""
    filler = "\n".join(f"\tstep{i}();" for i in range(90))
    one = f"void {{}}(void)\n{{{{\n\ta();\n\tb();\n\tc();\n\t{body}\n\td();\n\te();\n\tf();\n{filler}\n}}}}\n"
    return "/* line */\n" * drift + one.format("first") + one.format("second") + more


def test_code_that_stands_twice_is_changed_twice_where_both_have_moved() -> None:
    change = diff(twice("raise();"), twice("__raise();"))
    assert change.count("@@ -") == 2
    made = applied(change, {"fs/a.c": twice("raise();", drift=62)})
    assert made.files["fs/a.c"].text == twice("__raise();", drift=62)
    assert made.notes == ("patch my.patch: fs/a.c hunks 1-2 applied with an offset of +62 lines",)


def test_code_that_stands_three_times_and_is_changed_twice_is_ambiguous() -> None:
    third = twice("raise();").partition("void second")[0].replace("first", "third")
    change = diff(twice("raise();"), twice("__raise();"))
    with pytest.raises(UserError, match=r"hunk 1 .*more than one place"):
        applied(change, {"fs/a.c": twice("raise();", drift=62, more=third)})


def test_many_places_for_many_hunks_end_soon() -> None:
    block = "a\nb\nc\nraise\nd\ne\nf\n"
    change = diff(block * 40, block.replace("raise", "__raise") * 40)
    with pytest.raises(UserError, match="more than one place"):
        applied(change, {"fs/a.c": "x\n" * 30 + block * 60})


def test_one_line_of_fuzz_is_accepted_and_said() -> None:
    change = diff(OLD, OLD.replace("\treturn value + 1;\n", "\treturn value + 2;\n"))
    tree = OLD.replace("\tif (value < 0)\n", "\tif (value <= 0)\n")
    assert " \tif (value < 0)\n" in change
    made = applied(change, {"fs/a.c": tree})
    assert made.files["fs/a.c"].text == tree.replace("value + 1", "value + 2")
    assert "with fuzz 1" in made.notes[0]
    assert "-\treturn value + 1;" in made.diff


def test_two_lines_of_drift_are_refused_with_the_line_that_differs() -> None:
    change = diff(OLD, OLD.replace("\treturn value + 1;\n", "\treturn value + 2;\n"))
    tree = OLD.replace("\tif (value < 0)\n\t\treturn -EINVAL;\n", "\tif (value <= 0)\n\t\treturn -ERANGE;\n")
    with pytest.raises(UserError, match=r"hunk 1 .*line 5 is 'if \(value <= 0\)', the patch has 'if \(value < 0\)'"):
        applied(change, {"fs/a.c": tree})


def test_a_patch_that_is_in_the_tree_is_called_merged() -> None:
    with pytest.raises(UserError, match=r"already merged in this tree: it reverts cleanly; .*-my.patch"):
        applied(diff(OLD, NEW), {"fs/a.c": NEW})


def test_a_revert_of_what_the_tree_does_not_have_is_not_called_merged() -> None:
    """git revert of a patch that was never applied here was "already merged in this tree"."""
    head = 'From: A <a@example.org>\nSubject: [PATCH v2] Revert "fs: check for none"\n\nThis reverts 0123.\n---\n'
    with pytest.raises(UserError, match=r"my.patch: what it reverts is not in this tree, or no more: it reverts"):
        applied(head + diff(NEW, OLD), {"fs/a.c": OLD})


def test_a_merged_patch_is_told_by_the_names_it_adds_when_the_tree_has_moved_on() -> None:
    new = OLD.replace("\treturn total;\n", "\tstash_total_cache(thing);\n\treturn total;\n")
    moved_on = new.replace("mutex_unlock", "mutex_release").replace("return total;", "return stash_total_cache(thing);")
    with pytest.raises(UserError, match=r"already merged .*the names it adds exist \(stash_total_cache\)"):
        applied(diff(OLD, new), {"fs/a.c": moved_on})


def test_a_patch_whose_words_stand_elsewhere_in_the_file_is_not_called_merged() -> None:
    new = OLD.replace("\treturn total;\n", "\tif (unlikely(total))\n\t\tthing->total++;\n\treturn total;\n")
    moved_on = OLD.replace("mutex_unlock", "mutex_release").replace("value < 0", "unlikely(value < 0)")
    with pytest.raises(UserError, match=r"hunk 1 .* does not apply, with"):
        applied(diff(OLD, new), {"fs/a.c": moved_on.replace("return total;", "return total + 1;")})


@pytest.mark.parametrize("ending", ["", "-- \n2.43.0\n\n"])
def test_a_hunk_that_ends_with_a_blank_line_and_does_not_fit_is_not_called_cut_off(ending: str) -> None:
    change = diff(OLD, OLD.replace("\tint total = 0;\n", "\tint total = 1;\n"), context=3).replace("{\n", "[\n")
    assert change.endswith("\n \n \tfor (i = 0; i < count; i++)\n")
    change = change.removesuffix(" \tfor (i = 0; i < count; i++)\n").replace(",7 ", ",6 ")
    for text in (change + ending, change.replace("\n \n", "\n\n") + ending):
        with pytest.raises(UserError, match=r"hunk 1 .* does not apply, with"):
            applied(text, {"fs/a.c": OLD})


def test_figures_between_dashes_in_a_changelog_are_no_file() -> None:
    noted = "v2: faster\n--- before: 1.2 s\n+++ after: 1.1 s\n\n" + diff(OLD, NEW)
    assert applied(noted, {"fs/a.c": OLD}).files["fs/a.c"].text == NEW


def test_a_line_of_blanks_that_are_no_ascii_ends_no_program() -> None:
    change = diff(
        OLD, OLD.replace("\tint total = 0;\n", "\tint total = some_function_with_a_long_name_that_a_mailer_wraps();\n")
    )
    made = applied(change.replace("\n ", "\n\u00a0"), {"fs/a.c": OLD})
    assert "some_function_with" in (made.files["fs/a.c"].text or "")


def test_a_patch_is_taken_out() -> None:
    made = applied(diff(OLD, NEW), {"fs/a.c": NEW}, take_out=True)
    assert made.files["fs/a.c"].text == OLD


def test_taking_out_what_is_not_there_says_that_it_would_apply() -> None:
    with pytest.raises(UserError, match="cannot be reverted, it is not in this tree"):
        applied(diff(OLD, NEW), {"fs/a.c": OLD}, take_out=True)


def test_a_series_builds_on_itself_and_goes_back() -> None:
    third = NEW.replace("/* the end */", "/* the very end */")
    patches = [mail(diff(OLD, NEW)), mail(diff(NEW, third))]
    made = apply_series([(one, False) for one in patches], {"fs/a.c": OLD}.get)
    assert made.files["fs/a.c"].text == third
    back = apply_series([(one, True) for one in reversed(patches)], {"fs/a.c": third}.get)
    assert back.files["fs/a.c"].text == OLD


def test_a_series_that_fails_half_way_applies_nothing() -> None:
    with pytest.raises(UserError, match=r"fs/b\.c is not in this tree"):
        apply_series([(mail(diff(OLD, NEW)), False), (mail(diff(OLD, NEW, "fs/b.c")), False)], {"fs/a.c": OLD}.get)


def test_files_are_made_and_removed() -> None:
    create = (
        "diff --git a/n.c b/n.c\nnew file mode 100755\n--- /dev/null\n+++ b/n.c\n@@ -0,0 +1,2 @@\n+int a;\n+int b;\n"
    )
    made = applied(create, {})
    assert (made.files["n.c"].text, made.files["n.c"].executable) == ("int a;\nint b;\n", True)
    gone = applied(create, {"n.c": "int a;\nint b;\n"}, take_out=True)
    assert gone.files["n.c"].text is None
    with pytest.raises(UserError, match="would be new"):
        applied(create, {"n.c": "something else\n"})


def test_a_rename_moves_the_text() -> None:
    text = "diff --git a/o.c b/n.c\nsimilarity index 90%\nrename from o.c\nrename to n.c\n" + "\n".join(
        diff("a\nb\nc\n", "a\nB\nc\n").splitlines()[1:]
    ).replace("a/fs/a.c", "a/o.c").replace("b/fs/a.c", "b/n.c")
    made = applied(text + "\n", {"o.c": "a\nb\nc\n"})
    assert (made.files["o.c"].text, made.files["n.c"].text) == (None, "a\nB\nc\n")


def test_a_missing_newline_at_the_end_is_kept_and_mended() -> None:
    text = "--- a/n.c\n+++ b/n.c\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n"
    assert result(text, {"n.c": "a\nb"}, "n.c") == "a\nc\n"
    text = "--- a/n.c\n+++ b/n.c\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n\\ No newline at end of file\n"
    assert result(text, {"n.c": "a\nb\n"}, "n.c") == "a\nc"


@pytest.mark.parametrize(
    "path", ["../x", "/etc/passwd", "a/../../x", ".git/hooks/post-checkout", "a/.GIT/x", "a//b", "./a", "a\\b"]
)
def test_hostile_paths_are_refused(path: str) -> None:
    for header in (f"--- a/{path}\n+++ b/{path}\n", f"--- {path}\n+++ {path}\n"):
        with pytest.raises(UserError, match="refused"):
            applied(f"{header}@@ -0,0 +1 @@\n+x\n", {})


def test_an_escaped_hostile_path_is_refused() -> None:
    with pytest.raises(UserError, match="refused"):
        applied('diff --git "a/\\056\\056/x" "b/\\056\\056/x"\nnew file mode 100644\n@@ -0,0 +1 @@\n+x\n', {})


@pytest.mark.parametrize("mode", ["120000", "160000"])
def test_links_and_submodules_are_refused(mode: str) -> None:
    with pytest.raises(UserError, match="link or a submodule"):
        applied(f"diff --git a/x b/x\nnew file mode {mode}\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+/etc\n", {})


def test_a_binary_change_is_refused() -> None:
    text = "diff --git a/x b/x\nindex 1..2 100644\nGIT binary patch\nliteral 3\nzzz\n\n" + diff(OLD, NEW)
    with pytest.raises(UserError, match="binary"):
        applied(text, {"fs/a.c": OLD})


def test_bytes_that_are_not_utf_8_survive() -> None:
    old = OLD + "/* \udce9 */\n"
    new = old.replace("/* the end", "/* the \udce9nd")
    assert result(diff(old, new), {"fs/a.c": old}) == new


lines = st.lists(st.sampled_from(["a;", "\tb();", "\t\tc = 1;", "}", "", "{", "x"]), min_size=0, max_size=40)


@given(lines, lines)
def test_any_clean_diff_applies_and_comes_back(before: list[str], after: list[str]) -> None:
    old, new = ("".join(f"{line}\n" for line in part) for part in (before, after))
    text = "".join(difflib.unified_diff(old.splitlines(True), new.splitlines(True), "a/f.c", "b/f.c"))
    if not text:
        return
    (one,) = steps(text.encode(), "p")
    assert apply(one, {"f.c": old}.get).files["f.c"].text == new
    assert apply(one, {"f.c": new}.get, take_out=True).files["f.c"].text == old


@given(st.text(alphabet="@-+, 0123456789\n abdiff/git.c>", max_size=300))
def test_garbage_is_refused_and_nothing_else(text: str) -> None:
    try:
        for one in steps((text + "\n@@ -1 +1 @@\n").encode(), "p"):
            apply(one, {"a": "a\n", "b": "b\n"}.get)
    except UserError as error:
        assert "\n" not in str(error)


def quoting(lines: list[str], headers: str = "In-Reply-To: <1@b.c>\n") -> bytes:
    body = "".join(f"> {line}" for line in lines)
    return f"From: a@b.c\nSubject: Re: [PATCH] a\n{headers}\nA wrote:\n{body}\nNak.\n".encode()


def test_a_reply_that_quotes_a_part_of_a_patch_is_told_as_what_it_is() -> None:
    lines = diff(OLD, NEW).splitlines(True)
    cut = [line for line in lines if "total += helper" not in line]
    (reply,) = steps(quoting(cut), "reply.eml")
    with pytest.raises(
        UserError,
        match=r"^patch reply\.eml: a reply that quotes a patch.*b4 am -o - 1@b\.c; as quoted: cut off in hunk 1 of f",
    ):
        apply(reply, {"fs/a.c": OLD}.get)
    (nameless,) = steps(quoting(lines[3:], ""), "reply.eml")
    with pytest.raises(UserError, match=r"b4 am -o - MESSAGE-ID; as quoted: a hunk .* comes before any file name"):
        apply(nameless, {"fs/a.c": OLD}.get)


def test_a_patch_taken_from_the_quotes_of_a_reply_says_so() -> None:
    (reply,) = steps(quoting(diff(OLD, NEW).splitlines(True)), "reply.eml")
    applied = apply(reply, {"fs/a.c": OLD}.get)
    assert applied.files["fs/a.c"].text == NEW
    assert applied.notes == ("patch reply.eml: as a reply quotes it; what the reply leaves out is missing",)


def test_a_reply_is_told_as_that_wherever_its_diff_is_read() -> None:
    (nameless,) = steps(quoting(diff(OLD, NEW).splitlines(True)[3:], ""), "reply.eml")
    with pytest.raises(UserError, match="a reply that quotes a patch"):
        parse(nameless)

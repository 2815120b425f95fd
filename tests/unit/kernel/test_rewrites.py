# SPDX-License-Identifier: GPL-2.0-or-later
"""What became of a function between two sources: told where it is certain, and nothing where it is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.kernel import rewrites
from kdelta.kernel.rewrites import Rewrite
from unit.kernel.source_texts import Texts

BODY = "\tint a = 1;\n\n\twork(a);\n\tmore(a);\n\treturn a;"


def c(name: str, body: str = BODY, head: str = "static int") -> str:
    return f"{head} {name}(void)\n{{\n{body}\n}}\n\n"


def told(before: dict[str, str], after: dict[str, str], name: str = "f", arch: str = "x86") -> Rewrite | None:
    return rewrites.of(name, Texts(before), Texts(after), arch)


def test_a_changed_body_is_told_by_its_lines_of_code() -> None:
    new = BODY.replace("work(a);", "/* a comment */\n\twork(a, 2);")
    found = told({"fs/a.c": c("f")}, {"fs/a.c": c("g") + c("f", new)}, "f.isra.0")
    assert found == Rewrite(
        function="f.isra.0", became="changed", before="fs/a.c", after="fs/a.c",
        diff=(" \tint a = 1;", "-\twork(a);", "+\twork(a, 2);", " \tmore(a);"), inline=(False, False),
    )  # fmt: skip


@pytest.mark.parametrize(
    "after",
    [
        c("f"),
        c("f").replace("work", "/* why */ work"),
        c("f").replace("static int f", "static int\nf"),
        c("f") + c("g"),
    ],
)
def test_comments_and_layout_are_no_change(after: str) -> None:
    found = told({"fs/a.c": c("f")}, {"fs/a.c": after})
    assert found is not None and (found.became, found.diff) == ("same", ())


def test_lines_that_differ_in_layout_alone_are_no_part_of_a_diff() -> None:
    new = BODY.replace("\twork(a);\n\tmore(a);", "\tif (a)\n\t\twork(a);\n    more(a);")
    found = told({"fs/a.c": c("f")}, {"fs/a.c": c("f", new)})
    assert found is not None and found.diff == (" \tint a = 1;", "+\tif (a)", " \twork(a);")


def test_that_a_function_became_inline_is_told() -> None:
    found = told({"fs/a.c": c("f")}, {"fs/a.c": c("f", head="static __always_inline int")})
    assert found is not None and (found.became, found.inline) == ("changed", (False, True))


def test_what_moved_is_known_where_it_is_alike() -> None:
    moved = told({"fs/a.c": c("f")}, {"fs/b.c": c("f", BODY + "\n\tend();")})
    assert moved is not None and (moved.became, moved.before, moved.after) == ("changed", "fs/a.c", "fs/b.c")
    other = "\twhile (b)\n\t\tb--;\n\tsleep(b);\n\twake(c);\n\tgoto out;"
    assert told({"fs/a.c": c("f")}, {"net/b.c": c("f", other)}) is None


def test_new_and_gone_are_said_of_names_that_are_nowhere_on_the_other_side() -> None:
    here, without = {"fs/a.c": c("f") + c("g")}, {"fs/a.c": c("g", "\tother();")}
    assert told(without, here) == Rewrite(function="f", became="new", after="fs/a.c")
    assert told(here, without) == Rewrite(function="f", became="gone", before="fs/a.c")
    hidden = {**without, "fs/b.h": "#define f(x) other(x)\n"}
    assert told(hidden, here) is None and told(here, hidden) is None


def test_a_name_alone_that_changed_is_a_new_name() -> None:
    old, new = {"fs/a.c": c("f") + c("g", "\tf();\n\tg2();\n\treturn;")}, {"fs/a.c": c("h") + c("g", "\th();")}
    assert told(old, new) == Rewrite(function="f", became="renamed", before="fs/a.c", other="h")
    assert told(old, new, "h") == Rewrite(function="h", became="renamed", after="fs/a.c", other="f")
    twice = {"fs/a.c": c("h") + c("i")}
    found = told(old, twice)
    assert found is not None and found.became == "gone"  # which of the two is not certain


def test_nothing_is_said_of_a_name_with_two_bodies() -> None:
    one, two = {"fs/a.c": c("f")}, {"fs/a.c": c("f"), "net/b.c": c("f", BODY + "\n\tx();")}
    assert told(one, two) is None and told(two, one) is None and told(two, two) is None
    stub = {"fs/a.c": c("f"), "include/a.h": c("f", "\treturn 0;", "static inline int")}
    found = told(one, stub)
    assert found is not None and found.became == "same"


def test_files_of_another_architecture_do_not_count() -> None:
    both = {"arch/x86/a.c": c("f"), "arch/arm64/a.c": c("f", BODY + "\n\tx();")}
    for arch in ("x86", "arm64"):
        found = told(both, both, arch=arch)
        assert found is not None and found.before == f"arch/{arch}/a.c"


def test_of_a_loop_in_assembly_the_entry_that_chooses_it_is_told() -> None:
    loop = "SYM_FUNC_START_LOCAL(memset_orig)\n\tRET\nSYM_FUNC_END(memset_orig)\n"
    entry = "SYM_FUNC_START(__memset)\n\tALTERNATIVE {}\n\trep stosb\nSYM_FUNC_END(__memset)\n"
    path = "arch/x86/lib/memset_64.S"
    before = {path: entry.format('"jmp memset_orig", "", X86_FEATURE_REP_GOOD') + loop}
    after = {path: entry.format('"jmp memset_orig", "", X86_FEATURE_FSRS') + loop}
    found = told(before, after, "memset_orig")
    assert found is not None and (found.became, found.other) == ("same", "__memset")
    assert '+\tALTERNATIVE "jmp memset_orig", "", X86_FEATURE_FSRS' in found.diff
    same = told(after, after, "memset_orig")
    assert same is not None and (same.other, same.diff) == ("", ())


def test_what_a_function_calls_in_its_file_may_have_changed_in_its_place() -> None:
    calls = c("f", "\ta();\n\tb();\n\tf();", "int")
    rest = c("b", "\td();\n\te(); /* g() */", "static void") + c("e", "\twas();", "void")
    before = c("a", "\twas();", "static void") + c("d", "\twas();", "static void") + c("g", "\twas();", "static void")
    found = told({"fs/a.c": before + rest + calls}, {"fs/a.c": (before + rest).replace("was", "is") + calls})
    assert found is not None and (found.became, found.beneath) == ("same", ("a", "d"))  # e is its own, g is not called
    added = told({"fs/a.c": rest + calls}, {"fs/a.c": before + rest + calls})
    assert added is not None and added.beneath == ("a", "d")


_LINES = st.lists(st.sampled_from(["a();", "b();", "if (c)", "\td();", "return;"]), min_size=3, max_size=12)


@given(_LINES, _LINES)
def test_a_diff_leads_from_one_body_to_the_other(before: list[str], after: list[str]) -> None:
    old, new = ("\n".join(f"\t{line}" for line in lines) for lines in (before, after))
    found = told({"fs/a.c": c("f", old)}, {"fs/a.c": c("f", new)})
    assert found is not None
    assert (found.became == "same") == ([line.strip() for line in before] == [line.strip() for line in after])
    if found.became == "changed":
        counts = [sum(line.startswith(sign) for line in found.diff) for sign in "-+"]
        assert counts[1] - counts[0] == len(after) - len(before)
        for sign, lines in (("-", old), ("+", new)):
            assert {line[1:] for line in found.diff if line.startswith(sign)} <= set(lines.split("\n"))


@pytest.mark.parametrize("name", ["", "[unknown ffffffff81000000]", "[user]", "a b", "f" * 200])
def test_what_is_no_name_is_not_looked_for(name: str) -> None:
    assert told({"fs/a.c": c("f")}, {"fs/a.c": c("f")}, name) is None

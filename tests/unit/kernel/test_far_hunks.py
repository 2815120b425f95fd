# SPDX-License-Identifier: GPL-2.0-or-later
"""Hunks that moved further than is searched with fuzz: taken where git takes them, and there is no doubt."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kdelta.errors import UserError
from kdelta.kernel.mail import steps
from kdelta.kernel.patch import Applied, apply

FAR = "/* line */\n" * 300
HEADER = (
    "diff --git a/kernel/sched/fair.c b/kernel/sched/fair.c\n--- a/kernel/sched/fair.c\n+++ b/kernel/sched/fair.c\n"
)
HUNK = (
    f"{HEADER}@@ -7,5 +7,5 @@ static int detach_tasks(struct lb_env *env)\n"
    " \tint found = 0;\n \n-\tscan(env);\n+\tif (!found) scan(env);\n \n \treturn found;\n"
)


def function(name: str, call: str = "scan(env);") -> str:
    body = f"\tint found = 0;\n\n\t{call}\n\n\treturn found;\n"
    return f"static int {name}(struct lb_env *env)\n{{\n{body}}}\n\n"


def applied(tree: str, *, take_out: bool = False) -> Applied:
    (mail,) = steps(HUNK.encode(), "my.patch")
    return apply(mail, {"kernel/sched/fair.c": tree}.get, take_out=take_out)


def test_it_is_taken_as_git_takes_it_and_the_offset_is_said(tmp_path: Path) -> None:
    moved = FAR + function("can_migrate", "other(env);") + function("detach_tasks")
    made = applied(moved)
    (tmp_path / "kernel/sched").mkdir(parents=True)
    (tmp_path / "kernel/sched/fair.c").write_text(moved)
    subprocess.run(["git", "apply"], input=HUNK.encode(), cwd=tmp_path, check=True)
    assert made.files["kernel/sched/fair.c"].text == (tmp_path / "kernel/sched/fair.c").read_text()
    (note,) = made.notes
    assert "fair.c hunk 1 applied with an offset of +305 lines" in note


def test_a_label_before_it_hides_no_function() -> None:
    labelled = function("detach_tasks").replace("{\n", "{\nagain:\n", 1)
    assert applied(FAR + labelled).files


def test_the_same_lines_of_another_function_are_not_those_it_means() -> None:
    with pytest.raises(UserError, match=r"fair.c hunk 1 \(@@ -7,5 \+7,5 @@\) does not apply, with an offset or fuzz"):
        applied(FAR + function("detach_one_task"))


def test_two_places_are_ambiguous() -> None:
    twice = function("detach_tasks")
    with pytest.raises(UserError, match=r"hunk 1 .* does not apply"):
        applied(FAR + twice + FAR + twice)


def test_what_is_merged_is_not_made_again_where_the_lines_stand_once_more() -> None:
    merged = function("detach_tasks", "if (!found) scan(env);")
    body = function("detach_tasks").partition("{\n")[2]
    with pytest.raises(UserError, match="already merged in this tree: it reverts cleanly"):
        applied("\n" * 4 + merged.rstrip("}\n") + "\n\t/* in here */\n" * 300 + body)


def test_what_is_merged_and_has_moved_is_merged_and_can_be_taken_out() -> None:
    moved = FAR + function("detach_tasks", "if (!found) scan(env);")
    with pytest.raises(UserError, match="already merged"):
        applied(moved)
    assert applied(moved, take_out=True).files["kernel/sched/fair.c"].text == FAR + function("detach_tasks")

# SPDX-License-Identifier: GPL-2.0-or-later
"""Options that guard what a patch changes, and that a config has off."""

from __future__ import annotations

import difflib

import pytest

from kdelta.kernel import diff, guards, mail
from kdelta.kernel.guards import LeftOut

PATCH = """\
Subject: [PATCH] pipe: skip

---
diff --git a/fs/Kconfig b/fs/Kconfig
--- a/fs/Kconfig
+++ b/fs/Kconfig
@@ -1,2 +1,5 @@
 config IO_WQ
 \tbool
+config PIPE_SKIP
+\tbool "skip"
+\tdefault n
diff --git a/fs/pipe.c b/fs/pipe.c
--- a/fs/pipe.c
+++ b/fs/pipe.c
@@ -1,3 +1,4 @@
 int a;
-#ifdef CONFIG_WATCH_QUEUE
+#if IS_ENABLED(CONFIG_PIPE_SKIP) || defined(CONFIG_WATCH_QUEUE_MODULE)
+#ifdef CONFIG_PPC
 int b; /* CONFIG_NUMA */
"""


@pytest.mark.parametrize(
    ("options", "off"),
    [
        ({}, ("PIPE_SKIP",)),
        ({"PIPE_SKIP": "n", "WATCH_QUEUE": "n", "NUMA": "n"}, ("PIPE_SKIP", "WATCH_QUEUE")),
        ({"PIPE_SKIP": "y", "WATCH_QUEUE": "m"}, ()),
    ],
)
def test_options_that_changed_lines_declare_or_ask_for_are_told_where_they_are_off(
    options: dict[str, str], off: tuple[str, ...]
) -> None:
    [one] = mail.steps(PATCH.encode(), "x.patch")
    assert guards.off(diff.parse(one), options) == off


@pytest.mark.parametrize(
    ("was", "now", "off"),
    [
        ("static bool early = IS_ENABLED(CONFIG_ON);", "static bool early = true;", ()),
        ("\t\t= IS_ENABLED(CONFIG_ON);", "\t\t= 1;", ()),
        ("\tIS_BUILTIN(CONFIG_ON),", "\t1,", ()),
        ("\treturn IS_ENABLED(CONFIG_ON);", "\treturn true;", ()),
        ("static bool early = false;", "static bool early = IS_ENABLED(CONFIG_ON);", ("ON",)),
        ("\tif (IS_ENABLED(CONFIG_ON))", "\tif (1)", ("ON",)),
        ("\tif (IS_ENABLED(CONFIG_ON) && a(1, 2))", "\tif (1)", ("ON",)),
    ],
)
def test_what_an_option_gave_and_a_patch_takes_out_is_looked_at_with_it_off(
    was: str, now: str, off: tuple[str, ...]
) -> None:
    """init_on_alloc=1 whatever the config says: "NOT LOOKED AT", and with the option on both kernels are the same."""
    text = f"--- a/mm/init.c\n+++ b/mm/init.c\n@@ -1,2 +1,2 @@\n int a;\n-{was}\n+{now}\n"
    [one] = mail.steps(f"Subject: [PATCH] mm: init\n\n---\n{text}".encode(), "x.patch")
    assert guards.off(diff.parse(one), {"ON": "n"}) == off


STANDING = """\
int a;
#if defined(CONFIG_NUMA) && IS_ENABLED(CONFIG_KEYS)	/* both */
int b;
# ifndef CONFIG_SMP
int c;
# else
int d;
# endif
#elif CONFIG_HZ > 100
int e;
#else
int f;
#endif
#ifdef _LINUX_PIPE_FS_I_H
int g;
#endif
"""


@pytest.mark.parametrize(
    ("name", "options", "found"),
    [
        ("a", {}, LeftOut()),
        ("b", {"NUMA": "n", "KEYS": "m"}, LeftOut(options=("NUMA",))),
        ("b", {"NUMA": "y"}, LeftOut(parts=("fs/pipe.c (its part under CONFIG_KEYS)",))),
        ("c", {"NUMA": "y", "KEYS": "y", "SMP": "y"}, LeftOut(parts=("fs/pipe.c (its part for CONFIG_SMP=n)",))),
        ("d", {"NUMA": "y", "KEYS": "y", "SMP": "y"}, LeftOut()),
        ("d", {"NUMA": "y", "KEYS": "y", "SMP": "n"}, LeftOut(options=("SMP",))),
        ("e", {}, LeftOut()),
        ("f", {}, LeftOut()),
        ("g", {}, LeftOut()),
    ],
)
def test_options_that_changed_lines_stand_under_are_found(name: str, options: dict[str, str], found: LeftOut) -> None:
    """A change under "#ifdef CONFIG_WATCH_QUEUE", which is off, left "identical" code, and nothing said why."""
    text = STANDING.replace(f"int {name};", f"long {name};")
    changed = difflib.unified_diff(STANDING.split("\n"), text.split("\n"), "a/fs/pipe.c", "b/fs/pipe.c", lineterm="")
    assert guards.around(changed, lambda _: text, options) == found


def test_boot_parameters_that_a_patch_brings_are_found() -> None:
    lines = ('__setup("pipe_strict", a);', 'early_param("slow=", b);', "module_param_named(limit, c, uint, 0);")
    added = "".join(f"+{line}\n" for line in lines)
    patch = f"--- a/fs/my-pipe.c\n+++ b/fs/my-pipe.c\n@@ -1,1 +1,4 @@\n int a;\n-core_param(gone, d, int, 0);\n{added}"
    [one] = mail.steps(patch.encode(), "x.patch")
    assert guards.parameters(diff.parse(one)) == ("pipe_strict", "slow=", "my_pipe.limit=")

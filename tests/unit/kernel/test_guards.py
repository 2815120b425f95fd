# SPDX-License-Identifier: GPL-2.0-or-later
"""Options that guard what a patch changes, and that a config has off."""

from __future__ import annotations

import pytest

from kdelta.kernel import diff, guards, mail

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

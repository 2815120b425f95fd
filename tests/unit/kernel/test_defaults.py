# SPDX-License-Identifier: GPL-2.0-or-later
"""Defaults of Kconfig that a patch changes, and that a config does not follow."""

from __future__ import annotations

import pytest

from kdelta.kernel import defaults, diff, mail

DEFAULTS = """\
Subject: [PATCH] other defaults

---
diff --git a/mm/Kconfig b/mm/Kconfig
--- a/mm/Kconfig
+++ b/mm/Kconfig
@@ -10,3 +10,4 @@ config ZEROED
 \tbool "zeroed"
+\tdefault y
 \tdepends on !KMSAN
 \thelp
@@ -20,5 +21,8 @@ menu "other"
 config SIZE
 \tint "size"
-\tdefault 3
+\tdefault 5 if SLUB
+config FRESH
+\tbool
+\tdefault y
 config SAME
-\tdef_bool n
+\tdef_bool y
"""
HZ = """\
Subject: [PATCH] Kconfig.hz: 1000 Hz by default

---
diff --git a/kernel/Kconfig.hz b/kernel/Kconfig.hz
--- a/kernel/Kconfig.hz
+++ b/kernel/Kconfig.hz
@@ -5,6 +5,6 @@
{before}
 choice
 \tprompt "Timer frequency"
-\tdefault HZ_250
+\tdefault HZ_1000
 \thelp
 \t Allows the configuration of the timer frequency.
"""
ONE = """\
Subject: [PATCH] one default

---
diff --git a/mm/Kconfig b/mm/Kconfig
--- a/mm/Kconfig
+++ b/mm/Kconfig
@@ -10,{old} +10,{new} @@ config ONE
 \tbool "one"
{lines}
 \thelp
"""
X86 = {"X86": "y", "SMP": "y", "NUMA": "n", "HZ": "250"}


def _told(text: str, options: dict[str, str]) -> tuple[str, ...]:
    [one] = mail.steps(text.encode(), "x.patch")
    return defaults.not_followed(diff.parse(one), options)


def _one(lines: str) -> str:
    old, new = (2 + sum(line[:1] != other for line in lines.split("\n")) for other in "+-")
    return ONE.format(lines=lines, old=old, new=new)


def test_a_default_that_a_patch_changes_is_told_where_the_config_has_another_value() -> None:
    """ "default y" of init_on_alloc was "machine code and data are identical", and no word on why."""
    options = {"ZEROED": "n", "SIZE": "3", "SAME": "y", "FRESH": "n", "SLUB": "y"}
    assert _told(DEFAULTS, options) == ("ZEROED=y", "SIZE=5")


@pytest.mark.parametrize("before", [" ", " config SPEED", " endmenu"])
def test_the_default_of_a_choice_is_told_by_the_option_that_it_is(before: str) -> None:
    """1000 Hz by default was "machine code and data are identical", or a value of the entry in front of the choice."""
    patch = HZ.replace("{before}", before)
    options = {"HZ_250": "y", "HZ_1000": "n", "HZ": "250", "SPEED": "n"}
    assert _told(patch, options) == ("HZ_1000=y",)
    assert _told(patch, {"HZ_250": "n", "HZ_1000": "y"}) == ()


@pytest.mark.parametrize(
    ("lines", "has", "told"),
    [
        ("+\tdefault y if ARM64", "n", ""),  # not on this architecture
        ("+\tdefault y if X86", "n", "ONE=y"),
        ("+\tdefault y if ARM64 || (X86 && !NUMA)", "n", "ONE=y"),
        ('+\tdefault y if HZ = "1000"', "n", ""),
        ("+\tdefault y if HZ != 1000 # for all others", "n", "ONE=y"),
        ("+\tdefault y if GCC_VERSION >= 120000", "n", "ONE=y"),  # cannot be told: better said
        ("+\tdefault y if $(cc-option,-fsomething)", "n", "ONE=y"),
        ("-\tdefault y", "y", "ONE=n"),
        ("-\tdefault y", "n", ""),
        ("-\tdefault y\n+\tdefault y if EXPERT", "y", "ONE=n"),
        ("-\tdefault y\n+\tdefault y if X86", "n", ""),  # as it was
        (" \tdefault n if X86\n+\tdefault y", "n", ""),  # the first that holds counts
        ("-\tdefault 17\n+\tdefault 20 if SMP", "17", "ONE=20"),
        ("-\tdefault 17", "17", ""),
        ("+\tdefault y if (", "n", "ONE=y"),
        ("+\tdefault y if ! " + "!" * 99 + "NUMA", "n", "ONE=y"),
    ],
)
def test_a_default_counts_where_its_condition_holds(lines: str, has: str, told: str) -> None:
    """ "default y if ARM64" was told of x86-64, and of a default that was taken out nothing was."""
    assert _told(_one(lines), {**X86, "ONE": has}) == ((told,) if told else ())


def test_of_an_option_that_this_config_cannot_have_nothing_is_told() -> None:
    assert _told(_one("+\tdefault y"), X86) == ()


def test_an_option_is_brought_where_it_is_declared_and_not_where_it_moves() -> None:
    [one] = mail.steps(DEFAULTS.encode(), "x.patch")
    assert defaults.brought(diff.parse(one)) == ("FRESH",)
    moved = ONE.format(lines="-config TWO\n-\tbool\n+config TWO\n+\tbool\n+config THREE", old=4, new=5)
    [one] = mail.steps(moved.encode(), "x.patch")
    assert defaults.brought(diff.parse(one)) == ("THREE",)

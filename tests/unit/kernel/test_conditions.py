# SPDX-License-Identifier: GPL-2.0-or-later
"""Options that conditions in C put lines under."""

from __future__ import annotations

import difflib
import time

import pytest

from kdelta.kernel import conditions, guards
from kdelta.kernel.guards import LeftOut

SOURCE = """\
static int f(struct mm *mm)
{
	int a;

	if (IS_ENABLED(CONFIG_LAZIES)) {
		for (;;)
			b(mm);
		c("}");		/* } */
	} else {
		d(mm);
	}
	if (mm && IS_ENABLED(CONFIG_NUMA))
		e(mm,
			p);
	else
		f(mm);
	if (IS_ENABLED(CONFIG_NUMA) || mm)
		g(mm);
	if (!IS_ENABLED(CONFIG_KEYS))
		return -EOPNOTSUPP;
	h(mm);
	switch (mm->i) {
	case 1:
		if (!IS_BUILTIN(CONFIG_PROC)) {
			return 1;
		}
		i(mm);
		break;
	case 2:
		j(mm);
	}
	if (!IS_ENABLED(CONFIG_SLOW))
		return 1;
	if (n(mm))
		goto out;
out:
	o(mm);
	return 0;
}

int k(void)
{
	l();
#if (!IS_ENABLED(CONFIG_KEYS))
	return 1;
#endif
	m();
}
"""
OFF = dict.fromkeys(("LAZIES", "NUMA", "KEYS", "PROC"), "n")


@pytest.mark.parametrize(
    ("name", "options", "found"),
    [
        ("int a;", OFF, LeftOut()),
        ("b(mm);", OFF, LeftOut(options=("LAZIES",))),
        ('c("}");', OFF, LeftOut(options=("LAZIES",))),
        ("b(mm);", {"LAZIES": "y"}, LeftOut()),
        ("b(mm);", {}, LeftOut(parts=("mm/x.c (its part under CONFIG_LAZIES)",))),
        ("d(mm);", OFF, LeftOut()),
        ("d(mm);", {"LAZIES": "y"}, LeftOut(parts=("mm/x.c (its part for CONFIG_LAZIES=n)",))),
        ("\t\tp);", OFF, LeftOut(options=("NUMA",))),
        ("f(mm);", {"NUMA": "y"}, LeftOut()),
        ("g(mm);", OFF, LeftOut()),
        ("h(mm);", OFF, LeftOut(options=("KEYS",))),
        ("i(mm);", OFF, LeftOut(options=("KEYS", "PROC"))),
        ("j(mm);", OFF, LeftOut(options=("KEYS",))),
        ("goto out;", {"KEYS": "y", "SLOW": "n"}, LeftOut(options=("SLOW",))),
        ("o(mm);", {"KEYS": "y", "SLOW": "n"}, LeftOut()),
        ("l();", OFF, LeftOut()),
        ("m();", OFF, LeftOut()),
    ],
)
def test_conditions_that_changed_lines_stand_under_are_found(
    name: str, options: dict[str, str], found: LeftOut
) -> None:
    """A change within "if (IS_ENABLED(CONFIG_X)) {", with X off, was "identical": nothing to measure."""
    text = SOURCE.replace(f"\t{name}", f"\t{name} /* */")
    assert text != SOURCE
    changed = difflib.unified_diff(SOURCE.split("\n"), text.split("\n"), "a/mm/x.c", "b/mm/x.c", lineterm="")
    assert guards.around(changed, lambda _: text, options) == found


@pytest.mark.parametrize(
    ("condition", "needed"),
    [
        ("IS_ENABLED(CONFIG_A) && defined(CONFIG_B_MODULE)", (("A", True), ("B", True))),
        ("!IS_ENABLED(CONFIG_A) && (x || y)", (("A", False),)),
        ("defined(CONFIG_A) && defined(CONFIG_B) || defined(CONFIG_C)", ()),
        ("!(defined(CONFIG_A) && defined CONFIG_B)", ()),
        ("IS_ENABLED(CONFIG_A) ? x : y", ()),
    ],
)
def test_only_what_must_hold_is_told(condition: str, needed: conditions.Terms) -> None:
    assert conditions.terms(condition) == needed


@pytest.mark.parametrize("piece", ["if (IS_ENABLED(CONFIG_A)) {\n", "if (IS_ENABLED(CONFIG_A)) (", "if ((", "/*"])
def test_text_without_end_is_read_at_once(piece: str) -> None:
    began = time.process_time()
    conditions.ranges("IS_ENABLED(CONFIG_A)" + piece * 20_000)
    assert time.process_time() - began < 10

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
    with pytest.raises(UserError, match=r"hunk 1 .* does not apply, with"):
        apply(steps(PATCH.encode(), "p")[0], {"fs/a.c": TREE}.get)


QUIRKS = """\
--- a/drivers/quirks.c
+++ b/drivers/quirks.c
@@ -20,4 +20,9 @@ static const struct dmi_system_id orientation_data[] = {
 \t\t},
 \t\t.driver_data = (void *)&lcd800x1280_rightside_up,
+\t}, {\t/* AYANEO 3 */
+\t\t.matches = {
+\t\t  DMI_MATCH(DMI_PRODUCT_NAME, "AYANEO 3"),
+\t\t},
+\t\t.driver_data = (void *)&lcd1080x1920_rightside_up,
 \t}, {\t/* AYANEO AIR */
 \t\t.matches = {
"""


def test_a_table_that_has_another_entry_with_the_same_names_has_not_this_one() -> None:
    """Of five lines three stand in any entry: a quirk for a machine that 7.3 does not know was told as merged."""
    entry = '\t}, {\n\t\t.matches = {\n\t\t  DMI_MATCH(DMI_PRODUCT_NAME, "OTHER"),\n\t\t},\n'
    table = f"{entry}\t\t.driver_data = (void *)&lcd1080x1920_rightside_up,\n\t}}\n"
    with pytest.raises(UserError, match=r"hunk 1 .* does not apply, with"):
        apply(steps(QUIRKS.encode(), "p")[0], {"drivers/quirks.c": table}.get)


def test_digits_of_another_number_are_no_name() -> None:
    """0x3625 of another maker's device was x3625, a name that "exists"."""
    patch = PATCH.replace("mutex_unlock(&thing->mutex);", "{ USB_DEVICE(0x13d3, 0x3625) },")
    tree = "\t{ USB_DEVICE(0x13d3, 0x3624) },\n\t{ USB_DEVICE(0x3625, 0x010b) },\n"
    with pytest.raises(UserError, match=r"hunk 1 .* does not apply, with"):
        apply(steps(patch.encode(), "p")[0], {"fs/a.c": tree}.get)


def test_one_line_that_stands_in_another_function_is_not_this_one() -> None:
    """Of a series whose second patch did not fit that was said, as the first had added a barrier elsewhere."""
    tree = "void f4(struct thing *thing)\n{\n\tcond_resched();\n\tthing->first++;\n}\n\n" + TREE
    patch = PATCH.replace("mutex_unlock(&thing->mutex);", "cond_resched();")
    with pytest.raises(UserError, match=r"hunk 1 .* does not apply, with"):
        apply(steps(patch.encode(), "p")[0], {"fs/a.c": tree}.get)
    beside = tree.replace("thing->first++;", "thing->left--;\n\tthing->middle++;")
    with pytest.raises(UserError, match=r"already merged .*the names it adds exist \(cond_resched\)"):
        apply(steps(patch.encode(), "p")[0], {"fs/a.c": beside}.get)

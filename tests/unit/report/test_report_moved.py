# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of lines that move, and the sentence on a row of transfers."""

from __future__ import annotations

from msgspec.structs import replace

from kdelta.attribution.because import line, line_differences, significant_lines
from kdelta.model import MovedLine, Profile, Waited
from kdelta.report import flow
from kdelta.report.moved import moved_lines, told
from kdelta.results import detail
from kdelta.results.types import CellName, MovedDiff, MovedRow

BY = {"queued_write_lock_slowpath": (0, 30), "[others]": (90, 0), "_raw_read_lock": (10, 5)}


def _profile(**transfers: int) -> Profile:
    moved = tuple(
        MovedLine(
            name=name, reads=0, writes=count, by=BY, unshared=count if name == "counters" else 0, beside=("cachep",)
        )
        for name, count in transfers.items()
    )
    return Profile(ops=10, functions={}, total=(0,) * 7, moved=moved)


BEFORE = _profile(tasklist_lock=58, counters=20, pidmap_lock=7)
AFTER = _profile(tasklist_lock=46, counters=20, input_pool=9)


def test_lines_that_move_stand_hottest_first_with_who_moves_them() -> None:
    rows = moved_lines(BEFORE, AFTER, None)
    assert rows[4].split()[:4] == ["tasklist_lock", "5.80", "4.60", "-1.20"]
    assert rows[4].endswith("  queued_write_lock_slowpath writes, _raw_read_lock reads and writes, [others] reads")
    assert [row.split()[0] for row in rows[4:-1]] == ["tasklist_lock", "counters", "input_pool", "pidmap_lock"]
    assert rows[5].endswith("(100 % false sharing: cachep)")
    alone = moved_lines(BEFORE, None, None)
    assert [row.split()[:2] for row in alone[4:-1]] == [
        ["tasklist_lock", "5.80"],
        ["counters", "2.00"],
        ["pidmap_lock", "0.70"],
    ]
    assert "and 3 more (--all)" in moved_lines(BEFORE, AFTER, 1)


def test_that_objects_are_in_a_larger_cache_is_told_where_they_go_by_its_name() -> None:
    rows = moved_lines(_profile(**{"kmalloc-64+0x0": 58}), _profile(**{"kmalloc-192+0x0": 46}), None)
    assert rows[4].split()[:4] == ["kmalloc-192+0x0", "5.80", "4.60", "-1.20"]
    assert "What was in kmalloc-64 before is in kmalloc-192 after: it goes by that on both sides." in rows


def test_what_was_added_up_of_further_lines_is_no_line_and_stands_last() -> None:
    many, few = _profile(tasklist_lock=58, **{"[others]": 170}), _profile(tasklist_lock=58, **{"[others]": 10})
    for limit in (None, 1):
        rows = moved_lines(few, many, limit)
        assert [row.split()[0] for row in rows[4:6]] == ["tasklist_lock", "[others]"]
        assert not any("more (--all)" in row for row in rows)
    assert [row.line for row in detail.moved_rows(few, many)] == ["tasklist_lock", "[others]"]
    assert told("transfers", line_differences(few, many)).startswith(
        "other lines together move 17.0 times more (1.00 -> 17.00 per operation)"
    )


def test_locks_found_taken_stand_below_with_who_waits_and_of_how_many_times() -> None:
    before = Waited(function="queued_write_lock_slowpath", caller="do_exit", lock="tasklist_lock", times=20, taken=40)
    after = Waited(function="queued_write_lock_slowpath", caller="do_exit", lock="tasklist_lock", times=5, taken=10)
    other = Waited(function="lockref_get failed", caller="path_get", lock="", times=1, taken=10)
    rows = moved_lines(replace(BEFORE, waits=(before, other)), replace(AFTER, waits=(after,)), 1)
    table = rows[rows.index("locks found taken and reads in vain, times per operation") + 3 :]
    assert table[0].split()[:4] == ["tasklist_lock", "2.00", "0.50", "-1.50"]
    assert table[0].endswith("  do_exit (queued_write_lock_slowpath), of 4.00 -> 1.00")
    assert table[1] == "and 1 more (--all)"
    alone = moved_lines(replace(BEFORE, waits=(other,)), None, None)
    assert alone[-2].split()[:2] == ["?", "0.10"]


def test_waits_too_few_for_a_figure_are_left_out_and_no_change_has_no_sign() -> None:
    """A table of 0.00, 0.00 and -0.00 said nothing, under a heading that promised waits."""
    rare = Waited(function="read_seqcount_retry", caller="step_into", lock="dentry.d_seq", times=1, taken=2)
    before, after = (replace(side, ops=1000, waits=(rare,)) for side in (BEFORE, AFTER))
    assert not any(row.startswith("locks found taken") for row in moved_lines(before, after, 12))
    rows = moved_lines(before, after, None)
    assert next(row for row in rows if "step_into" in row).split()[1:4] == ["0.00", "0.00", "0.00"]
    less = replace(after, waits=(replace(rare, times=0),))
    assert next(row for row in moved_lines(before, less, None) if "step_into" in row).split()[3] == "0.00"


def test_what_else_lies_in_a_line_stands_beside_its_name() -> None:
    shared = MovedLine(name="nr_threads", reads=0, writes=9, also=("task_struct_cachep",), by={"copy_process": (0, 9)})
    rows = moved_lines(replace(BEFORE, moved=(shared,)), None, None)
    assert rows[4].endswith("copy_process writes (with task_struct_cachep)")


def test_one_cpu_has_no_such_table() -> None:
    none = Profile(ops=1, functions={}, total=(0,) * 7)
    assert moved_lines(none, none, None) == []


def test_a_difference_in_transfers_has_its_lines_and_they_add_up() -> None:
    deltas = line_differences(BEFORE, AFTER)
    assert [(d.function, round(d.delta, 3), d.note) for d in deltas] == [
        ("tasklist_lock", -1.2, ""),
        ("input_pool", 0.9, "new"),
        ("pidmap_lock", -0.7, "gone"),
    ]
    net = sum(x.transfers for x in AFTER.moved) / 10 - sum(x.transfers for x in BEFORE.moved) / 10
    assert round(sum(d.delta for d in deltas), 6) == round(net, 6)


def test_what_varies_between_seeds_by_more_than_it_changed_is_no_cause() -> None:
    restless = _profile(tasklist_lock=40, counters=20, pidmap_lock=7)
    kept = significant_lines(line_differences(BEFORE, AFTER), [BEFORE, restless], [AFTER])
    assert [d.function for d in kept] == ["input_pool", "pidmap_lock"]
    told = line(kept)
    assert told is not None and (told.gone, told.new) == (("pidmap_lock",), ("input_pool",))


def test_a_row_of_transfers_says_which_line_moves_less_and_for_whom() -> None:
    def side(count: int, caller: int) -> Profile:
        by = {"do_exit (queued_write_lock_slowpath)": (0, caller), "copy_process": (0, count - caller)}
        return replace(BEFORE, moved=(MovedLine(name="tasklist_lock", reads=0, writes=count, by=by),))

    found = line_differences(side(50, 40), side(40, 30))
    assert told("transfers", found) == (
        "tasklist_lock moves 20 % less (5.00 -> 4.00 per operation), mostly for do_exit (queued_write_lock_slowpath)"
    )
    assert told("instructions", found) == ""
    new = told("transfers", line_differences(replace(BEFORE, moved=()), side(50, 40)))
    assert new.startswith("tasklist_lock now moves (0.00 -> 5.00 per operation)")
    assert "4.0 times more" in told("transfers", line_differences(side(10, 10), side(40, 40)))


def test_the_serial_part_stands_below_as_a_bound() -> None:
    lock = MovedLine(name="tasklist_lock", reads=0, writes=50, cpus=8, by={"do_exit": (0, 50)})
    rows = moved_lines(Profile(ops=10, functions={}, total=(50_000,) * 7, moved=(lock,)), None, None)
    (text,) = [row for row in rows if "one CPU at a time" in row]
    assert text == (
        "tasklist_lock moves 5.00 times an operation, to one CPU at a time: "
        "at most an operation every 500 instructions, the work of 10 CPUs"
    )
    assert any("a bound" in row for row in rows)


def _flow(*rows: MovedRow, patched: str = "7.0") -> MovedDiff:
    cell = CellName(case="thread_spawn", metric="transfers")
    return MovedDiff(cell=cell, baseline_label="6.12", patched_label=patched, rows=rows)


def test_the_picture_has_a_band_for_each_function_and_line_and_the_table_all() -> None:
    hot = MovedRow(line="tasklist_lock", baseline=5.0, patched=4.0, by={"do_exit": (4.0, 3.0), "clone": (1.0, 1.0)})
    cold = MovedRow(line="<b>", baseline=0.0, patched=0.001, by={"x": (0.0, 0.001)})
    drawn = flow.figure(_flow(hot, cold), 0)
    assert drawn is not None
    assert drawn.markup.count("<path") == 2 and "v-improved" in drawn.markup and "v-same" in drawn.markup
    assert [row[0] for row in drawn.rows] == ["tasklist_lock", "<b>"] and "<b>" not in drawn.markup
    assert flow.figure(_flow(), 0) is None


def test_a_line_that_moves_no_longer_is_the_widest_band() -> None:
    """Where all but 0.4 % of the movement was gone, a red band of what was left filled the picture."""
    gone = MovedRow(line="root_user", baseline=2.9, patched=0.0, by={"put_ucounts": (2.9, 0.0)})
    left = MovedRow(line="other", baseline=0.0, patched=0.03, by={"lookup": (0.0, 0.03)})
    found = flow.bands([left, gone])
    assert [(band.line, band.word, band.size) for band in found] == [
        ("root_user", "improved", 2.9),
        ("other", "regressed", 0.03),
    ]
    drawn = flow.figure(_flow(left, gone), 0)
    assert drawn is not None and "v-improved" in drawn.markup and "root_user" in drawn.markup


def test_many_functions_are_one_band_and_nothing_is_lost() -> None:
    rows = [
        MovedRow(line=f"l{n}", baseline=1.0, patched=30.0, by={f"f{m}": (0.1, 1.0) for m in range(30)})
        for n in range(4)
    ]
    found = flow.bands(rows)
    assert sum(band.after for band in found) == 120.0
    assert len({band.function for band in found}) == 13


def test_a_rise_that_is_false_sharing_is_told_as_that() -> None:
    def line(moves: int, unshared: int) -> Profile:
        hits = MovedLine(name="hits", reads=0, writes=moves, cpus=4, unshared=unshared, by={"f": (0, moves)})
        return Profile(ops=10, functions={}, total=(0,) * 7, moved=(hits,) if moves else ())

    new = told("transfers", line_differences(line(0, 0), line(20, 20)))
    assert new == "hits now moves (0.00 -> 2.00 per operation, 100 % false sharing), mostly for f"
    rise = told("transfers", line_differences(line(10, 5), line(20, 10)))
    assert "(1.00 -> 2.00 per operation, 50 % of the rise false sharing)" in rise
    fall = told("transfers", line_differences(line(20, 10), line(10, 1)))
    assert "(2.00 -> 1.00 per operation, 90 % of the fall false sharing)" in fall
    for before, after in ((line(10, 5), line(20, 5)), (line(10, 9), line(20, 5))):
        assert "false" not in told("transfers", line_differences(before, after))

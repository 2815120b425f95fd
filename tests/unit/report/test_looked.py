# SPDX-License-Identifier: GPL-2.0-or-later
"""What a comparison with cases chosen by a patch looked at, and what not, in sentences."""

from __future__ import annotations

from msgspec.structs import replace

from kdelta.attribution.reach import Reach, Row
from kdelta.model import Annotations, Looked, Remark, Unreached
from kdelta.model.experiment import SHARED
from kdelta.report import looked as looked_at


def test_a_file_that_is_not_built_is_told_with_what_builds_it() -> None:
    """Of a patch to fs/ext4 was told that nothing was measured, and not what to write that it is."""
    looked = Looked(functions=9, differ=0, candidates=5, not_built=("fs/ext4/fsync.c",), builds=("BLOCK", "EXT4_FS"))
    assert (
        "NOT LOOKED AT, not built with this config: fs/ext4/fsync.c; built by the same kdelta review with "
        "--config 'BLOCK=y EXT4_FS=y'." in looked_at.sentences(looked)
    )
    assert "built with this config: fs/ext4/fsync.c." in looked_at.sentences(replace(looked, builds=()))[1]


def test_functions_that_differ_in_line_numbers_alone_are_told_beside_what_differs() -> None:
    looked = Looked(functions=9, differ=1, candidates=5, measured=("f",), lined=("a", "b", "c", "d"))
    said = "line numbers alone (__LINE__) differ in 4 functions: a, b, c and 1 more"
    assert looked_at.sentences(looked)[1] == f"Beside that {said}."
    assert looked_at.nothing(replace(looked, differ=0, measured=())) == f"Nothing was measured: {said}"
    assert looked_at.document(looked)["lined"] == ["a", "b", "c", "d"]


def test_cases_that_this_kernel_cannot_run_are_named_where_they_execute_what_is_not_looked_at() -> None:
    """Of a patch to mm/page-writeback.c was told that a program may execute it, and not that cases on ext4 do."""
    looked = Looked(
        functions=9, differ=2, candidates=5, unreached=(Unreached(name="writeback_iter (new)"),), measured=("get",),
        rare={"writeback_iter": "files:on=ext4,op=write_fsync", "get": "files:on=ext4"},
        rare_options=("BLOCK", "SIZE=7"),
    )  # fmt: skip
    said = (
        "Cases that need other options execute it, or more of it: writeback_iter in files:on=ext4,op=write_fsync; the"
    )
    how = "same kdelta review with --config 'BLOCK=y SIZE=7'."
    assert f"{said} {how}" in looked_at.sentences(looked)
    assert looked_at.document(looked)["rare"] == looked.rare
    hardly = replace(looked, unreached=(), partly={"get": (8, 70)})
    assert any("more of it: get in files:on=ext4;" in line for line in looked_at.sentences(hardly))
    assert not any("need other options" in line for line in looked_at.sentences(replace(looked, unreached=())))


def test_all_options_that_are_named_as_off_are_in_the_line_that_turns_them_on() -> None:
    """Of five three were, so that what stood under the other two was off again."""
    names = ("A", "B", "C", "D", "E")
    (told,) = (
        line for line in looked_at.sentences(Looked(functions=9, differ=1, candidates=5, off=names)) if "A=y" in line
    )
    assert told.endswith("measured by the same kdelta review with --config 'A=y B=y C=y D=y E=y'.")


def test_options_that_are_to_be_turned_on_go_over_the_config_that_was_given() -> None:
    """A review with a whole .config was told to be repeated with --config FOO=y, which takes another config."""
    looked = Looked(
        functions=9, differ=1, candidates=5, off=("A",), not_built=("a.c",), builds=("B=m",), defaults=("C=y",),
        rare={"f": "files:on=ext4"}, rare_options=("D",), untouched=("f",), config="my own/.config X=n",
    )  # fmt: skip
    told = "\n".join(looked_at.sentences(looked))
    assert all(f"--config 'my own/.config X=n {one}'" in told for one in ("A=y", "B=m", "D=y"))
    assert ',config="my own/.config X=n C=y" behind' in told


def test_what_would_make_cases_run_is_said_beside_how_many_do_not() -> None:
    """A kernel without CONFIG_INET had 12 cases that "do not run here", and no word why."""
    why = {
        "udp": "needs CONFIG_INET (socket(...))",
        "tcp": "needs CONFIG_INET (x)",
        "mq": "CONFIG_POSIX_MQUEUE",
        "a": "?",
    }
    rows = (
        *(Row(case=name, state="unsupported", why=said) for name, said in why.items()),
        Row(case="pipe", state="ok"),
    )
    reach = Reach(kernel="k", rows=rows)
    assert reach.needs == {"CONFIG_INET": 2, "CONFIG_POSIX_MQUEUE": 1}
    looked = Looked(functions=9, differ=1, candidates=5, not_mapped=("udp", "tcp", "mq", "a"), needs=reach.needs)
    assert looked_at.document(looked)["needs"] == reach.needs
    assert looked_at.sentences(looked)[-1] == (
        "4 of 5 cases do not run here (kdelta reach): udp, tcp, mq and 1 more; 2 of them need CONFIG_INET; 1 of them "
        "needs CONFIG_POSIX_MQUEUE."
    )


def test_that_nothing_differs_is_told_once() -> None:
    """It was "Nothing was measured: machine code and data are identical: there is nothing to measure"."""
    said = looked_at.nothing(Looked(functions=9, differ=0, candidates=5))
    assert said == "Nothing was measured: machine code and data are identical"


def test_how_many_cases_execute_what_differs_is_told_beside_those_chosen() -> None:
    """Twelve cases of 123 were "by 12 of 241 cases, the most specific first", as if no more executed it."""
    looked = Looked(functions=9, differ=1, candidates=5, cases=("pipe",), measured=("init (boot only, may set cache)",))
    told = [looked_at.sentences(replace(looked, executing=count)) for count in (3, 1, 0)]
    assert [lines[1].partition("; by ")[2] for lines in told] == [
        "1 of 5 cases, of the 3 that execute any of it.",
        "1 of 5 cases, all that execute any of it in their operations (what they set up before is not seen).",
        "1 of 5 cases, the most specific first.",
    ]
    assert all(lines[2] == f"{looked_at.USED}." for lines in told)


def test_what_is_set_at_boot_is_to_be_looked_for_in_cases_that_were_not_measured() -> None:
    """A review that had measured path_lookup said to name it."""
    looked = Looked(functions=9, differ=1, candidates=5, unreached=(Unreached(name="foo_init (boot only)"),))
    for cases, told in (
        ((), "name cases, as in kdelta compare BASELINE PATCHED --case path_lookup"),
        (("path_lookup paths=misses",), "name cases, as in kdelta compare BASELINE PATCHED --case pipe"),
        (("path_lookup", "pipe", "fork_vmas", "thread_spawn", "pidfd_open"), "may change other paths"),
    ):
        assert looked_at.may_set(replace(looked, controls=cases)).endswith(told)


def test_what_no_case_executes_beside_what_was_measured_has_a_way_on() -> None:
    """Of two changed functions one was measured; of the other was said that no case executes it, and no more."""
    missed = (Unreached(name="foo_probe"),)
    looked = Looked(functions=9, differ=2, candidates=5, cpus=1, measured=("sys_kill",), unreached=missed)
    told = "A program of yours may: the same command with -- PROGRAM, or 4 CPUs: with --smp 4."
    assert looked_at.sentences(looked)[1].endswith(f"foo_probe. {told}")
    assert told not in " ".join(looked_at.sentences(replace(looked, given=("-- ./mine",))))
    boot = replace(looked, unreached=(Unreached(name="foo_init (boot only)"),))
    assert told not in " ".join(looked_at.sentences(boot))


def test_what_programs_execute_is_not_said_to_be_counted_of_one() -> None:
    vdso = Unreached(name="raw_data (the vDSO, which runs in programs and not in the kernel)")
    said = " ".join(looked_at.sentences(Looked(functions=9, differ=1, candidates=5, unreached=(vdso,))))
    assert "--timed -- PROGRAM" in said and "A program of yours may" not in said
    both = Looked(functions=9, differ=2, candidates=5, unreached=(vdso, Unreached(name="foo")))
    assert "A program of yours may" in " ".join(looked_at.sentences(both))


def test_several_cpus_do_not_tell_which_of_the_changed_instructions_ran() -> None:
    """With --smp 4 a loop on an error path, which no case takes, was "looked at"."""
    notes = Annotations(looked=Looked(functions=9, differ=1, candidates=5, cases=("pipe",), measured=("sys_kill",)))
    assert looked_at.above(notes, 4)[-1] == f"{looked_at.UNTOLD}; the same command without --smp tells."
    assert not any(looked_at.UNTOLD in line for line in looked_at.above(notes, 1))


def test_that_instructions_patched_in_at_boot_differ_is_told_beside_functions() -> None:
    """ALTERNATIVE with another "rep movsb" changed its function's padding, and no word was said of the rest."""
    for differ, patched, told in ((1, True, True), (1, False, False), (0, True, False)):
        looked = Looked(functions=9, differ=differ, candidates=5, boot_patched=patched)
        assert (f"{looked_at.PATCHED}." in looked_at.sentences(looked)) == told


def test_a_default_that_the_config_does_not_take_is_told_with_how_to_measure_it() -> None:
    looked = Looked(functions=9, differ=0, candidates=5, defaults=("INIT=y",))
    assert looked_at.nothing(looked).endswith(
        "as this config has a value of its own, where the patch makes INIT=y the default"
    )
    assert any('with ,config="INIT=y" behind the patched kernel' in line for line in looked_at.sentences(looked))
    assert "makes INIT=y the default" in looked_at.unseen(replace(looked, differ=1))


def test_the_answer_says_that_the_map_is_not_whole() -> None:
    """ "No mapped case executes it" was all, and 266 of 322 cases were not mapped."""
    unreached = (Unreached(name="do_eventfd"),)
    looked = Looked(functions=9, differ=1, candidates=5, unreached=unreached, no_time=("a", "b"))
    assert "2 of 5 are not mapped yet, the same command goes on" in looked_at.nothing(looked)
    assert "not mapped yet" not in looked_at.nothing(replace(looked, no_time=()))


def test_what_the_start_calls_and_no_case_is_told_with_what_may_execute_it() -> None:
    """Of the slow path of a spinlock that waits for another CPU there was no word of more CPUs."""
    slow = Unreached(name="native_queued_spin_lock_slowpath (called at boot)")
    looked = Looked(functions=9, differ=1, candidates=5, controls=("pipe",), unreached=(slow,), cpus=1)
    may = "A program of yours may: the same command with -- PROGRAM, or 4 CPUs: with --smp 4."
    assert any(line.endswith(f"anything that differs. {may}") for line in looked_at.sentences(looked))
    start = replace(looked, unreached=(Unreached(name="pipe_init (boot only)"),))
    assert may not in " ".join(looked_at.sentences(start))


def test_of_code_that_is_not_built_more_cpus_are_not_said_to_show_anything() -> None:
    """A new file under an option that is off was "not looked at, on one CPU; the same command with --smp 8 does"."""
    looked = Looked(functions=9, differ=0, candidates=5, not_built=("fs/count.c",))
    notes = Annotations(looked=looked, notes=(Remark(SHARED, "atomic_inc"),))
    assert not any("--smp" in line for line in looked_at.above(notes))
    built = replace(notes, looked=replace(looked, differ=1, measured=("f",)))
    assert any("(atomic_inc); the same command with --smp 8 does" in line for line in looked_at.above(built))

# SPDX-License-Identifier: GPL-2.0-or-later
"""What is found out around a measurement is kept with it, beside what was known before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from kdelta.attribution import code, images, stripped
from kdelta.errors import UserError
from kdelta.experiment import annotate, selftests, templates
from kdelta.experiment.selftests import Gate
from kdelta.kernel import banner, changed, guards, source
from kdelta.kernel.products import Built
from kdelta.model import Annotations, Location, Looked, Quiet, Remark, Unreached, plans
from kdelta.model.experiment import UNLIKE
from kdelta.report import looked as sentences
from kdelta.spec.kernels import KernelSpec
from kdelta.store.store import Store
from unit.store.store_builders import experiment, kernel

BEFORE = Remark("earlier", "said before")


class Heard(Quiet):
    """Collects the lines worth telling."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as opened:
        yield opened


def test_the_gate_is_kept_with_its_notes_and_what_the_tests_printed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = experiment(plan=plans.Compare(selftests=("pidfd",)), annotations=Annotations(notes=(BEFORE,)))
    store.create(made)
    gate = Gate(failed="pidfd:x failed on 7.0", notes=("pidfd: 3 skipped",), ktap={"7.0": "KTAP version 1\n"})
    monkeypatch.setattr(selftests, "gate", lambda *_: gate)
    heard = Heard()
    found = annotate.run_gate(store, made, heard).annotations
    assert heard.notes == ["pidfd: 3 skipped", "pidfd:x failed on 7.0"]
    assert (found.gate, found.ktap) == (gate.failed, gate.ktap)
    assert found.notes == (BEFORE, Remark("selftests", "pidfd: 3 skipped"))
    assert store.experiment(made.id).annotations == found


def test_a_gate_that_was_interrupted_is_run_by_who_goes_on(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same review again, and resume, measured speed and left "GATE: not run" for good."""
    asked = plans.Compare(selftests=("pidfd",))
    made = experiment(plan=asked, annotations=Annotations(gate=templates.unfinished(asked.selftests)))
    store.create(made)
    gate = Gate(failed="", notes=(), ktap={"7.0": "KTAP version 1\n"})
    monkeypatch.setattr(selftests, "gate", lambda *_: gate)
    found = annotate.finish_gate(store, made, Quiet())
    assert (found.annotations.gate, found.annotations.ktap) == ("", gate.ktap)
    monkeypatch.setattr(selftests, "gate", lambda *_: pytest.fail("it was done"))
    assert annotate.finish_gate(store, found, Quiet()) is found
    assert annotate.finish_gate(store, replace(made, imported=True), Quiet()).imported


def test_nothing_is_run_that_was_not_asked_for(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Gate:
        raise AssertionError("selftests were run")

    monkeypatch.setattr(selftests, "gate", refuse)
    made = experiment()
    assert annotate.run_gate(store, made, Quiet()) is made
    assert annotate.note_code(store, made, Quiet()) is made, "nor is shipped machine code compared"


def built(store: Store, monkeypatch: pytest.MonkeyPatch, in_steps: bool) -> Any:
    kernels = tuple(kernel(name, spec=f"src:.@{name}", release="7.0", image_sha256=name * 64) for name in "abc")
    made = experiment(kernels=kernels, plan=plans.Sweep() if in_steps else plans.Compare())
    store.create(made)
    monkeypatch.setattr(images, "image_of", lambda one: one.label)
    monkeypatch.setattr(images, "compare", lambda before, after: ((before, after), None))
    monkeypatch.setattr(stripped, "sentence", lambda pair: f"against {pair[0]}")
    return made


@pytest.mark.parametrize(("in_steps", "neighbour"), [(False, "a"), (True, "b")])
def test_built_kernels_are_held_against_the_baseline_or_the_step_before(
    store: Store, monkeypatch: pytest.MonkeyPatch, in_steps: bool, neighbour: str
) -> None:
    found = annotate.note_code(store, built(store, monkeypatch, in_steps), Quiet()).annotations
    assert [note.text for note in found.notes] == ["b: against a", f"c: against {neighbour}"]


def test_configs_that_differ_are_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    options = tuple(f"CONFIG_{name}: n -> y" for name in "ABCDEFG")
    monkeypatch.setattr(source, "config_differences", lambda before, after: options if after.label == "c" else ())
    found = annotate.note_code(store, built(store, monkeypatch, in_steps=False), Quiet()).annotations
    assert len(found.notes) == 3
    assert found.notes[2].text.startswith("c: its config differs from that of a: CONFIG_A: n -> y, CONFIG_B")
    assert found.notes[2].text.endswith("CONFIG_E: n -> y and 2 more")


def test_the_compilers_of_shipped_kernels_are_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    built = {"a": "gcc 12.2.0", "b": ""}
    monkeypatch.setattr(banner, "compiler", lambda one: built[one.label])
    made = experiment(kernels=tuple(kernel(name, spec="debian:6.12") for name in built))
    store.create(made)
    assert annotate.note_code(store, made, Quiet()).annotations == Annotations(compilers=("gcc 12.2.0", ""))


@pytest.mark.parametrize(("in_steps", "before"), [(False, "a"), (True, "b")])
def test_what_moves_figures_is_told_of_shipped_kernels(store: Store, in_steps: bool, before: str) -> None:
    """debian:6.12/rt was +51 % of pidfd_open, and no word said that it preempts by PREEMPT_RT."""
    plain = {"PREEMPT_RT": "n", "HZ": "250", "ANON_VMA_NAME": "y", "CC_VERSION_TEXT": "gcc 12"}
    other = plain | {"PREEMPT_RT": "y", "HZ": "1000", "ANON_VMA_NAME": "n", "CC_VERSION_TEXT": "gcc 14"}
    configs = {"a": plain, "b": {**plain, "KASAN": "n"}, "c": other, "d": {"PREEMPT_DYNAMIC": "y"}}
    kernels = tuple(kernel(name, spec="debian:6.12", config=config) for name, config in configs.items())
    made = experiment(kernels=kernels, plan=plans.Sweep() if in_steps else plans.Compare())
    store.create(made)
    (note,) = annotate.note_code(store, made, Quiet()).annotations.notes
    told = "in what moves figures: CONFIG_PREEMPT_RT: n -> y, CONFIG_HZ: 250 -> 1000"
    assert note == Remark("config", f"c: its config differs from that of {before} {told}")


@pytest.mark.parametrize(
    ("spec", "differ", "told"),
    [
        (
            "debian:7.0",
            9,
            "9 options of their configs differ, {part}; src:debian:7.0 has its source and the config of b",
        ),
        ("./vmlinux", 0, "their configs may differ, {part}"),
    ],
)
def test_a_kernel_of_others_has_another_config_than_one_built_here(
    store: Store, monkeypatch: pytest.MonkeyPatch, spec: str, differ: int, told: str
) -> None:
    monkeypatch.setattr(source, "config_differences", lambda *_: ("x",) * differ)
    made = experiment(kernels=(kernel("a", spec=spec), kernel("b", spec="src:.@b")))
    store.create(made)
    told = told.format(part="and part of each effect may be theirs or the compiler's")
    notes = annotate.note_code(store, made, Quiet()).annotations.notes
    assert notes == (Remark(UNLIKE, f"b was built here, a was not: {told}"),)
    other = replace(made, id="other", kernels=made.kernels[:1] * 2)
    assert annotate.note_code(store, other, Quiet()) is other


def test_one_image_needs_no_reading(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "image_of", lambda _: pytest.fail("it was read"))
    kernels = tuple(kernel(name, spec=f"src:.@{name}", image_sha256="ab" * 32) for name in ("a", "b"))
    made = experiment(kernels=kernels)
    store.create(made)
    found = annotate.note_code(store, made, Quiet()).annotations
    assert [note.text for note in found.notes] == ["b: the machine code is identical"]


def test_machine_code_that_leads_to_another_text_is_not_called_identical(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = built(store, monkeypatch, in_steps=False)
    monkeypatch.setattr(stripped, "sentence", lambda _: stripped.IDENTICAL)
    looked = Looked(functions=9, differ=1, candidates=2)
    two = replace(made, kernels=made.kernels[:2], annotations=replace(made.annotations, looked=looked))
    found = annotate.note_code(store, two, Quiet())
    assert found.annotations.notes[0].text == "b: instructions are identical, texts or data that they lead to differ"
    same = replace(two, id="same", annotations=replace(made.annotations, looked=replace(looked, differ=0)))
    store.create(same)  # a file that was renamed: "machine code and data are identical" stood above the note
    found = annotate.note_code(store, same, Quiet())
    assert found.annotations.notes[0].text.startswith("b: machine code and data are identical; names of files,")
    other = replace(made, id="named", kernels=made.kernels[:2])  # cases that the user named: nothing was looked up
    store.create(other)
    found = annotate.note_code(store, other, Quiet())
    assert found.annotations.notes[0].text == "b: the machine code is identical, data or addresses are not"


def test_what_the_builds_said_is_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """That a hunk fitted elsewhere went by on the terminal alone: no report told it."""
    both, one = "CONFIG_FOO: requested y, got n", "patch x.patch: fs/pipe.c hunk 1 applied with an offset of +3 lines"
    told = {"src:.@a": (both,), "src:.@a+x.patch": (both, one)}
    asked = []

    def remembered(spec: KernelSpec, patches: int | None) -> Built:
        asked.append(patches)
        return Built(image_sha256="0" * 64, origin="", notes=told[spec.text])

    monkeypatch.setattr(source, "remembered", remembered)
    made = experiment(kernels=(kernel("a", spec="src:.@a"), kernel("b", spec="src:.@a+x.patch#1")))
    store.create(made)
    found = annotate.note_code(store, made, Quiet()).annotations.notes
    assert [note.text for note in found if note.code == "build"] == [f"a, b: {both}", f"b: {one}"]
    assert asked == [None, 1]
    told["src:.@a"] = (guards.unbuilt("fs/x.c"), both)
    looked = Looked(functions=9, differ=0, candidates=5, not_built=("fs/x.c",))
    again = experiment(id="again", kernels=made.kernels, annotations=Annotations(looked=looked))
    store.create(again)
    notes = annotate.note_code(store, again, Quiet()).annotations.notes
    assert [note.text for note in notes if note.code == "build"] == [f"a, b: {both}", f"b: {one}"], "it stands above"


@pytest.mark.parametrize("in_steps", [False, True])
def test_that_a_patch_changes_how_long_is_waited_is_told_where_counts_cannot_show_it(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, in_steps: bool
) -> None:
    """A timer slack of 1 ns instead of 50 us was "as many instructions in all 11 cases", without a word of --timed."""
    slack = "+++ b/init/init_task.c\n-	.timer_slack_ns = 50000,\n+	.timer_slack_ns = 1,\n"
    for name, text in {"a": "", "b": slack, "c": f"{slack}+	schedule_timeout(HZ);\n+	prefetch(p);\n"}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(
        source, "remembered", lambda spec, _: Built(image_sha256="0" * 64, origin="", diff=str(tmp_path / spec.ref))
    )
    timed = built(store, monkeypatch, in_steps)
    assert not [note for note in annotate.note_code(store, timed, Quiet()).annotations.notes if note.code == "waits"]
    made = replace(timed, id="exact", mode="exact", annotations=Annotations())
    store.create(made)
    found = annotate.note_code(store, made, Quiet()).annotations.notes
    alike = tuple(replace(one, image_sha256="0" * 64) for one in made.kernels)  # what changed is not built
    assert annotate._of_times(replace(made, kernels=alike)) == []
    after = "; how long a task waits is in no count, --timed measures it"
    names = "schedule_timeout, HZ" if in_steps else "timer_slack_ns, schedule_timeout, HZ"
    assert [note.text for note in found if note.code == "waits"] == [
        f"b: changed lines name times (timer_slack_ns){after}",
        f"c: changed lines name times ({names}){after}",
    ]
    assert [note.text for note in found if note.code == "prefetches"] == [
        "c: changed lines fetch memory ahead (prefetch); what that saves is in no count, --timed measures it"
    ]


def test_code_that_cannot_be_compared_is_a_note_and_no_end(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    made = built(store, monkeypatch, in_steps=False)

    def stripped_image(*_: object) -> None:
        raise UserError("b: stripped")

    monkeypatch.setattr(images, "compare", stripped_image)
    found = annotate.note_code(store, made, Quiet()).annotations
    assert found.notes == (Remark("machine-code", "machine code was not compared: b: stripped"),)
    assert replace(store.experiment(made.id), annotations=made.annotations) == made, "nothing else has changed"


def test_where_the_source_changed_is_kept_or_said_to_be_unknown(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    made = experiment(kernels=(kernel("a", spec="src:.@v1"), kernel("b", spec="src:.@v1+my.patch#2")))
    store.create(made)
    told = (Location(function="f", path="fs/pipe.c", line=3),)
    asked = []

    def between(*specs: KernelSpec) -> tuple[Location, ...]:
        asked.append([one.text for one in specs])
        return told

    monkeypatch.setattr(changed, "between", between)
    assert annotate.note_locations(store, made, Quiet()).annotations.locations == told
    assert asked == [["src:.@v1", "src:.@v1+my.patch"]]

    def refuse(*_: object) -> tuple[Location, ...]:
        raise UserError("no commit v1")

    monkeypatch.setattr(changed, "between", refuse)
    heard = Heard()
    assert annotate.note_locations(store, made, heard) is made and "no commit v1" in heard.notes[0]


def test_a_new_function_that_the_patched_kernel_executed_was_looked_at(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("anon_read (new)", "fifo_read (new)", "fops (data)")
    looked = Looked(
        functions=9, differ=4, candidates=5, measured=("host",), unreached=tuple(Unreached(name=one) for one in names)
    )
    made = experiment(annotations=Annotations(looked=looked))
    store.create(made)
    rows = [
        SimpleNamespace(kernel=k, profile=SimpleNamespace(functions={n: 1}))
        for k, n in enumerate(("host", "anon_read"))
    ]
    monkeypatch.setattr(Store, "profiles", lambda *_: rows)
    found = annotate.note_executed(store, made).annotations.looked
    assert found is not None and found.measured == ("host", "anon_read (new)")
    assert [one.name for one in found.unreached] == ["fifo_read (new)", "fops (data)"]
    assert annotate.note_executed(store, made) is made, "and nothing is told twice"


def test_a_function_of_which_nothing_that_changed_ran_was_not_looked_at(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("slow", "quick", "kept before", "ops (data)", "fresh (new)")  # of a new one, all of it differs
    looked = Looked(functions=9, differ=4, candidates=5, cases=("a",), measured=names)
    made = experiment(mode="exact", annotations=Annotations(looked=looked))
    store.create(made)
    ran = {"slow": (0, 4), "slow.cold": (9,), "quick": (0, 8), "fresh": (0,)}
    rows = [
        SimpleNamespace(
            kernel=kernel, profile=SimpleNamespace(functions=dict.fromkeys((*names, "fresh"), 1), places=places)
        )
        for kernel, places in ((0, {}), (1, ran), (1, {**ran, "slow": (0, 12)}))
    ]
    places = {"slow": {("slow", 8), ("slow.cold", 12)}, "quick": {("quick", 8), ("quick", 16)}}
    places["fresh"] = {("fresh", at) for at in (0, 4, 8)}
    monkeypatch.setattr(Store, "profiles", lambda *_: rows)
    monkeypatch.setattr(images, "image_of", lambda _: SimpleNamespace(aliases={}))
    monkeypatch.setattr(code, "changed_places", lambda _, __, name: places[name])
    monkeypatch.setattr(code, "left_out", lambda *_: frozenset())
    found = annotate.note_untouched(store, made).annotations.looked
    assert found is not None and (found.untouched, found.measured) == (("slow",), names[1:])
    assert found.partly == {"quick": (1, 2), "fresh": (1, 3)}
    assert annotate.note_untouched(store, made) is made, "and nothing is told twice"
    told = " ".join(sentences.sentences(found))
    assert "NOT LOOKED AT, executed, but none of its changed instructions ran: slow." in told
    assert "Of their changed instructions ran: fresh 1 of 3, quick 1 of 2; the figures say nothing of the rest." in told
    assert "slow (none of its changed instructions ran)" in sentences.unseen(found)
    places["slow"].add(("slow", 12))
    again = annotate.note_untouched(store, made).annotations.looked
    assert again is not None and (again.untouched, set(again.measured)) == ((), set(names))


def test_a_path_that_a_patch_takes_out_and_nothing_took_is_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of anon_vma_clone() without reuse: "about as many in all 12 cases", and no case had reused anything."""
    looked = Looked(functions=9, differ=2, candidates=5, cases=("a",), measured=("takes", "drops"))
    made = experiment(mode="exact", annotations=Annotations(looked=looked))
    store.create(made)
    ran: list[dict[str, tuple[int, ...]]] = [{"takes": (0,), "drops": (0, 4, 8)}, {"takes": (0,), "drops": (0,)}]
    functions = dict.fromkeys(looked.measured, 1)
    rows = [SimpleNamespace(kernel=k, profile=SimpleNamespace(functions=functions, places=ran[k])) for k in (0, 1)]
    monkeypatch.setattr(Store, "profiles", lambda *_: rows)
    monkeypatch.setattr(images, "image_of", lambda kernel: kernel)
    monkeypatch.setattr(code, "changed_places", lambda _, __, name: frozenset({(name, 0)}))
    monkeypatch.setattr(code, "left_out", lambda _, __, name: frozenset((name, at) for at in (4, 8)))
    found = annotate.note_untouched(store, made).annotations.looked
    assert found is not None and (found.removed, found.partly) == ({"takes": (0, 2)}, {})
    told = "Of the instructions that it takes out ran before: takes 0 of 2; the figures say nothing of the rest."
    assert told in sentences.sentences(found)
    assert sentences.unseen(found) == "Most of what it takes out of takes did not run before"
    assert annotate.note_untouched(store, made) is made, "and nothing is told twice"


def test_a_new_function_that_no_case_called_was_not_looked_at(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """It counted through its caller: a path for large writes was "looked at" by cases that write little."""
    names = (
        "host", "large (new)", "small (new)", "__do_sys_null (new)", "rare.part (new, used by pointer alone)",
        "early (new, boot only, may set key)",  # no case calls it, ever: who uses the key was looked at
    )  # fmt: skip
    looked = Looked(functions=9, differ=6, candidates=5, cases=("a",), measured=names)
    made = experiment(mode="exact", annotations=Annotations(looked=looked))
    store.create(made)
    ran = dict.fromkeys(("host", "small.isra.0", "__x64_sys_null"), 1)
    rows = [SimpleNamespace(kernel=k, profile=SimpleNamespace(functions=ran, places={})) for k in (0, 1)]
    monkeypatch.setattr(Store, "profiles", lambda *_: rows)
    image = SimpleNamespace(aliases={"__do_sys_null": "__x64_sys_null"})
    monkeypatch.setattr(images, "image_of", lambda _: image)
    found = annotate.note_untouched(store, made).annotations.looked
    assert found is not None and found.untouched == (names[1], names[4])
    assert annotate.note_untouched(store, made) is made, "and nothing is told twice"
    assert "NOT LOOKED AT, not called in the cases measured: large (new), rare" in " ".join(sentences.sentences(found))
    assert "were not looked at: large (new) (not called in the cases measured)" in sentences.unseen(found)


def test_a_new_system_call_that_no_case_makes_is_told_with_what_measures_it() -> None:
    looked = Looked(functions=9, differ=2, candidates=5, untouched=("__x64_sys_pidtotal (new)",))
    text = " ".join(sentences.sentences(looked))
    assert "not called in the cases measured: __x64_sys_pidtotal (new). A program of yours may make" in text
    other = " ".join(sentences.sentences(replace(looked, untouched=("helper (new)",))))
    assert "helper (new)." in other and "program of yours" not in other

# SPDX-License-Identifier: GPL-2.0-or-later
"""Cases in a memory cgroup of their own, for what no case executes in the root cgroup."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kdelta.attribution.changes import Change
from kdelta.attribution.reach import Reach
from kdelta.cli.common import in_groups
from kdelta.errors import HostError
from kdelta.experiment import knobs, memcgs
from kdelta.experiment.reach import Setup
from kdelta.kernel import source
from kdelta.kernel.products import Built
from kdelta.model import Case, Looked, Quiet, Unreached
from kdelta.report import looked as sentences
from kdelta.spec.kernels import KernelSpec, PatchRef
from unit.attribution.test_reach import row
from unit.experiment.test_knobs import KERNELS

HOOK = Change(name="__memcg_slab_post_alloc_hook", kind="code", hosts=("__memcg_slab_post_alloc_hook",))
OTHER = Change(name="oom_reap", kind="code", hosts=("oom_reap",))
CALLERS = {HOOK.name: ("kmem_cache_alloc",), OTHER.name: ("kmem_cache_alloc",)}
REACH = Reach(
    kernel="k",
    rows=(
        row("little", kmem_cache_alloc=(1, 1), rest=(1, 9)),
        row("none", rest=(1, 9)),
        row("much", kmem_cache_alloc=(1, 9), rest=(1, 1)),
        row("some", kmem_cache_alloc=(1, 5), rest=(1, 5)),
    ),
)
SETUP = Setup(workloads={})


def likely(*changes: Change, asked: bool = False) -> tuple[str, ...]:
    return memcgs.likely(changes, REACH, lambda name: CALLERS.get(name, ()), ["usual", "more", "most"], asked=asked)


def test_the_cases_that_most_execute_what_calls_it_are_tried() -> None:
    assert likely(HOOK) == ("much", "some")
    assert likely(Change(name="mem_cgroup_css_reset", kind="code", hosts=())) == ("usual", "more"), "called by pointer"


def test_without_a_wish_for_groups_what_has_no_name_of_theirs_costs_no_boot() -> None:
    assert likely(OTHER) == () and likely(OTHER, asked=True) == ("much", "some")
    boots = Change(name="mem_cgroup_init", kind="code", hosts=(), boot_only=True)
    assert likely(boots, asked=True) == ()


def searched(monkeypatch: pytest.MonkeyPatch, runs: dict[str, frozenset[knobs.Place] | None] | None) -> list[Any]:
    def count(_: object, __: object, ___: object, kernel: Any, cases: Sequence[Case], ____: str) -> Any:
        if runs is None:
            raise HostError("no room")
        assert kernel.label == "new" and [one.cgroup for one in cases] == ["child", "child"]
        return {one.name: runs[one.label] for one in cases}

    monkeypatch.setattr(knobs, "differing", lambda *_: {(HOOK.name, at): HOOK.name for at in range(4)})
    monkeypatch.setattr(knobs, "count", count)
    cases = {name: Case(workload="pipe", label=name) for name in ("much", "some")}
    found = memcgs.search(KERNELS, [HOOK], ["much", "some", "gone"], cases, SETUP, Quiet())
    return [(one.case.name, one.functions) for one in found]


def test_a_case_that_executes_it_in_a_group_is_chosen_with_what_it_executes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A patch that made an allocation of a group 10 to 19 % dearer was told to be executed by no case."""
    ran = frozenset((HOOK.name, at) for at in range(3))
    assert searched(monkeypatch, {"much": None, "some": ran}) == [("some (memcg)", (HOOK.name,))]
    assert searched(monkeypatch, {"much": frozenset(), "some": None}) == []
    assert searched(monkeypatch, None) == []


def test_it_is_told_and_measured_once() -> None:
    told = Looked(
        functions=9, differ=2, candidates=4, measured=(HOOK.name,), unreached=(Unreached(name=OTHER.name),),
        in_memcg={"some (memcg)": (HOOK.name,)},
    )  # fmt: skip
    text = " ".join(sentences.sentences(told))
    assert f"Looked at: {HOOK.name}; by 1 case in a memory cgroup." in text
    assert f"no case executes it in the root cgroup: some (memcg) ({HOOK.name})." in text
    assert sentences.document(told)["in_memcg"] == {"some (memcg)": [HOOK.name]}
    root = Case(workload="pipe", label="some")
    child = Case(workload="pipe", label="some", cgroup="child")
    assert in_groups([root, child], True) == in_groups([child], True) == (root, child)
    assert in_groups([root, child], False) == (root, child)


def test_a_patch_that_charges_otherwise_is_measured_in_a_group_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Messages that are not charged any more were "about as many" instructions: -0.24 %, and -17.95 % in a group."""
    diff = tmp_path / "applied.diff"
    diff.write_text("--- a/ipc/msgutil.c\n+++ b/ipc/msgutil.c\n-	a(GFP_KERNEL_ACCOUNT);\n+	a(GFP_KERNEL);\n")
    mine = tmp_path / "my.patch"
    mine.write_text("")
    built = Built(image_sha256="0", origin="", diff=str(diff))
    monkeypatch.setattr(source, "remembered", lambda _: built)
    specs = [
        KernelSpec(kind="src", target=".", text="src:."),
        KernelSpec(kind="src", target=".", text="src:.", patches=(PatchRef(path=str(mine)),)),
    ]
    assert memcgs.charged(specs) == ("GFP_KERNEL_ACCOUNT",)
    monkeypatch.setattr(source, "remembered", lambda _: None)
    assert memcgs.charged(specs) == ()
    cases = {name: Case(workload="pipe", label=name) for name in ("much", "some", "little")}
    assert [one.name for one in memcgs.beside([*cases], cases)] == ["much (memcg)", "some (memcg)"]
    told = Looked(
        functions=9, differ=1, candidates=4, cases=("much",), measured=("load_msg",), in_memcg={"much (memcg)": ()},
        charged=("GFP_KERNEL_ACCOUNT",),
    )  # fmt: skip
    assert (
        "Measured in a memory cgroup (memcg) too, as the root cgroup is charged nothing for GFP_KERNEL_ACCOUNT: "
        "much (memcg)." in sentences.sentences(told)
    )

# SPDX-License-Identifier: GPL-2.0-or-later
"""Cases chosen by what two images differ in; where nothing does, none, and nothing is booted."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kdelta.attribution.reach import Reach
from kdelta.experiment import auto, knobs, silent, templates
from kdelta.experiment import reach as mapping
from kdelta.kernel import calls, directories, naming, source, symbols
from kdelta.kernel.guards import LeftOut
from kdelta.kernel.products import Built
from kdelta.kernel.sources import parse_kernel
from kdelta.kernel.symbols import NoSymbols
from kdelta.model import Case, Kernel, Looked, MachineOptions, Quiet
from kdelta.report import looked as sentences
from kdelta.spec.kernels import KernelSpec
from kdelta.spec.sameness import digest
from kdelta.spec.workloads import catalogue
from unit.attribution.test_atlas import SMALL
from unit.attribution.test_changes import LATER, REGISTERED, SOURCE
from unit.attribution.test_code import Maker
from unit.attribution.test_reach import row

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


class Bench:
    """Two images made by the compiler, and a map that is made up."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.make, self.folder, self.maps, self.mapped = Maker(folder, "x86_64"), folder, 0, 0
        self.reach = Reach(kernel="k", rows=(row("a", host=(1, 5), rest=(1, 5)), row("b", call=(1, 5), rest=(1, 5))))
        monkeypatch.setattr(mapping, "build", self.build)
        self.turned: tuple[knobs.Turned, ...] = ()
        monkeypatch.setattr(knobs, "search", lambda *_: self.turned)
        # the images are too small to prove names by their calls; their symbol table is the compiler's own
        table = symbols.SymbolTable(source="symtab", ranges=(), addresses_le=b"", text="")
        monkeypatch.setattr(naming, "load", lambda _: table)
        monkeypatch.setattr(calls, "load", lambda *_: NoSymbols("too small"))

    def build(self, _: Kernel, cases: list[Case], *__: Any, **___: Any) -> Reach:
        self.maps, self.mapped = self.maps + 1, len(cases)
        return self.reach

    def kernel(self, source: str) -> Kernel:
        data = self.make(source)
        digest = hashlib.sha256(data).hexdigest()
        path = self.folder / digest
        path.write_bytes(data)
        return Kernel(
            label=digest[:4], spec="src:x", release="6.12", image_path=str(path), image_sha256=digest,
            vmlinux_path=str(path), vmlinux_sha256=digest,
        )  # fmt: skip

    def choose(
        self, *sources: str, specs: tuple[KernelSpec, ...] = (), given: tuple[Case, ...] = (), cpus: int = 1
    ) -> tuple[list[str], Looked]:
        cases = [Case(workload="getppid", label=name) for name in "abc"]
        asked = auto.Asked(
            cases=cases, given=given, usual=cases[2:], workloads=catalogue(()), folders=(),
            machine=MachineOptions(smp=cpus), cost_s=lambda _: 1.0, left_s=lambda: 60.0,
        )  # fmt: skip
        chosen, looked = auto.choose([self.kernel(source) for source in sources], specs, asked, Quiet())
        return [case.name for case in chosen], looked


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


def test_the_case_that_executes_what_differs_is_chosen_and_the_rest_is_named(bench: Bench) -> None:
    other = SOURCE.replace("a + 7", "a * 9 + 1").replace("weights[a & 7]", "weights[a & 3]")
    cases, looked = bench.choose(SOURCE, other)
    assert cases == ["a"]
    assert (looked.measured, [one.name for one in looked.unreached]) == (("host",), ["weigh"])
    told = " ".join(sentences.sentences(looked))
    assert (
        "NOT LOOKED AT, no case executes it in its operations (1 of 2): weigh." in told
        and "Looked at: host; by 1 of 3 cases" in told
    )


def test_a_knob_that_takes_another_path_through_what_differs_is_measured_too(bench: Bench) -> None:
    bench.turned = (knobs.Turned(case=Case(workload="getppid", label="a:big=1"), functions=("host",)),)
    cases, looked = bench.choose(SOURCE, SOURCE.replace("a + 7", "a * 9 + 1"))
    assert cases == ["a", "a:big=1"] and looked.by_knob == {"a:big=1": ("host",)}
    assert (
        "Chosen for a knob, with which changed instructions run that otherwise do not: a:big=1 (host)."
        in sentences.sentences(looked)
    )
    assert sentences.document(looked)["by_knob"] == {"a:big=1": ["host"]}
    bench.turned = (knobs.Turned(case=Case(workload="getppid", label="b"), functions=("host",), other=True),)
    cases, looked = bench.choose(SOURCE, SOURCE.replace("a + 7", "a * 9 + 1"))
    assert cases == ["a", "b"] and not looked.by_knob and sentences.document(looked)["other_ways"] == {"b": ["host"]}
    way = "Chosen for another way through it, on which changed instructions run that otherwise do not: b (host)."
    assert way in sentences.sentences(looked)
    bench.turned = (knobs.Turned(case=Case(workload="getppid", label="a:big=2"), functions=()),)
    _, looked = bench.choose(SOURCE, SOURCE.replace("a + 7", "a * 9 + 1"))
    assert (
        "Chosen for a knob, with which the patched kernel did not come to the case's end: a:big=2."
        in sentences.sentences(looked)
    )


def test_a_case_of_a_file_system_is_tried_where_the_kernels_have_it(bench: Bench) -> None:
    """All others would be told with each patch: 94 cases that need CONFIG_BLK_DEV_RAM."""
    known = catalogue(())
    cases = [Case(workload="getppid", label="a"), *(known["files"].case({"on": on}) for on in ("tmpfs", "ext4"))]
    old, new = bench.kernel(SOURCE), bench.kernel(SOURCE.replace("a + 7", "a * 9 + 1"))

    def tried(*configs: dict[str, str]) -> int:
        asked = auto.Asked(
            cases=cases, usual=(), workloads=known, folders=(), machine=MachineOptions(), cost_s=lambda _: 1.0,
            left_s=lambda: 60.0,
        )  # fmt: skip
        kernels = [replace(kernel, config=config) for kernel, config in zip((old, new), configs, strict=True)]
        return auto.choose(kernels, (), asked, Quiet())[1].candidates

    has = {"BLK_DEV_RAM": "y", "EXT4_FS": "y"}
    assert (tried(has, has), tried(has, {}), tried(has, has | {"EXT4_FS": "m"})) == (3, 2, 2)


def test_what_no_case_executes_on_one_cpu_may_run_on_several(bench: Bench) -> None:
    """sched_balance_rq() was "executed by no case" with --smp 4 too, by a map made on one CPU."""
    other = SOURCE.replace("weights[a & 7]", "weights[a & 3]")
    cases, looked = bench.choose(SOURCE, other)
    assert not cases
    assert "A program of yours may: the same command with -- PROGRAM, or 4 CPUs: with --smp 4." in " ".join(
        sentences.sentences(looked)
    )
    cases, looked = bench.choose(SOURCE, other, cpus=4)
    told = " ".join(sentences.sentences(looked))
    assert cases == ["c"] and looked.cpus == 4
    assert "NOT LOOKED AT, no case executes it on one CPU in its operations (1 of 1): weigh." in told
    assert "None of 3 cases executes in its operations on one CPU anything that differs." in told
    assert "Measured all the same, as on 4 CPUs other code runs: c." in told
    later = replace(looked, measured=("weigh",), unreached=())
    assert "Looked at: weigh; by what was measured on 4 CPUs." in sentences.sentences(later)


def test_a_kernel_without_smp_is_not_sent_to_several_cpus(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its guests come up with one, whatever --smp says."""
    make = bench.kernel
    monkeypatch.setattr(bench, "kernel", lambda source: replace(make(source), config={"SMP": "n"}))
    looked = bench.choose(SOURCE, SOURCE.replace("weights[a & 7]", "weights[a & 3]"))[1]
    told = " ".join(sentences.sentences(looked))
    assert looked.cpus == 0 and "the same command with -- PROGRAM." in told and "--smp" not in told


def test_of_what_is_used_by_pointer_it_is_not_said_that_no_case_executes_it(bench: Bench) -> None:
    text = f"{SOURCE}{REGISTERED}"
    cases, looked = bench.choose(text, text.replace("{ 1, 0, first }", "{ 1, third, first }"))
    assert not cases and [one.name for one in looked.unreached] == ["hooks (data, used by pointer)"]
    told = " ".join(sentences.sentences(looked))
    assert "no case is known to execute it in its operations (1 of 1): hooks" in told
    assert "None of 3 cases is known to execute in its operations anything that differs" in told


def test_of_what_is_handed_on_in_code_it_is_not_said_that_no_case_executes_it(bench: Bench) -> None:
    text = SOURCE.replace("a + 7", "a + 7 + (queued = later, 0)").replace("struct ops {", f"{LATER}struct ops {{", 1)
    cases, looked = bench.choose(SOURCE, text)
    assert cases == ["a"] and "host" in looked.measured
    told = " ".join(sentences.sentences(looked))
    assert "no case is known to execute it in its operations" in told
    assert "later (new, its address is taken in host: it may run later, outside of what is counted)" in told


def test_what_runs_at_boot_alone_is_told_without_a_map(bench: Bench) -> None:
    start = '__attribute__((section(".init.text"), noinline)) int starts(int a) { return a * 5; }'
    cases, looked = bench.choose(f"{SOURCE}\n{start}", f"{SOURCE}\n{start.replace('* 5', '* 5 + (a >> 3)')}")
    assert (cases, bench.maps) == (["c"], 0), "it may not boot any more"
    assert [one.name for one in looked.unreached] == ["starts (boot only)"]
    assert looked.controls == ("c",)
    assert sentences.sentences(looked)[2:] == (
        "None of 3 cases executes in its operations anything that differs.",
        "Measured all the same, as what runs at boot may change any case: c.",
    )
    for told in (sentences.nothing(looked), sentences.sentences(looked)[1]):
        assert "starts (boot only). What is set at boot may change other paths: name cases" in told
        assert "kdelta compare BASELINE PATCHED --case path_lookup" in told
    assert sentences.nothing(looked).endswith("--case path_lookup. Whether the patched kernel boots was not tried")


def test_what_the_start_calls_may_change_paths_that_do_not_call_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """zone_batchsize(): "Nothing was measured", where each allocation of pages took another way by what it had set."""
    start = '__attribute__((section(".init.text"), noinline)) int starts(int a) { return a * 5; }'
    before, after = (
        f"{SOURCE}\n{start}".replace("weights[a & 7]", what) for what in ("weights[a & 7]", "weights[a & 3]")
    )

    class Graph:
        def callers(self, name: str) -> tuple[str, ...]:
            return {"weigh": ("sizes",), "sizes": ("starts",)}.get(name, ())

    monkeypatch.setattr(calls, "load", lambda *_: Graph())
    cases, looked = bench.choose(before, after)
    assert (cases, looked.controls) == (["c"], ("c",))
    told = " ".join(sentences.sentences(looked))
    assert "(1 of 1): weigh (called at boot). What is set at boot may change other paths: name cases" in told
    monkeypatch.setattr(source, "objects", lambda _: bench.folder)
    monkeypatch.setattr(source, "touched", lambda _: ("mm/sizes.c",))
    monkeypatch.setattr(directories, "functions_of", lambda *_: frozenset({"call"}))
    cases, looked = bench.choose(before, after, specs=(parse_kernel("src:x"), parse_kernel("src:y")))
    assert (cases, looked.controls, looked.near) == (["b", "c"], ("c",), ("b",))
    told = " ".join(sentences.sentences(looked))
    assert "Measured all the same, as they spend most in functions of the files that it touches: b." in told
    monkeypatch.setattr(Graph, "callers", lambda *_: ())
    assert bench.choose(before, after)[0] == []


def test_cases_that_the_atlas_knows_are_not_mapped(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    every = [Case(workload="getppid", label=name) for name in "abc"]
    digests = {case.name: digest(catalogue(())["getppid"], case) for case in every}
    changed = SOURCE.replace("weights[a & 7]", "weights[a & 3]")
    names = tuple(digests)
    for known, failed, maps in ((names[:1], names[1:2], 1), (names[:2], names[2:], 0)):
        cases_now, failed_now = ({name: digests[name] for name in some} for some in (known, failed))
        drawn = replace(SMALL, cases=cases_now, failed=failed_now)
        monkeypatch.setattr(silent, "told", lambda *_, drawn=drawn: drawn)
        bench.maps = bench.mapped = 0
        cases, looked = bench.choose(SOURCE, changed)
        assert (cases, bench.maps, bench.mapped) == ([], maps, maps)
        assert looked.atlas == SMALL.title and looked.not_mapped == tuple(failed)
        last = sentences.sentences(looked)[-2]
        assert "None of 3 cases" in last and "3 kernels, 6.1.192 to 7.3.4" in last and "kdelta reach KERNEL" in last


def test_a_case_that_changed_since_the_atlas_is_mapped(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(workload="getppid", label="a")
    known = {name: digest(catalogue(())["getppid"], case) for name in "abc"}
    drawn = replace(SMALL, cases=known | {"b": "0" * 12}, failed={})
    monkeypatch.setattr(silent, "told", lambda *_: drawn)
    bench.choose(SOURCE, SOURCE.replace("weights[a & 7]", "weights[a & 3]"))
    assert (bench.maps, bench.mapped) == (1, 1)


def test_equal_code_and_data_need_no_map_and_no_boot(bench: Bench) -> None:
    cases, looked = bench.choose(SOURCE, f"/* a word more */\n\n{SOURCE}")
    assert (cases, bench.maps) == ([], 0)
    assert "there is nothing to measure" in sentences.sentences(looked)[0]
    empty = templates.compare(templates.Asked(cases=()), (), "exact", templates.Stopping(), looked=looked)
    assert empty.blocks == 0 and empty.annotations.looked == looked


def test_an_option_that_is_off_is_told_with_how_to_measure_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = parse_kernel("src:debian:6.12+/a.patch")
    monkeypatch.setattr(source, "options_off", lambda one, _: ("PIPE_SKIP",) if one.patches else ())
    monkeypatch.setattr(source, "parameters", lambda _: ())
    monkeypatch.setattr(source, "remembered", lambda _: None)
    told = " ".join(sentences.sentences(bench.choose(SOURCE, SOURCE, specs=(parse_kernel("src:debian:6.12"), spec))[1]))
    assert "identical" in told and "NOT LOOKED AT, off in this config: PIPE_SKIP; measured by" in told
    assert "the same kdelta review with --config PIPE_SKIP=y." in told


def test_what_the_config_does_not_build_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A patch of arch/arm64 was "identical: there is nothing to measure", as if that had been looked at."""
    parts = LeftOut(options=("WATCH_QUEUE",), parts=("arch/arm64/kernel/syscall.c",))
    monkeypatch.setattr(source, "options_off", lambda *_: ())
    monkeypatch.setattr(source, "parameters", lambda _: ())
    monkeypatch.setattr(source, "remembered", lambda _: Built(image_sha256="0" * 64, origin="", left_out=parts))
    specs = tuple(map(parse_kernel, ("src:debian:6.12", "src:debian:6.12+/a.patch")))
    _, looked = bench.choose(SOURCE, SOURCE, specs=specs)
    told = " ".join(sentences.sentences(looked))
    assert "not built with this config: arch/arm64/kernel/syscall.c." in told and "WATCH_QUEUE=y" in told
    assert sentences.nothing(looked) == (
        "Nothing was measured: machine code and data are identical, as this config does not build "
        "arch/arm64/kernel/syscall.c nor what stands under CONFIG_WATCH_QUEUE"
    )


def test_boot_parameters_that_a_patch_brings_are_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "options_off", lambda *_: ())
    monkeypatch.setattr(source, "remembered", lambda _: None)
    monkeypatch.setattr(source, "parameters", lambda _: ("pipe_strict", "limit="))
    specs = tuple(map(parse_kernel, ("src:debian:6.12", "src:debian:6.12+/a.patch")))
    _, looked = bench.choose(SOURCE, SOURCE.replace("weights[a & 7]", "weights[a & 3]"), specs=specs)
    told = " ".join(sentences.sentences(looked))
    assert "NOT LOOKED AT, boot parameters that are not given: pipe_strict, limit=;" in told
    assert 'cmdline="pipe_strict limit=VALUE" behind both kernels' in told


def test_cases_for_which_the_map_had_no_time_are_no_cases_that_execute_nothing(bench: Bench) -> None:
    bench.reach = replace(bench.reach, no_time=("c",))
    changed = SOURCE.replace("weights[a & 7]", "weights[a & 3]")
    told = " ".join(sentences.sentences(bench.choose(SOURCE, changed)[1]))
    assert "NOT LOOKED AT, no mapped case executes it in its operations (1 of 1): weigh." in told
    assert "NOT LOOKED AT, no time to map 1 of 3 cases, of which nothing is known" in told
    assert (
        "None of 2 mapped cases executes in its operations anything that differs; what they set up "
        "before is not seen: nothing was measured." in told
    )


def test_rows_of_another_kernels_map_are_told_with_what_their_set_up_may_execute(bench: Bench) -> None:
    rows = (bench.reach.rows[0], replace(bench.reach.rows[1], beyond=("opens", "closes")))
    bench.reach = replace(bench.reach, rows=rows)
    looked = bench.choose(SOURCE, SOURCE.replace("a + 7", "a * 9 + 1"))[1]
    assert (looked.taken_over, looked.beyond) == (1, ("closes", "opens"))
    assert (
        "1 of 3 cases were mapped on another kernel, from which the baseline differs in closes, opens: their"
        in " ".join(sentences.sentences(looked))
    )


def test_several_patches_are_looked_at_together(bench: Bench) -> None:
    one, two = SOURCE.replace("a + 7", "a + 8 * a"), SOURCE.replace("table.run(a)", "table.run(a) + 4")
    cases, looked = bench.choose(SOURCE, one, SOURCE, two)
    assert sorted(cases) == ["a", "b"] and looked.differ == 2
    assert bench.maps == 1


def test_a_change_that_no_case_executes_says_so_and_measures_nothing(bench: Bench) -> None:
    cases, looked = bench.choose(SOURCE, SOURCE.replace("weights[a & 7]", "weights[a & 3]"))
    assert cases == []
    assert sentences.sentences(looked)[-1].startswith(
        "None of 3 cases executes in its operations anything that differs; what they set up before is not "
    )
    assert sentences.nothing(looked) == "Nothing was measured: no case executes weigh in its operations"
    assert "machine code and data are identical" in sentences.nothing(bench.choose(SOURCE, SOURCE)[1])


def test_a_program_of_the_users_is_measured_whatever_it_executes(bench: Bench) -> None:
    mine = Case(workload="getppid", label="mine")
    bench.reach = replace(bench.reach, rows=(*bench.reach.rows, row("mine", weigh=(1, 5), rest=(1, 5))))
    unseen = SOURCE.replace("weights[a & 7]", "weights[a & 3]")
    cases, looked = bench.choose(SOURCE, unseen, given=(mine,))
    assert (cases, looked.cases, looked.measured, looked.candidates) == (["mine"], ("mine",), ("weigh",), 4)
    cases, looked = bench.choose(SOURCE, SOURCE.replace("a + 7", "a * 9 + 1"), given=(mine,))
    assert (cases, looked.cases) == (["mine", "a"], ("a",))
    bench.reach = replace(bench.reach, rows=bench.reach.rows[:2])
    told = sentences.sentences(bench.choose(SOURCE, unseen, given=(mine,))[1])[-1]
    assert told.endswith("; what you named is measured all the same: mine.")
    assert bench.choose(SOURCE, SOURCE, given=(mine,))[0] == []  # identical: there is nothing to measure


def test_many_names_are_cut_in_the_text_and_whole_in_the_json() -> None:
    looked = Looked(functions=90, differ=40, candidates=3, left_out=tuple(f"f{i}" for i in range(30)))
    assert "and 18 more" in " ".join(sentences.sentences(looked))
    assert len(sentences.document(looked)["left_out"]) == 30

# SPDX-License-Identifier: GPL-2.0-or-later
"""Exact mode on shipped kernels: the published steps, with their functions, the same every time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kdelta.report import json_

WORKLOADS = Path(__file__).parents[1] / "data" / "workloads"


def rows(got: dict, metric: str = "instructions") -> dict[str, dict]:  # type: ignore[type-arg]
    return {row["case"]: row for row in got["results"] if row["metric"] == metric}


def functions(row: dict) -> dict[str, float]:  # type: ignore[type-arg]
    return {item["function"]: item["delta"] for item in row["because"]}


def test_pidfs_made_pidfd_open_dearer_and_is_named(answer) -> None:  # type: ignore[no-untyped-def]
    row = rows(answer("compare", "debian:6.1/cloud", "debian:6.12/cloud", "--case", "pidfd_open"))["pidfd_open"]
    assert (row["verdict"], row["state"]) == ("regressed", "ok")
    assert 40 < row["effect_percent"] < 130
    assert "path_from_stashed" in functions(row)


def test_the_path_walk_lost_step_into_and_walk_component(answer) -> None:  # type: ignore[no-untyped-def]
    row = rows(answer("compare", "debian:6.18/cloud", "debian:7.0/cloud", "--case", "path_lookup"))["path_lookup"]
    assert row["verdict"] == "improved"
    gone = functions(row)
    assert gone["step_into"] < 0
    assert gone["walk_component"] < 0


def test_the_same_command_gives_the_same_bytes_also_with_the_other_core_busy(kdelta) -> None:  # type: ignore[no-untyped-def]
    cases = ("--case", "pidfd_open", "--case", "thread_spawn", "--seeds", "3")
    command = ("compare", "debian:6.12/cloud", "debian:7.0/cloud", *cases)
    first = kdelta(*command, "--json", "-q").stdout
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        second = kdelta(*command, "--json", "-q").stdout
    finally:
        busy.kill()
        busy.wait()
    assert json_.result_part(first.encode()) == json_.result_part(second.encode())


SOME = ("--case", "fork_vmas", "--case", "thread_spawn")


@pytest.mark.parametrize(("options", "cells"), [(SOME, 2), pytest.param(("--memcg",), 10, marks=pytest.mark.full)])
def test_one_kernel_under_two_labels_is_the_same_in_every_case(answer, options: tuple[str, ...], cells: int) -> None:  # type: ignore[no-untyped-def]
    got = answer("compare", "a=debian:6.12/cloud", "b=debian:6.12/cloud", *options, "--seeds", "8")
    called = {row["case"] + row["cgroup"]: row["verdict"] for row in got["results"] if row["primary"]}
    assert len(called) == cells
    assert set(called.values()) == {"same"}, called
    locked = rows(got, "locked")
    assert locked["fork_vmas"]["baseline"] > 10_000  # 4 where the LOCK prefixes are patched out
    assert locked["thread_spawn"]["baseline"] > 100


def test_unsupported_is_a_state_and_never_a_number(answer) -> None:  # type: ignore[no-untyped-def]
    got = answer("compare", "debian:6.1/cloud", "debian:6.12/cloud", "--case", "fork_vmas:names=same,vmas=100")
    (row,) = rows(got).values()
    assert (row["state"], row["verdict"], row["baseline"]) == ("unsupported", None, None)
    assert "ANON_VMA_NAME" in row["why"]


def test_kernels_of_two_architectures_are_refused(kdelta) -> None:  # type: ignore[no-untyped-def]
    done = kdelta("compare", "debian:6.12/cloud", "debian:6.12/cloud,arch=arm64", check=1)
    assert "architecture" in done.stderr


def test_calls_are_followed_in_the_command_that_compares(kdelta, tmp_path) -> None:  # type: ignore[no-untyped-def]
    page = tmp_path / "page.html"
    words = ("debian:6.1/cloud", "debian:7.0/cloud", "--case", "path_lookup", "--why", "stacks")
    kdelta("compare", *words, "--format", "html", "-o", str(page))
    text = page.read_text()
    assert 'id="flame0-graph"' in text and "by calls " in text
    assert "; by calls " in " ".join(kdelta("report", "last", "--causes").stdout.split())


@pytest.mark.full
def test_call_stacks_hold_what_was_counted(answer, kdelta) -> None:  # type: ignore[no-untyped-def]
    cases = ("thread_spawn", "syscalls/context_switch-8", "fork_vmas")
    answer("compare", "debian:6.1/cloud", "debian:7.0/cloud", *(word for case in cases for word in ("--case", case)))
    for case in cases:
        for side in ("baseline", "patched"):
            done = kdelta("why", "last", case, "--stacks", "--export", "collapsed", "--side", side)
            assert "counted otherwise" not in done.stderr
            stacks = dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())
            flat: dict[str, int] = {}
            for stack, count in stacks.items():
                flat[stack.rsplit(";", 1)[1]] = flat.get(stack.rsplit(";", 1)[1], 0) + int(count)
            vectors = json.loads(kdelta("why", "last", case, "--export", "json").stdout)["cases"]
            counted = list(vectors.values())[side == "patched"]
            assert sum(flat.values()) == counted["total"][0]
            entry = {name for name, count in flat.items() if counted["functions"].get(name, [0])[0] != count}
            assert all("entry_SYS" in name or "syscall_return" in name or "return" in name for name in entry), entry
            assert any(stack.count(";") > 6 for stack in stacks)
        table = (
            kdelta("why", "last", case, "--all").stdout.partition("where the calls part")[2].partition("\n\nlocked")[0]
        )
        parts = [float(line.split()[3]) for line in table.splitlines()[3:] if line]
        kernel = [one["total"][0] - one["functions"].get("[user]", [0])[0] for one in vectors.values()]
        before, after = (count / one["ops"] for count, one in zip(kernel, vectors.values(), strict=True))
        assert sum(parts) == pytest.approx(after - before, abs=0.06 * len(parts))  # each is rounded to a tenth


@pytest.mark.full
@pytest.mark.parametrize("series", ["6.12", "7.2"])  # since 7.2 a timer that has expired is not armed at all
def test_a_case_that_sleeps_is_switched_away(answer, kdelta, series: str) -> None:  # type: ignore[no-untyped-def]
    cases = ("syscalls/nanosleep", "syscalls/timerfd")
    answer("run", "--kernel", f"debian:{series}", "--exact", *(word for case in cases for word in ("--case", case)))
    for case in cases:
        found = json.loads(kdelta("why", "last", case, "--export", "json").stdout)["cases"].values()
        assert found and all(counted["functions"]["__schedule"][0] > 0 for counted in found)


@pytest.mark.full
def test_every_series_keeps_its_lock_prefixes(answer) -> None:  # type: ignore[no-untyped-def]
    got = answer("compare", "debian:6.1..7.3", "--case", "fork_vmas", "--seeds", "5", timeout=1200)
    locked = [row for row in got["results"] if row["metric"] == "locked"]
    assert len(locked) >= 8
    assert all(min(row["baseline"], row["patched"]) > 1000 for row in locked), locked


@pytest.mark.full
def test_an_arm64_pair_gives_the_same_kind_of_result(answer) -> None:  # type: ignore[no-untyped-def]
    command = ("compare", "debian:6.1/cloud,arch=arm64", "debian:6.12/cloud,arch=arm64", "--case", "pidfd_open")
    row = rows(answer(*command))["pidfd_open"]
    assert row["verdict"] == "regressed"
    assert "path_from_stashed" in json.dumps(row["because"]) or functions(row)


def test_a_word_that_the_kernel_does_not_know_is_told_and_harms_nothing(answer) -> None:  # type: ignore[no-untyped-def]
    typo = 'typo=debian:6.12/cloud,cmdline="mitigation=off quiett"'
    got = answer("compare", "debian:6.12/cloud", typo, "--case", "getppid")
    (row,) = rows(got).values()
    assert (row["verdict"], row["state"]) == ("same", "ok")
    (told,) = (warning["text"] for warning in got["warnings"] if warning["code"] == "cmdline")
    assert told.startswith("typo: Unknown kernel parameters: quiett mitigation=off ")


# In one of eight seeds each had: work that a tick had woken, a refill of the random generator, a process without ticks.
REPEAT = ("syscalls/context_switch-8", "syscalls/epoll_ctl", "syscalls/getrusage")


def test_counts_that_repeat_stop_at_five_seeds_and_those_that_vary_go_on(kdelta) -> None:  # type: ignore[no-untyped-def]
    cases = (word for case in (*REPEAT, "getppid", "uneven") for word in ("--case", case))
    words = (*cases, "--workloads", str(WORKLOADS), "--seeds", "8")
    said = kdelta(
        "compare", "a=debian:6.12/cloud", 'b=debian:6.12/cloud,cmdline="uneven_extra"', *words, "--json", "-q"
    )
    got = rows(json.loads(said.stdout))
    for case in (*REPEAT, "getppid"):
        assert (case, got[case]["verdict"], got[case]["boots"]) == (case, "same", [5, 5])
    assert got["uneven"]["boots"] == [8, 8]


def test_a_case_counts_the_same_alone_and_among_many(answer) -> None:  # type: ignore[no-untyped-def]
    """Sixteen guests and more have their counters from the start (experiment/boot_once.py), one of its own later."""
    command = ("run", "debian:7.0/cloud", "--exact", "--boots", "1")
    many = rows(answer(*command, "--case", "syscalls/futex*", "--case", "syscalls/*pingpong", "--case", "syscalls/se*"))
    assert len(many) >= 16
    for name in ("syscalls/futex_wake", "syscalls/unix_pingpong"):
        alone = rows(answer(*command, "--case", name))
        assert alone[name]["baseline"] == many[name]["baseline"] > 0

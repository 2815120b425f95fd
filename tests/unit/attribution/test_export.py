# SPDX-License-Identifier: GPL-2.0-or-later
"""Exports hold every count, in the shape that the other tool reads."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kdelta.attribution.export import collapsed, perf_script, pprof, speedscope, vectors_json
from kdelta.model import EXACT_COUNTERS, MovedLine, Profile, Waited
from unit.attribution import counts

LOOKUP = Profile(
    ops=16,
    functions={
        "link_path_walk": (900, 200, 100, 0, 70, 0, 0),
        "memset": (10, 0, 0, 0, 0, 2, 2**40),
        "[user]": (50, 9, 9, 1, 3, 0, 0),
    },
    total=(960, 209, 109, 1, 73, 2, 2**40),
)
BOTH = {"path_lookup": LOOKUP, "pipe (memcg)": counts.profile({"pipe_write": 1000, "memset": 5})}


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _fields(data: bytes) -> list[tuple[int, int | bytes]]:
    found: list[tuple[int, int | bytes]] = []
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        value, at = _varint(data, at)
        if tag & 7 == 2:
            found.append((tag >> 3, data[at : at + value]))
            at += value
        else:
            assert tag & 7 == 0
            found.append((tag >> 3, value))
    return found


def _packed(data: int | bytes) -> list[int]:
    assert isinstance(data, bytes)
    values, at = [], 0
    while at < len(data):
        value, at = _varint(data, at)
        values.append(value)
    return values


def _messages(fields: list[tuple[int, int | bytes]], number: int) -> list[bytes]:
    return [value for field, value in fields if field == number and isinstance(value, bytes)]


def _decode(data: bytes) -> tuple[list[tuple[str, str]], dict[tuple[str, str], list[int]]]:
    """(counter, unit) of each column; (case, call stack joined by semicolons) -> counts."""
    top = _fields(gzip.decompress(data))
    strings = [text.decode() for text in _messages(top, 6)]
    assert strings[0] == ""
    types = [(strings[dict(f)[1]], strings[dict(f)[2]]) for f in map(_fields, _messages(top, 1))]  # type: ignore[index]
    names = {dict(f)[1]: strings[dict(f)[2]] for f in map(_fields, _messages(top, 5))}  # type: ignore[index]
    lines = {dict(f)[1]: dict(_fields(dict(f)[4]))[1] for f in map(_fields, _messages(top, 4))}  # type: ignore[arg-type]
    samples = {}
    for sample in map(_fields, _messages(top, 2)):
        parts = dict(sample)
        *stack, case = (names[lines[ident]] for ident in _packed(parts[1]))
        function = ";".join(reversed(stack))
        label = dict(_fields(parts[3]))  # type: ignore[arg-type]
        assert (strings[label[1]], strings[label[2]]) == ("case", case)  # type: ignore[index]
        samples[case, function] = _packed(parts[2])
    assert strings[dict(top)[14]] == "instructions"  # type: ignore[index]
    return types, samples


def test_pprof_reads_back_as_it_was() -> None:
    types, samples = _decode(pprof(BOTH))
    assert [name for name, _ in types] == list(EXACT_COUNTERS)
    assert dict(types)["rep_bytes"] == "bytes"
    assert samples == {(case, f): list(v) for case, p in BOTH.items() for f, v in p.functions.items()}


@given(
    st.dictionaries(st.text(max_size=8), st.dictionaries(st.text(max_size=8), st.integers(0, 2**63 - 1)), max_size=4)
)
def test_pprof_holds_every_sample_of_any_profile(cases: dict[str, dict[str, int]]) -> None:
    profiles = {case: counts.profile(functions) for case, functions in cases.items()}
    _, samples = _decode(pprof(profiles))
    assert {key: values[0] for key, values in samples.items()} == {
        (case, function): count for case, functions in cases.items() for function, count in functions.items()
    }


@pytest.mark.full  # newer Go compiles its pprof first: a minute
def test_go_tool_pprof_shows_the_functions(tmp_path: Path) -> None:
    go = shutil.which("go")
    if go is None:
        pytest.skip("no go on this machine")
    path = tmp_path / "profile.pb.gz"
    path.write_bytes(pprof(BOTH))
    done = subprocess.run(
        [go, "tool", "pprof", "-top", "-nodecount=5", str(path)],
        capture_output=True,
        text=True,
        timeout=900,  # of a hang: on a busy machine Go takes minutes
        env={**os.environ, "HOME": str(tmp_path), "GOPROXY": "off", "GOFLAGS": "-mod=mod"},
    )
    if "no such tool" in done.stderr:
        pytest.skip("this go has no pprof")
    assert done.returncode == 0, done.stderr
    first = done.stdout.partition("flat%")[2].splitlines()[1].split()
    assert (first[0], first[-1]) == ("1000", "pipe_write")
    assert "Type: instructions" in done.stdout


def test_collapsed_stacks_are_one_line_per_function_heaviest_first() -> None:
    assert collapsed(BOTH) == (
        "path_lookup;link_path_walk 900\npath_lookup;[user] 50\npath_lookup;memset 10\n"
        "pipe (memcg);pipe_write 1000\npipe (memcg);memset 5\n"
    )
    assert collapsed(BOTH, "rep_bytes") == f"path_lookup;memset {2**40}\n"


def test_a_name_cannot_break_a_collapsed_line() -> None:
    assert collapsed({"a;b\nc": counts.profile({"f": 1})}) == "a:b c;f 1\n"


def test_speedscope_weights_add_up_to_the_end_value() -> None:
    document = json.loads(speedscope(BOTH))
    frames = [frame["name"] for frame in document["shared"]["frames"]]
    assert len(frames) == len(set(frames))
    lookup, pipe = document["profiles"]
    assert (lookup["type"], lookup["endValue"], sum(lookup["weights"])) == ("sampled", 960, 960)
    assert [frames[stack[0]] for stack in pipe["samples"]] == ["pipe_write", "memset"]
    assert pipe["weights"] == [1000, 5]


def test_json_holds_the_full_vectors() -> None:
    document = json.loads(vectors_json(BOTH))
    assert document["counters"] == list(EXACT_COUNTERS)
    assert document["cases"]["path_lookup"] == {
        "ops": 16,
        "total": list(LOOKUP.total),
        "functions": {name: list(vector) for name, vector in LOOKUP.functions.items()},
    }


def test_json_of_several_cpus_has_lines_waits_and_the_bound() -> None:
    lock = MovedLine(name="tasklist_lock", reads=0, writes=32, cpus=8, by={"do_exit": (0, 32)})
    taken = Waited(function="queued_write_lock_slowpath", caller="do_exit", lock="tasklist_lock", times=3, taken=16)
    case = json.loads(vectors_json({"exit": replace(LOOKUP, moved=(lock,), waits=(taken,))}))["cases"]["exit"]
    assert (case["lines"][0]["name"], case["lines"][0]["by"]) == ("tasklist_lock", {"do_exit": [0, 32]})
    assert case["waits"][0]["times"] == 3 and case["serial"]["transfers"] == 2.0


@pytest.mark.parametrize("export", [collapsed, speedscope, vectors_json, pprof])
def test_the_order_of_functions_does_not_change_the_bytes(export: object) -> None:
    turned = {
        case: Profile(ops=p.ops, functions=dict(reversed(p.functions.items())), total=p.total)
        for case, p in reversed(BOTH.items())
    }
    assert export(turned) == export(BOTH)  # type: ignore[operator]


DEEP = replace(
    counts.profile({"vfs_read": 30, "memcpy": 12}, user=5),
    stacks="0 0 0 [kernel]\n1 20 1 vfs_read\n2 8 2 memcpy\n1 4 1 memcpy\n1 10 1 do;it\n2 0 1 leaf",
)


def test_followed_calls_are_stacks_callers_first() -> None:
    assert collapsed({"read": DEEP}).splitlines() == [
        "read;[user] 5",
        "read;do:it 10",
        "read;memcpy 4",
        "read;vfs_read 20",
        "read;vfs_read;memcpy 8",
    ]
    sampled = {stack: numbers[0] for (_, stack), numbers in _decode(pprof({"read": DEEP}))[1].items()}
    assert sampled == {"[user]": 5, "do;it": 10, "memcpy": 4, "vfs_read": 20, "vfs_read;memcpy": 8}
    frames = json.loads(speedscope({"read": DEEP}))
    names = [frame["name"] for frame in frames["shared"]["frames"]]
    (shown,) = frames["profiles"]
    assert [names[i] for i in shown["samples"][-1]] == ["vfs_read", "memcpy"]
    assert shown["endValue"] == 47


def test_perf_script_has_a_sample_for_each_stack_its_last_function_first() -> None:
    events = perf_script({"read of 1 byte": DEEP}).split("\n\n")
    last = [line.split() for line in events[-2].splitlines()]
    assert last[0] == ["read_of_1_byte", "1", "[000]", "0.000005:", "8", "instructions:"]
    assert [line[1] for line in last[1:]] == ["memcpy", "vfs_read"]
    assert perf_script({}) == ""


def test_other_counters_of_followed_calls_stay_flat() -> None:
    assert collapsed({"read": DEEP}, "loads") == ""

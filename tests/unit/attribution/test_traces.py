# SPDX-License-Identifier: GPL-2.0-or-later
"""Recorded tracefs output of Debian's kernels -> figures. The streams are as guests sent them (tests/data/traces)."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from kdelta.attribution import tracefs, traces
from kdelta.attribution.warnings import TraceDropped, TraceFailed, TraceMissed, TraceShortened
from kdelta.errors import GuestError
from kdelta.guest import protocol
from kdelta.model import Experiment, plans
from kdelta.report import traces as report
from kdelta.spec import collectors

DATA = Path(__file__).parents[2] / "data" / "traces"
SETS = collectors.catalogue()
PIPE, MIX = "pipe:writers=2,readers=2,message=4K", "pipe:pattern=mix"
LOCKS, SIZES, MIX_LOCKS, MIX_SIZES = 0, 1, 2, 3  # jobs of the pipe's streams
ALLOCS, SYSCALLS = 0, 1  # jobs of the pidfd's streams


def _result(name: str, collector: str, job: int, **config: str) -> traces.SetResult:
    stream = protocol.parse((DATA / f"{name}.stream").read_bytes())
    assert stream.state == "ok"
    return traces.evaluate(
        SETS[collector], stream.records, job, kernel=name[-4:], case="c", config=config, boot=("ok", "")
    )


def _probe(result: traces.SetResult, name: str) -> traces.ProbeResult:
    return next(probe for probe in result.probes if probe.probe == name)


@pytest.mark.parametrize("version", ["6.1", "6.12", "7.2"])
def test_the_pipe_s_mutex_is_named_by_those_who_take_it_and_every_hold_is_there(version: str) -> None:
    result = _result(f"pipe-locks-sizes-{version}", "locks", LOCKS)
    assert (result.state, result.ops, result.warnings) == ("ok", 16384, ())
    probe = _probe(result, "hold")
    rows = {row.site: row for row in probe.rows if row.lock == "of pipe_read, pipe_write"}
    assert set(rows) == {"pipe_read", "pipe_write"}
    assert rows["pipe_write"].count >= result.ops
    for row in rows.values():
        assert row.most is not None and row.count <= row.sums["ns"] and row.most <= row.sums["ns"]
        assert sum(row.sites.values()) == row.count
        (mine,) = [b for b in probe.buckets if b.site == row.site]
        assert sum(mine.counts.values()) == row.count
        assert 2 ** (max(mine.counts) - 1) < row.most <= 2 ** max(mine.counts)
    prefix = "anon_" if version == "7.2" else ""
    assert all(site.startswith(f"{prefix}pipe_write+0x") for site in rows["pipe_write"].sites)


@pytest.mark.parametrize("version", ["6.1", "6.12", "7.2"])
def test_waits_for_the_pipe_s_mutex_have_their_call_sites(version: str) -> None:
    rows = _probe(_result(f"pipe-locks-sizes-{version}", "locks", LOCKS), "wait").rows
    mine = [row for row in rows if row.lock == "of pipe_read, pipe_write"]
    assert {row.site for row in mine} == {"pipe_read", "pipe_write"}
    assert all(row.label in ("mutex", "mutex, spinning") and row.count and row.sums["ns"] for row in mine)


@pytest.mark.parametrize("version", ["6.1", "6.12", "7.2"])
def test_every_write_of_a_known_mix_is_counted_once_in_its_bucket(version: str) -> None:
    result = _result(f"pipe-locks-sizes-{version}", "sizes", MIX_SIZES)
    assert result.ops == 8192
    (buckets,) = _probe(result, "writes").buckets
    assert sum(buckets.counts.values()) == 8192
    # 128 sizes in turn, 64 times: pipe.c, exact mode
    assert buckets.counts == {1: 64, 2: 192, 3: 192, 4: 448, 5: 832, 6: 1792, 7: 4608, 13: 64}
    if version != "6.1":
        assert _probe(result, "pipe_writes").buckets[0].counts == buckets.counts


def test_a_thousand_pidfd_open_are_a_thousand_inodes_dentries_and_files() -> None:
    result = _result("pidfd-allocs-syscalls-6.12", "allocs", ALLOCS)
    rows = {row.site: row for row in _probe(result, "objects").rows}
    assert result.ops == 1000
    assert [rows[site].count for site in ("alloc_inode", "__d_alloc", "alloc_empty_file")] == [1000, 1000, 1000]
    assert rows["__d_alloc"].sums == {"B asked": 192_000, "B given": 192_000}
    assert _probe(result, "kmalloc_node").state == "absent"


def test_pages_are_counted_where_they_were_wanted_and_not_inside_the_allocator() -> None:
    rows = _probe(_result("pidfd-allocs-syscalls-6.12", "allocs", ALLOCS), "pages").rows
    assert rows[0].site == "allocate_slab" and not any(SETS["allocs"].skips(row.site) for row in rows)


def test_system_calls_have_names_and_times() -> None:
    result = _result("pidfd-allocs-syscalls-6.12", "syscalls", SYSCALLS)
    rows = {row.site: row for row in _probe(result, "latency").rows}
    assert rows["sys_pidfd_open"].count == rows["sys_close"].count == 1000


def test_system_calls_that_the_kernel_has_no_name_for_are_told_apart_by_number() -> None:
    """All calls that tracing has no metadata of, as of a patch's new ones, were one unknown_syscall."""
    names = traces._Names(SETS["syscalls"])
    found = [names.site(f"{name:30}[{number:3}]")[0] for name, number in (("sys_read", 0), ("unknown_syscall", 400))]
    assert found == ["sys_read", "syscall_400"]
    assert names.site(f"unknown_syscall               [{2**64 - 1}]") == ("sys_rt_sigreturn", "sys_rt_sigreturn")


def test_a_probe_that_the_kernel_refuses_names_what_is_missing() -> None:
    probe = _probe(_result("pipe-locks-sizes-6.1", "sizes", SIZES, FPROBE_EVENTS="n", KPROBE_EVENTS="n"), "pipe_writes")
    assert (probe.state, probe.rows) == ("missing", ())
    assert probe.why == "this kernel lacks CONFIG_FPROBE_EVENTS, CONFIG_KPROBE_EVENTS"
    probe = _probe(_result("pipe-locks-sizes-6.1", "sizes", SIZES, FPROBE_EVENTS="n"), "pipe_writes")
    assert probe.why.startswith("kprobe at pipe_write was rejected: EINVAL at dynamic_events: p:kdelta/kd_pipe")
    assert "v6.6" in probe.why and probe.why.endswith("this kernel lacks CONFIG_FPROBE_EVENTS")


def test_the_kernel_s_error_log_is_kept() -> None:
    result = _result("pipe-locks-sizes-6.12", "sizes", SIZES)
    assert "anon_pipe_write" in result.errors and "error" in result.errors


def _record(name: str, text: str, part: int = 0, parts: int = 1) -> protocol.Trace:
    return protocol.Trace(j=0, name=name, part=part, parts=parts, b64=base64.b64encode(text.encode()).decode())


def _made(*records: protocol.Record, collector: str = "sizes") -> traces.SetResult:
    return traces.evaluate(SETS[collector], records, 0, kernel="k", case="c", config={}, boot=("ok", ""))


DONE = protocol.Done(j=0, state="ok")
WRITES = """# event histogram
#
# trigger info: hist:keys=count.log2:vals=hitcount,count:sort=hitcount:size=128 [paused]
#

{ count: ~ 2^7 } hitcount:          3  count:        300

Totals:
    Hits: 10
    Entries: 1
    Dropped: 7
"""


def test_a_full_table_is_a_warning_that_names_its_size() -> None:
    result = _made(
        protocol.Repetition(j=0, r=0, id=0, ops=10),
        _record("events/syscalls/sys_enter_write/hist", WRITES),
        _record("@status", "ok writes syscalls:sys_enter_write\n"),
        DONE,
    )
    (warning,) = result.warnings
    assert warning.code == "trace-dropped"
    assert isinstance(warning, TraceDropped) and (warning.dropped, warning.hits, warning.size) == (7, 10, 128)


def test_a_probe_that_missed_calls_and_a_trigger_that_failed_are_warnings() -> None:
    result = _made(
        _record("kprobe_profile", "  kd_want      10     0\n  kd_got       8      2\n"),
        _record("@status", "failed - x EBUSY events/a/trigger hist:keys=x\n"),
        DONE,
    )
    missed, failed = result.warnings
    assert missed == TraceMissed("kd_got", missed=2, calls=10)
    assert isinstance(failed, TraceFailed) and (failed.way, failed.error) == ("x", "EBUSY")


def test_a_kernel_without_tracefs_is_unsupported_and_a_lost_guest_is_lost() -> None:
    no_tracefs = protocol.Done(j=0, state="unsupported", why="this kernel has no tracefs (CONFIG_FTRACE)")
    assert (_made(no_tracefs).state, _made(no_tracefs).why) == ("unsupported", no_tracefs.why)
    assert _made().state == "lost"
    panicked = traces.evaluate(SETS["sizes"], (), 0, kernel="k", case="c", config={}, boot=("panicked", "Kernel panic"))
    assert (panicked.state, panicked.why) == ("panicked", "Kernel panic")


def test_files_are_put_together_from_their_pieces_and_a_missing_one_is_noticed() -> None:
    whole = [_record("f", "one ", 0, 2), _record("f", "two", 1, 2), _record("g", "x")]
    assert tracefs.files(whole, 0) == {"f": "one two", "g": "x"}
    assert tracefs.files([*whole, _record("g", "y")], 0)["g"] == "y"  # read again
    for broken in (whole[:1], whole[1:]):
        with pytest.raises(GuestError, match="trace file f"):
            tracefs.files(broken, 0)


def test_a_static_lock_has_its_own_name_and_others_are_joined_by_their_takers() -> None:
    text = """# event histogram
#
# trigger info: hist:keys=caller.sym-offset,lock.sym:vals=hitcount,ns:size=4096 [active]
#

{ caller: [ffffffff81000010] one+0x10/0x20, lock: [ffffffff82d422d0] cgroup_mutex   } hitcount:   1  ns:  40
\tmax:         40  ns:         40
{ caller: [ffffffff81000010] one+0x10/0x20, lock: [ffff888000000010] 0xffff888000000010 } hitcount:   2  ns:   50
\tmax:         30  ns:         30
{ caller: [ffffffff81000090] two.isra.0+0x10/0x20, lock: [ffff888000000010] 0xffff888000000010 } hitcount:   3  ns:  60
\tmax:         20  ns:         20

Totals:
    Hits: 6
    Entries: 3
    Dropped: 0
"""
    status = "ok hold mutex_lock_to_mutex_unlock\n"
    buckets = text.replace("caller.sym-offset,lock.sym", "caller.sym,ns.log2")
    records: list[protocol.Record] = [
        _record("events/synthetic/kd_hold/hist", text + buckets),
        _record("@status", status),
        DONE,
    ]
    rows = _probe(_made(*records, collector="locks"), "hold").rows
    assert [(row.lock, row.site, row.count, row.most) for row in rows] == [
        ("of one, two", "two", 3, 20),
        ("of one, two", "one", 2, 30),
        ("cgroup_mutex", "one", 1, 40),
    ]


def test_a_trace_says_whether_it_has_times_at_all() -> None:
    for mode, said in (("timed", "traced; times here are not speeds"), ("exact", "counted, not traced")):
        asked = Experiment(id="x", mode=mode, kernels=(), cases=(), plan=plans.Trace())  # type: ignore[arg-type]
        assert report.render([(asked, ())]).splitlines()[0] == f"kdelta trace x: {said}"


def test_the_table_sets_renamed_functions_side_by_side_in_72_columns() -> None:
    results = [_result(f"pipe-locks-sizes-{version}", "locks", LOCKS) for version in ("6.12", "7.2", "6.1")]
    text = report.render([(Experiment(id="x", mode="timed", kernels=(), cases=(), plan=plans.Trace()), results)])
    assert max(map(len, text.splitlines())) <= 72
    line = next(line for line in text.splitlines() if line.startswith("  pipe_write "))
    assert [round(float(word)) for word in line.split()[1:]] == [1, 1, 1]
    assert "lock of pipe_read, pipe_write" in text


def test_what_is_the_same_on_all_kernels_is_counted_where_changes_are_asked_for() -> None:
    """A review listed twenty rows alike of a program, and four lines of each case that holds no mutex."""

    def held(kernel: str, case: str, **times: int) -> traces.SetResult:
        rows = tuple(traces.Row(site=site, count=n, sums={"instructions": 9 * n}, most=9) for site, n in times.items())
        probe = traces.ProbeResult(probe="hold", title="mutex hold", state="ok", rows=rows)
        return traces.SetResult(
            collector="hold", title="Lock holds", kernel=kernel, case=case, state="ok", ops=1, probes=(probe,)
        )

    results = [
        *(held(kernel, "idle") for kernel in ("old", "new")),
        *(held(kernel, "quiet") for kernel in ("old", "new")),
        *(held(kernel, "alike", seq_read_iter=4) for kernel in ("old", "new")),
        held("old", "pipe", pipe_read=8, pipe_write=2),
        held("new", "pipe", pipe_read=9, pipe_write=2),
    ]
    asked = Experiment(id="x", mode="exact", kernels=(), cases=(), plan=plans.Trace())
    whole, text = (report.render([(asked, results)], changed=changed) for changed in (False, True))
    assert "pipe_write" in whole and "Lock holds: idle" in whole
    assert "pipe_read" in text and "pipe_write" not in text and "and 1 more, the same on all kernels" in text
    assert "Lock holds: nothing was seen: idle, quiet" in text
    assert "Lock holds: the same on all kernels: alike" in text


def test_the_json_has_figures_per_operation_for_each_kernel() -> None:
    import json

    results = [_result(f"pidfd-allocs-syscalls-{version}", "allocs", ALLOCS) for version in ("6.1", "6.12")]
    document = json.loads(
        report.to_json([(Experiment(id="x", mode="timed", kernels=(), cases=(), plan=plans.Trace()), results)])
    )
    (inodes,) = [
        r for r in document["traces"][0]["per_operation"] if r["site"] == "alloc_inode" and r["probe"] == "objects"
    ]
    assert document["schema"] == "kdelta-trace/1"
    old, new = inodes["kernels"].values()
    assert new["count"] == 1.0 and (old is None or old["count"] < 0.1)


def test_operations_that_did_not_fit_are_told_with_their_number() -> None:
    made = (protocol.Repetition(j=0, r=0, id=0, ops=300), DONE)
    assert _made(*made).warnings == ()
    cut = _made(protocol.Value(j=0, name="ops_left_out", v=700.0), *made)
    assert cut.ops == 300
    assert cut.warnings == (TraceShortened(300, 1000),)


@pytest.mark.parametrize("more", ["\n", "{\n", "}", "{", "a", "a:", ", ", "{ k: 1 } hitcount: 2\n"], ids=repr)
def test_a_table_of_anything_without_end_is_read_at_once(more: str) -> None:
    head = "# event histogram\n#\n# trigger info: hist:keys=k:vals=hitcount\n"
    (found,) = tracefs.parse_hist(
        f"{head}\n{{ k: 1 }} hitcount: 7\n    max: 9\n{more * 40_000}\nTotals:\n    Hits: 7\n"
    )
    assert found.entries[0].values == {"hitcount": 7} and found.entries[0].most == 9


def test_a_number_of_more_digits_than_a_counter_has_is_no_error() -> None:
    (found,) = tracefs.parse_hist(
        "# event histogram\n# trigger info: hist:keys=k\n{ k: 1 } hitcount: " + "9" * 5000 + "\nTotals:\n    Hits: 7\n"
    )
    assert found.hits == 7

# SPDX-License-Identifier: GPL-2.0-or-later
"""Traces of real kernels: counts that must be exact, locks that must be named, states that must be clear."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import pytest

Json = dict[str, Any]
KERNELS = ("debian:6.12", "debian:7.0/cloud")


def _results(document: Json, collector: str) -> list[Json]:
    return [r for trace in document["traces"] for r in trace["results"] if r["collector"] == collector]


def _rows(result: Json, probe: str) -> list[Json]:
    (found,) = [p for p in result["probes"] if p["probe"] == probe]
    assert found["state"] == "ok", found["why"]
    rows: list[Json] = found["rows"]
    return rows


@pytest.fixture
def traced(answer: Callable[..., Json]) -> Callable[..., Json]:
    return lambda *args: answer("trace", *args)


def test_a_thousand_pidfd_open_are_a_thousand_inodes_dentries_and_files(
    traced: Callable[..., Json],
) -> None:
    (result,) = _results(traced("debian:6.12", "--case", "pidfd_open", "--what", "allocs", "--ops", "1000"), "allocs")
    counts = {row["site"]: row["count"] for row in _rows(result, "objects")}
    assert result["ops"] == 1000
    for site in ("alloc_inode", "__d_alloc", "alloc_empty_file"):
        assert 1000 <= counts[site] <= 1010


@pytest.mark.full
def test_the_pipe_s_mutex_and_every_write_are_seen_on_old_and_new_kernels(
    traced: Callable[..., Json], kdelta: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    document = traced(*KERNELS, "--case", "pipe:pattern=mix", "--what", "locks,sizes", "--ops", "1280")
    for result in _results(document, "locks"):
        holds = {row["site"]: row for row in _rows(result, "hold") if row["lock"] == "of pipe_read, pipe_write"}
        assert holds["pipe_write"]["count"] >= 1280
    for result in _results(document, "sizes"):
        (buckets,) = next(p for p in result["probes"] if p["probe"] == "pipe_writes")["buckets"]
        assert buckets["counts"] == {
            "1": 10, "2": 30, "3": 30, "4": 70, "5": 130, "6": 280, "7": 720, "13": 10,
        }  # fmt: skip
    again = kdelta("report", "last").stdout
    assert "lock of pipe_read, pipe_write" in again


def test_exact_holds_are_the_same_figure_twice(
    traced: Callable[..., Json],
) -> None:
    found = []
    for _ in range(2):
        (result,) = _results(traced("debian:6.12", "--case", "pipe", "--what", "hold"), "hold")
        found.append({row["site"]: (row["count"], row["sums"], row["most"]) for row in _rows(result, "hold")})
    assert found[0] == found[1]
    assert found[0]["pipe_write"][0] > 0


@pytest.mark.full
def test_operations_adapt_to_what_a_traced_one_costs(traced) -> None:  # type: ignore[no-untyped-def]
    asked = 10_000_000  # by each of two writers: more than any host traces within the limit
    words = ("debian:6.12", "--case", "pipe:writers=2", "--what", "locks", "--limit", "8s", "--ops", str(asked))
    (result,) = _results(traced(*words), "locks")
    assert (result["state"], result["why"]) == ("ok", "")
    (left_out,) = [warning for warning in result["warnings"] if warning["code"] == "fewer-operations"]
    assert 0 < result["ops"] < 2 * asked
    assert left_out["text"].startswith(f"{result['ops']} of {2 * asked} operations")


def test_what_is_not_known_is_refused_before_anything_is_booted(kdelta) -> None:  # type: ignore[no-untyped-def]
    done = kdelta("trace", "debian:6.12", "--what", "lcoks", check=1)
    assert "did you mean locks" in done.stderr

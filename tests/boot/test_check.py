# SPDX-License-Identifier: GPL-2.0-or-later
"""Published claims hold on real guests, with no patch at all."""

from __future__ import annotations

import json


def test_the_pidfs_step_reproduces_between_debians_kernels(kdelta) -> None:  # type: ignore[no-untyped-def]
    got = json.loads(kdelta("check", "pidfs", "--json", "-q").stdout)
    answers = {claim["claim"]: claim for claim in got["claims"]}
    step = next(claim for text, claim in answers.items() if "25 %" in text)
    assert step["answer"] == "same direction", "a claim in time, judged by counts"
    assert step["measured"]["after"] > 1.3 * step["measured"]["before"]
    assert step["published"] == {"before": 0.39, "after": 0.5, "percent": 25.0, "unit": "us"}
    cause = next(claim for claim in got["claims"] if claim["function"] == "path_from_stashed")
    assert cause["answer"] == "reproduced"
    assert got["summary"]["opposite"] == got["summary"]["not reproduced"] == 0


def test_the_path_walk_inlining_reproduces_between_debians_kernels(kdelta) -> None:  # type: ignore[no-untyped-def]
    got = json.loads(
        kdelta(
            "check", "path-walk", "--json", "-q", "--baseline", "debian:6.18/cloud", "--patched", "debian:6.19/cloud"
        ).stdout
    )
    answers = {claim["claim"]: claim["answer"] for claim in got["claims"]}
    assert answers.pop("+4 % lookups a second") == "same direction"
    assert set(answers.values()) == {"reproduced"}
    shares = {claim["function"]: claim["measured"] for claim in got["claims"] if claim["function"]}
    assert shares["step_into"]["after"] < 0.1 < shares["step_into"]["before"]


def test_a_check_reversed_is_opposite(kdelta) -> None:  # type: ignore[no-untyped-def]
    got = json.loads(
        kdelta("check", "pidfs", "--json", "-q", "--baseline", "debian:6.12", "--patched", "debian:6.1").stdout
    )
    assert got["claims"][0]["answer"] == "not measurable here", "counts alone refute no claim in time"
    cause = next(claim for claim in got["claims"] if claim["function"] == "path_from_stashed")
    assert cause["answer"] == "opposite"


def test_what_needs_a_patch_or_many_cores_says_so_and_boots_nothing(kdelta) -> None:  # type: ignore[no-untyped-def]
    pipe = json.loads(kdelta("check", "pipe-prealloc", "--json", "-q").stdout)
    assert pipe["experiment"] is None
    assert all("--patch" in claim["why"] for claim in pipe["claims"])
    threads = json.loads(kdelta("check", "thread-exit", "--exact", "--json", "-q").stdout)
    assert threads["experiment"] is None
    assert threads["summary"]["not measurable here"] == 1

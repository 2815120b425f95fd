# SPDX-License-Identifier: GPL-2.0-or-later
"""Leaks, memory cost and memory pressure in real guests."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PATCH = Path(__file__).parents[1] / "data" / "patches" / "clone3-leak.patch"
KERNEL = "debian:6.12/cloud"
Answer = Callable[..., dict[str, Any]]


TCP = """#include <netinet/in.h>
#include "case.h"
static struct sockaddr_in at = {.sin_family = AF_INET};
static socklen_t size = sizeof(at);
static int heard;
SETUP(tcp)
{
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	heard = OK(socket(AF_INET, SOCK_STREAM, 0));
	OK(bind(heard, (void *)&at, size));
	OK(listen(heard, 5));
	OK(getsockname(heard, (void *)&at, &size));
}
CASE(tcp, "a connection made and closed, which TCP remembers for a minute")
{
	int to = OK(socket(AF_INET, SOCK_STREAM, 0));
	OK(connect(to, (void *)&at, size));
	int from = OK(accept(heard, NULL, NULL));
	OK(close(to));
	OK(close(from));
}
"""


def test_a_clean_kernel_raises_no_alarm_and_names_what_it_lacks(answer: Answer, tmp_path: Path) -> None:
    (tmp_path / "tcp.c").write_text(TCP, encoding="ascii")
    got = answer(
        "leaks", KERNEL, "--ops", "200", "--limit", "120s",
        "-c", "lifetimes:path=clone3_eagain|thread_pidfd|pipe_full|named_vmas", "-c", "pidfd_open",
        "-c", str(tmp_path / "tcp.c"),
    )  # fmt: skip
    verdicts = {row["case"]: (row["verdict"], row["state"]) for row in got["results"]}
    assert verdicts.pop("lifetimes:path=named_vmas") == (None, "unsupported")  # the cloud flavour has no ANON_VMA_NAME
    assert set(verdicts.values()) == {("clean", "ok")}
    exact = {g["what"]: g["per_op"] for row in got["results"] for g in row["growth"] if g["what"] == "dentries"}
    assert all(abs(value) < 0.05 for value in exact.values())


@pytest.mark.full
def test_a_planted_dentry_leak_is_caught_at_one_per_operation(kdelta: Callable[..., Any]) -> None:
    done = kdelta(
        "leaks", "clean=src:debian:6.12", f"planted=src:debian:6.12+{PATCH}", "--fail-on", "leak", "--json", "-q",
        "-c", "lifetimes:path=clone3|clone3_eagain|clone3_efault", "--limit", "120s", timeout=3600, check=4,
    )  # fmt: skip
    rows = {(row["kernel"], row["case"]): row for row in json.loads(done.stdout)["results"]}
    assert {row["verdict"] for (kernel, _), row in rows.items() if kernel == "clean"} == {"clean"}
    assert rows["planted", "lifetimes:path=clone3"]["verdict"] == "clean"  # clone3 that works
    for path in ("clone3_eagain", "clone3_efault"):
        leak = rows["planted", f"lifetimes:path={path}"]
        assert leak["verdict"] == "leak"
        (dentries,) = [g for g in leak["growth"] if g["what"] == "dentries"]
        assert dentries["per_op"] == pytest.approx(1.0, abs=0.02)


@pytest.mark.full
@pytest.mark.skipif(shutil.which("stress-ng") is None, reason="no stress-ng: kdelta doctor names the package")
def test_memory_pressure_reclaims_and_its_counters_are_told(kdelta: Callable[..., Any]) -> None:
    shown = kdelta("run", "--kernel", KERNEL, "--boots", "1", "-c", "pipe", "--pressure", "2x60%", "-q").stdout
    assert "pressure 2x60%" in shown
    scanned = re.search(r"(\d+) pages scanned, (\d+)\s+reclaimed", shown)
    assert scanned is not None, shown
    assert int(scanned[1]) > 0
    assert int(scanned[2]) > 0


def test_an_open_pidfd_costs_an_inode_and_a_dentry_and_a_closed_one_nothing(answer: Answer) -> None:
    got = answer(
        "run", "--kernel", KERNEL, "--boots", "1", "--all-metrics", "-c", "object_cost:object=pidfd|had_pidfd",
    )  # fmt: skip
    values = {(row["case"], row["metric"]): row["baseline"] for row in got["results"]}
    held, had = "object_cost:object=pidfd", "object_cost:object=had_pidfd"
    for what in ("dentries", "inodes", "files"):
        assert values[held, what] == pytest.approx(1.0, abs=0.05)
        assert abs(values[had, what] or 0.0) < 0.05
    assert 700 < values[held, "slab_bytes"] < 2000

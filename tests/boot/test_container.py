# SPDX-License-Identifier: GPL-2.0-or-later
"""The image for CI builds as its file says, and measures in a container as any user of it."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import container

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def image() -> Iterator[container.Engine]:
    why = container.lacking() or ("" if os.geteuid() == 0 else "only root can make the base of Debian")
    if why:
        pytest.skip(why)
    with tempfile.TemporaryDirectory() as folder, container.built(Path(folder)) as engine:
        yield engine


def test_doctor_finds_all_that_exact_counts_and_builds_need(image: container.Engine) -> None:
    assert re.fullmatch(r"kdelta, version \S+\n", image.ran("kdelta", "--version"))
    findings = json.loads(image.ran("kdelta", "doctor", "--json"))["findings"]
    good = {one["name"] for one in findings if one["level"] == "ok"}
    assert {"qemu x86-64", "qemu arm64", "compiler", "kernel builds", "archive"} <= good
    modules = "import fsspec, labgrid, procrastinate, psycopg, s3fs, starlette"
    assert image.ran("/opt/kdelta/bin/python", "-c", modules) == ""


@pytest.mark.parametrize("user", ["", "1000:1000"])
def test_two_kernels_are_compared(image: container.Engine, user: str) -> None:
    said = image.ran("kdelta", "compare", *container.KERNELS, "--case", "pidfd_open", "--json", user=user)
    verdicts = {row["case"]: row["verdict"] for row in json.loads(said)["results"] if row["primary"]}
    assert verdicts == {"pidfd_open": "regressed"}

# SPDX-License-Identifier: GPL-2.0-or-later
"""Real guests for tests: kernels from Debian's archive, kept in the user's cache between runs."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kdelta import paths
from kdelta.errors import HostError
from kdelta.kernel.debian import INDEX_AGE_S, Archive

BOOT = Path(__file__).parent
WORKLOADS = BOOT.parent / "data" / "workloads"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if BOOT in item.path.parents:
            item.add_marker(pytest.mark.boot)


@pytest.fixture(scope="session", autouse=True)
def cache() -> Path:
    """The user's own cache: kernels are large, and content-addressed."""
    folder = paths.cache_dir()
    os.environ["KDELTA_CACHE"] = str(folder)
    with contextlib.suppress(HostError):  # else debian:6.12 may become a newer one between two commands of a test
        Archive("x86_64").index(INDEX_AGE_S / 2)
    return folder


Program = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def kdelta(tmp_path: Path, cache: Path) -> Program:
    """The program as a user runs it, with a store of this test's own."""
    environment = {**os.environ, "KDELTA_STATE": str(tmp_path / "state"), "KDELTA_CACHE": str(cache)}

    def run(
        *args: str, timeout: float = 400, check: int | None = 0, before: str = "pass"
    ) -> subprocess.CompletedProcess[str]:
        """``before``: what is done to ``kdelta.machine.turns`` first."""
        program = f"from kdelta.machine import turns; {before}; from kdelta.cli.main import main; main()"
        argv = [sys.executable, "-c", program, *args]
        done = subprocess.run(
            argv, capture_output=True, text=True, errors="replace", timeout=timeout, env=environment, check=False
        )
        if check is not None:
            assert done.returncode == check, done.stdout + done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        return done

    return run


@pytest.fixture
def answer(kdelta: Program) -> Callable[..., dict]:  # type: ignore[type-arg]
    """The JSON result of a command."""

    def run(*args: str, **options: object) -> dict:  # type: ignore[type-arg]
        return json.loads(kdelta(*args, "--json", "-q", **options).stdout)  # type: ignore[no-any-return]

    return run

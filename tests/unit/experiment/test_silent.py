# SPDX-License-Identifier: GPL-2.0-or-later
"""When the atlas may say that no case executes a change: a real object of a driver, and every kind of doubt."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from kdelta.attribution import atlas
from kdelta.attribution.atlas import Atlas
from kdelta.attribution.changes import Change, Changes
from kdelta.experiment import silent
from kdelta.kernel import source
from kdelta.kernel.calls import CallGraph
from kdelta.kernel.sources import parse_kernel
from kdelta.model import Case, Kernel, MachineOptions
from unit.attribution.test_atlas import SMALL

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
DRIVER = "int probe(int a) { return a; }\nstatic int helper(int a) { return a * 3; }\nint (*ops)(int) = helper;\n"


def graph(**callees: str) -> CallGraph:
    """Who calls whom, one callee each."""
    names = sorted({*callees, *callees.values()})
    counts = [name in callees for name in names]
    return CallGraph(
        text="\n".join(names),
        firsts_le=np.append(0, np.cumsum(counts)).astype("<u4").tobytes(),
        callees_le=np.array([names.index(callees[n]) for n in names if n in callees], "<u4").tobytes(),
    )


class Bench:
    """A patched driver with its object, which the atlas answers for."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.paths: tuple[str, ...] = ("drivers/rtc/a.c", "Documentation/rtc.rst")
        self.found = Changes(changes=(Change(name="probe", kind="code", hosts=("probe",)),), functions=9)
        self.specs = [parse_kernel("src:debian:6.12"), parse_kernel("src:debian:6.12+/a.patch")]
        self.machine, self.calls = MachineOptions(memory_mib=2048), graph(device_add="probe")
        self.release = "6.12.117"
        path = folder / "drivers/rtc/a.c"
        path.parent.mkdir(parents=True)
        path.write_text(DRIVER)
        subprocess.run(["gcc", "-c", str(path), "-o", str(path.with_suffix(".o"))], check=True)
        monkeypatch.setattr(source, "objects", lambda _: folder)
        monkeypatch.setattr(source, "touched", lambda spec: self.paths if spec.patches else ())
        monkeypatch.setattr(atlas, "shipped", lambda: SMALL)

    def told(self) -> Atlas | None:
        base = Kernel(label="6.12", spec="src:x", release=self.release, image_path="/i", image_sha256="a")
        return silent.told(self.found, [base, base], self.specs, self.machine, self.calls)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


def test_a_driver_that_no_kernel_of_the_atlas_executed_is_told(bench: Bench) -> None:
    assert bench.told() is SMALL


def _set(**values: Any) -> Callable[[Bench], None]:
    return lambda bench: vars(bench).update(values)


def _found(**values: Any) -> Callable[[Bench], None]:
    return lambda bench: setattr(bench, "found", replace(bench.found, **values))


def _hosts(*hosts: str) -> Callable[[Bench], None]:
    return _found(changes=(Change(name="table", kind="data", hosts=hosts),))


@pytest.mark.parametrize(
    "doubt",
    [
        pytest.param(_set(paths=("drivers/rtc/a.c", "fs/pipe.c")), id="a core directory"),
        pytest.param(_set(paths=("drivers/rtc/a.c", "include/linux/rtc.h")), id="a header"),
        pytest.param(_set(paths=("drivers/rtc/a.c", "drivers/rtc/Kconfig")), id="a config"),
        pytest.param(_set(paths=()), id="no patch"),
        pytest.param(_set(release="7.4.0-rc1"), id="newer than the atlas"),
        pytest.param(_set(machine=MachineOptions(smp=4)), id="several CPUs"),
        pytest.param(_set(calls=None), id="calls unknown"),
        pytest.param(_set(calls=graph(pipe_write="probe")), id="called by what is executed"),
        pytest.param(_set(specs=[parse_kernel('src:debian:6.12,cmdline="x"')] * 2), id="a command line"),
        pytest.param(_set(specs=[parse_kernel("src:debian:6.12,config=/c")] * 2), id="a config of the user's"),
        pytest.param(_set(specs=[parse_kernel("debian:6.12")] * 2), id="not built here"),
        pytest.param(_hosts("probe", "elsewhere"), id="code of another file"),
        pytest.param(_hosts(), id="data that is used by pointer alone"),
        pytest.param(_found(whole=True), id="the whole image"),
        pytest.param(_found(boot_patched=True), id="patched at boot"),
        pytest.param(_found(sizes_only=True), id="sizes alone"),
    ],
)
def test_any_doubt_is_left_to_the_kernels_own_map(doubt: Callable[[Bench], None], bench: Bench) -> None:
    doubt(bench)
    assert bench.told() is None


def test_a_function_of_the_same_file_that_a_case_executed_is_a_doubt(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atlas, "shipped", lambda: replace(SMALL, functions=frozenset({"helper"})))
    assert bench.told() is None


def test_a_case_that_this_kernel_cannot_run_is_named_for_what_it_executes(bench: Bench) -> None:
    """Of a patch to mm/page-writeback.c was told that no case executes it, and not that those of ext4 do."""
    kernel = Kernel(label="6.12", spec="src:x", release="6.12", image_path="/i", image_sha256="a")
    case = Case(workload="files", label="files:on=ext4", params={"on": "ext4"})
    change = Change(name="writeback_iter", kind="code", hosts=("writeback_iter",))
    found = Changes(changes=(*bench.found.changes, change), functions=9)
    assert silent.rarely(found, kernel, {case.name: case}) == {"writeback_iter": case}
    inlined = Changes(changes=(replace(change, name="writeback_get_folio"),), functions=9)
    assert silent.rarely(inlined, kernel, {case.name: case}) == {"writeback_get_folio": case}
    assert silent.rarely(found, kernel, {}) == {} == silent.rarely(found, replace(kernel, arch="arm64"), {"x": case})

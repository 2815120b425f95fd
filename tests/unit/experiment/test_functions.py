# SPDX-License-Identifier: GPL-2.0-or-later
"""Why a kernel has no function names reaches the report; what a guest tells is taken only whole."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from kdelta.experiment import functions
from kdelta.experiment.work import Site
from kdelta.guest.protocol import Done, Trace
from kdelta.kernel import naming, symbols
from kdelta.model import Kernel, Profile, RunResult
from kdelta.model.progress import Quiet
from kdelta.results import answer
from kdelta.results.warnings import NoNames
from kdelta.store.store import Store
from unit.kernel import synthetic
from unit.serve import serve_store


def piece(part: int, parts: int, text: bytes) -> Trace:
    return Trace(j=0, name="kallsyms", part=part, parts=parts, b64=base64.b64encode(text).decode())


def test_a_guests_symbols_are_taken_only_whole() -> None:
    done = Done(j=0, state="ok")
    assert functions.told([piece(0, 2, b"one "), piece(1, 2, b"two"), done]) == b"one two"
    assert functions.told([piece(1, 2, b"two"), piece(0, 2, b"one "), done]) == b"one two"
    assert functions.told([piece(0, 2, b"one "), done]) is None
    assert functions.told([piece(0, 2, b"one "), piece(1, 2, b"two")]) is None
    assert functions.told([piece(0, 1, b"one"), Done(j=0, state="failed", why="No such file")]) is None
    assert functions.told([done]) is None


def test_a_guest_that_tells_other_names_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    image = tmp_path / "vmlinux"
    image.write_bytes(synthetic.vmlinux(None))
    kernel = Kernel(
        label="mine", spec="m", release="6.12", image_path=str(image), image_sha256="", vmlinux_path=str(image)
    )
    rows = synthetic.symbols()
    names = [row[2] for row in rows]
    shifted = zip([row[0] for row in rows], [*names[:3], *names[4:-3], names[3], *names[-3:]], strict=True)
    naming.keep_guest_text(kernel, "".join(f"{at:016x} T {name}\n" for at, name in shifted).encode())
    nowhere = Site(programs={}, scratch=tmp_path, snapshots=tmp_path)
    found = functions.missing(nowhere, [kernel], Quiet())
    assert list(found) == ["mine"]
    assert found["mine"].startswith("no kallsyms tables")
    assert "guest: the names of its guest are not those of its machine code" in found["mine"]
    assert isinstance(naming.load(kernel), symbols.NoSymbols)


def test_the_reason_is_in_the_report_of_the_rows_that_lack_names(tmp_path: Path) -> None:
    nameless = Profile(ops=16, functions={"[unknown 0xffffffff81000000]": (160,) + (0,) * 6}, total=(160,) + (0,) * 6)
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        one = serve_store.experiment("one", ("6.12", "7.0"))
        store.create(one)
        grown = functions.noted(store, one, {"7.0": "no kallsyms tables"})
        assert functions.noted(store, grown, {"7.0": "no kallsyms tables"}) is grown
        for block in range(2):
            for slot in range(2):
                boot = serve_store.boot(block, slot)
                if slot == 1:
                    run = boot.runs[0]
                    boot = serve_store.boot(
                        block, 1, runs=(RunResult(case=0, state="ok", series=run.series, profile=nameless),)
                    )
                store.save_boot("one", boot)
        (row,) = answer.result(store, "one")[0].results[:1]
    assert [w for w in row.warnings if w.code == "no-symbols"] == [NoNames((("7.0", "no kallsyms tables"),))]
    assert row.because == () and row.because_line is None

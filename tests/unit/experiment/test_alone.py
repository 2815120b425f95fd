# SPDX-License-Identifier: GPL-2.0-or-later
"""Two kdeltas that measure one experiment: the second is told, and nothing is lost with the first."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from kdelta.cli._session import Session
from kdelta.cli.main import program
from kdelta.errors import HostError
from kdelta.experiment import alone, prepare
from kdelta.model.progress import Quiet
from kdelta.store.store import Store
from unit.store.store_builders import boot, experiment

HOLD = """
import sys
from kdelta.experiment import alone
from kdelta.store.store import Store
with Store(sys.argv[1]) as store, alone.measuring(store, "first"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))


def test_an_experiment_is_measured_by_one_process_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second made the same boots, and ended with "block 7 slot 0 is stored already"."""
    url = f"sqlite:///{tmp_path / 's.sqlite'}"
    monkeypatch.setattr(prepare, "prepare", lambda *_, **__: pytest.fail("it was made ready"))
    with Store(url) as store:
        store.create(experiment())
        store.save_boot("first", boot(0, 0))
        argv = [sys.executable, "-c", HOLD, url]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdout is not None and other.stdout.readline() == "held\n"
            said = rf"another kdelta \(process {other.pid}\) measures experiment first .*; 1 finished boot is kept"
            with pytest.raises(HostError, match=said):
                Session(store, True).run(store.experiment("first"), Quiet())
            with pytest.raises(HostError, match="another kdelta"):
                prepare.run(store.experiment("first"), store, Quiet())
            with alone.measuring(store, "second"):
                pass
            monkeypatch.setenv("KDELTA_STORE", url)
            deleted = CliRunner().invoke(program, ["history", "delete", "first", "--yes"])
            assert f"another kdelta (process {other.pid}) measures experiment first just now: end it" in str(
                deleted.exception
            )
            assert store.experiment("first")
            other.kill()
        alone.refuse_measured(store, "first", "")
        with alone.measuring(store, "first"):
            pass
    assert not list((tmp_path / "cache" / "measuring").iterdir())


def test_experiments_of_one_name_in_two_stores_are_two(tmp_path: Path) -> None:
    with (
        Store(f"sqlite:///{tmp_path / 'a.sqlite'}") as one,
        Store(f"sqlite:///{tmp_path / 'b.sqlite'}") as two,
        alone.measuring(one, "first"),
        alone.measuring(two, "first"),
    ):
        pass

# SPDX-License-Identifier: GPL-2.0-or-later
"""--fleet on the command line: what cannot be is refused before a kernel is fetched."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from kdelta import fleet
from kdelta.cli import _fleet, _kernels, _patching, main

COMPARE = ["compare", "debian:6.1", "debian:6.12", "--case", "getppid"]
RUN = ["run", "--kernel", "debian:6.12", "--case", "getppid"]


@pytest.fixture(autouse=True)
def lite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetched(*_: object) -> None:
        raise AssertionError("a kernel was fetched")

    monkeypatch.setenv("KDELTA_STATE", str(tmp_path))
    monkeypatch.delenv("KDELTA_STORE", raising=False)
    monkeypatch.setattr(_kernels, "fetched", fetched)
    monkeypatch.setattr(_patching, "fetched", fetched)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([*COMPARE, "--fleet"], "the fleet needs a store on PostgreSQL"),
        ([*RUN, "--fleet"], "the fleet needs a store on PostgreSQL"),
        ([*RUN, "--fleet", "--on", "bench1"], "the fleet needs a store on PostgreSQL"),
        (["worker", "--on", "gone.toml:bench1"], "the fleet needs a store on PostgreSQL"),
        (["sweep", "debian:6.1..7.0", "--fleet"], "the fleet needs a store on PostgreSQL"),
        ([*COMPARE, "--detach"], "--detach goes with --fleet"),
        ([*COMPARE, "--fleet", "--timed", "--time-budget", "1h"], "--time-budget is of one machine"),
        ([*COMPARE, "--fleet", "--detach", "--fail-on", "regressed"], "--fail-on waits for the result"),
        (["resume", "last", "--fleet", "--detach", "--decide"], "--decide waits for the result"),
        (["bisect", "src:.@v1", "src:.@v2", "--fleet"], "the fleet needs a store on PostgreSQL"),
        (["bisect", "src:.@v1", "src:.@v2", "--fleet", "--detach"], "kdelta bisect waits for the result"),
        (["sweep", "--follow", "debian:6.12..", "--fleet", "--detach"], "--follow waits for the result"),
        (["sweep", "--add", "last", "debian:7.4", "--fleet"], "the fleet needs a store on PostgreSQL"),
        (["worker"], "the fleet needs a store on PostgreSQL"),
        (["worker", "--host", "a b"], "letters, digits, dots"),
        (["worker", "--dead-after", "soon"], "is not a duration"),
        (["fleet"], "the fleet needs a store on PostgreSQL"),
    ],
)
def test_what_cannot_be_is_one_line(words: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(words) == 1
    said = capsys.readouterr().err
    assert why in said and said.count("\n") == 1


def test_ctrl_c_while_the_fleet_measures_says_that_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted:
        def __getattr__(self, name: str) -> Callable[..., None]:
            def asked(*_: object, **__: object) -> None:
                if name == "wait":
                    raise KeyboardInterrupt

            return asked

    @contextmanager
    def ledger() -> Iterator[None]:
        yield

    monkeypatch.setattr(_fleet, "opened", ledger)
    monkeypatch.setattr(fleet, "asking", Interrupted(), raising=False)
    monkeypatch.setitem(sys.modules, "kdelta.fleet.asking", Interrupted())
    session, experiment = SimpleNamespace(store=None), SimpleNamespace(cases=("getppid",), id="20261125-030000-aaaa")
    with pytest.raises(KeyboardInterrupt) as told:
        _fleet.run(session, experiment, _fleet.FleetArgs(fleet=True, detach=False), None)  # type: ignore[arg-type]
    assert told.value.__notes__ == [
        "the fleet goes on; wait again with: kdelta resume 20261125-030000-aaaa --fleet, "
        "or stop it with: kdelta fleet --cancel 20261125-030000-aaaa"
    ]


def test_what_there_is_one_of_is_told_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    from kdelta.cli.fleet import _show
    from kdelta.fleet.status import Fleet, HostState, Waiting

    host = HostState(name="h", slots=1, version="1", qemu="7", kvm=False, silent_s=0.0, dead=False, doing=())
    one = Waiting(experiment="e", boots=1, waiting=1, doing=1, hosts=("h",), left_s=None)
    _show(Fleet(hosts=(host,), experiments=(one,), failures=()))
    said = capsys.readouterr().out
    assert " 1 slot, " in said and "1 boot stored, 1 unit running, 1 waiting" in said
    _show(Fleet(hosts=(), experiments=(replace(one, boots=2, doing=0),), failures=()))
    assert "2 boots stored, 0 units running" in capsys.readouterr().out

# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

from kdelta.errors import UserError
from kdelta.lab.describe import described, parse

_BENCH = """
[bench1]
address = "192.0.2.7"
user = "lab"
port = 2222
key = "keys/id"
start = "grub"
cmdline = "nosmt"
[bench1.resources.NetworkSerialPort]
host = "192.0.2.8"
port = 4001
[bench1.resources.NetworkPowerPort]
model = "netio"
host = "192.0.2.9"
index = 3
[bench2]
address = "192.0.2.10"
"""


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    path = tmp_path / "lab.toml"
    path.write_text(_BENCH)
    return path


def test_a_table_becomes_what_labgrid_takes(lab: Path) -> None:
    (lab.parent / "keys").mkdir()
    (lab.parent / "keys" / "id").touch()
    machine = described(f"{lab}:bench1")
    assert machine.options.start == "grub"
    assert (machine.options.tty, machine.options.cmdline) == ("ttyS0", "nosmt")
    assert machine.target is not None
    assert machine.target["resources"]["NetworkService"] == {"address": "192.0.2.7", "username": "lab", "port": 2222}
    assert machine.target["drivers"] == {
        "SSHDriver": {"keyfile": str(lab.parent / "keys/id")}, "SerialDriver": {}, "NetworkPowerDriver": {},
    }  # fmt: skip


def test_drivers_that_are_written_stay_as_they_are(lab: Path) -> None:
    lab.write_text(_BENCH + '[bench2.drivers.SSHDriver]\nkeyfile = "/k"\nusername = "x"\n')
    machine = described(f"{lab}:bench2")
    assert machine.target is not None
    assert machine.target["drivers"] == {"SSHDriver": {"keyfile": "/k", "username": "x"}}


def test_an_environment_of_labgrid_is_read_by_labgrid(tmp_path: Path) -> None:
    pytest.importorskip("labgrid")
    path = tmp_path / "lab.yaml"
    path.write_text(
        "targets:\n  bench:\n    resources:\n      NetworkService:\n        address: 192.0.2.7\n"
        "        username: root\n"
        "    drivers:\n      SSHDriver: {}\n    options:\n      kdelta:\n        console: ttyAMA0\n"
    )
    machine = described(f"{path}:bench")
    assert machine.target is None
    assert (machine.options.tty, machine.options.start) == ("ttyAMA0", "kexec")
    with pytest.raises(UserError, match="has no machine 'other': it has bench"):
        described(f"{path}:other")
    path.write_text("targets: [}")
    with pytest.raises(UserError, match=r"lab\.yaml"):
        described(f"{path}:bench")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[bench1]\naddress = "x"\nstrat = "grub"', "strat"),
        ('[bench1]\nuser = "x"', "address"),
        ('[bench1]\naddress = "x"\nport = 70000', "port"),
        ('[bench1]\naddress = "x"\nstart = "pxe"', "'pxe' - at `$.start`: one of kexec, grub, "),
        ('[bench1]\naddress = "x"\nkey = "gone"', "key"),
        ('[bench1]\naddress = "x"\nconsole = "ttyS0; reboot"', "as the kernel takes it"),
        ('[bench1]\naddress = "x"\ncmdline = "a\\nb"', "cannot be printed"),
        ('[bench1]\naddress = "x"\nreturn_limit_s = 0', "return_limit_s"),
        ('[bench1]\naddress = "x"\nstart = "grub"\nwatchdog = "arm"', 'watchdog is for start = "kexec"'),
        ('[bench1]\naddress = "x"\nhardware = { trubo = true }', "trubo"),
        ('[bench1]\naddress = "x"\nhardware.cpus = "3-1"', "'3-1' is no list of CPUs"),
        ("[bench1", "lab.toml"),
        ("[other]\n", "it has other"),
        ("bench1 = 3", "it has none"),
    ],
)
def test_what_is_wrong_with_it_is_one_line(lab: Path, text: str, told: str) -> None:
    lab.write_text(text)
    with pytest.raises(UserError) as refused:
        described(f"{lab}:bench1")
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("text", ["lab.toml", ":bench1", "lab.toml:", ""])
def test_a_name_without_its_file_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"lab\.toml:bench1"):
        parse(text)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        described(f"{tmp_path}/gone.toml:bench1")
    (tmp_path / "lab.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="not text"):
        described(f"{tmp_path}/lab.toml:bench1")

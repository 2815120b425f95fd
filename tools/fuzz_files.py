# SPDX-License-Identifier: GPL-2.0-or-later
"""Fuzzing targets for what is read by its path: packages, exported experiments, TOML files, programs.

Those that another program reads for us (dpkg-deb, rpm) are slow: some hundred inputs a second.
"""

from __future__ import annotations

import atexit
import hashlib
import io
import struct
import tarfile
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import click
import msgspec
import zstandard

import fuzz_program
from kdelta.cli import _spec_file, compare
from kdelta.guest import closure
from kdelta.kernel import ar, deb, package, rpm, unpack
from kdelta.lab import describe
from kdelta.model import BootResult, Case, Experiment, Kernel, PlannedBoot, plans
from kdelta.spec import suites, workloads
from kdelta.store import transfer
from kdelta.store.store import Store

ROOT = Path(__file__).resolve().parents[1]
Target = Callable[[bytes], object]
_ID = "20260101-000000-0000"


@cache
def _folder() -> Path:
    """Of this process; in memory where there is such a place."""
    shared = Path("/dev/shm")
    made = tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None)
    atexit.register(made.cleanup)
    return Path(made.name)


def _file(name: str, read: Callable[[Path], object]) -> Target:
    def target(data: bytes) -> None:
        path = _folder() / name
        path.write_bytes(data)
        read(path)

    return target


def _tar(data: bytes) -> None:
    with package.stream(unpack.Stream(io.BytesIO(data), "", package.TOTAL_LIMIT_BYTES), Path("fuzz.deb")) as entries:
        package.parts(entries, rpm.PARTS)


@cache
def _store() -> Store:
    return Store(f"sqlite:///{_folder() / 'fuzz.sqlite'}")


def _import(path: Path) -> None:
    _store().import_(path)
    _store().delete(_ID)


def _bundle(data: bytes) -> bytes:
    """``data`` with the checksum that it should have."""
    return data + hashlib.sha256(data).digest()


def _frames(data: bytes) -> bytes:
    """An exported experiment whose frames are ``data``."""
    line = msgspec.json.encode(transfer.Line(format=transfer.FORMAT, schema=transfer.SCHEMA, id=_ID, boots=1))
    return _bundle(line + b"\n" + zstandard.compress(data))


def _suite(path: Path) -> None:
    suites.load(path)


def _machine(path: Path) -> None:
    describe.described(f"{path}:bench")


def _options(path: Path) -> None:
    command = compare.command
    values = _spec_file.values(path, command)
    with click.Context(command, info_name="compare") as context:
        context.default_map = values


def _program(path: Path) -> None:
    closure.read_elf.__wrapped__(path, ())


TARGETS: dict[str, Target] = {
    "tar": _tar,
    "deb": _file("fuzz.deb", deb.read_kernel),
    "rpm": _file("fuzz.rpm", rpm.read_kernel),
    "bundle": lambda data: _file("fuzz.kdx", _import)(_bundle(data)),
    "bundle-frames": lambda data: _file("fuzz.kdx", _import)(_frames(data)),
    "workload": _file("fuzz.toml", workloads.load_entry),
    "suite": _file("fuzz.toml", _suite),
    "machine": _file("fuzz.toml", _machine),
    "spec-file": _file("fuzz.toml", _options),
    "program": _file("fuzz", _program),
}


def _tarred(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return made.getvalue().rstrip(b"\0") + bytes(1024)


def _ar(members: dict[str, bytes]) -> bytes:
    """An archive as ar writes it, which is what a Debian package is (deb(5))."""
    rows = (
        f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode() + content + b"\n" * (len(content) % 2)
        for name, content in members.items()
    )
    return ar.MAGIC + b"".join(rows)


def _seed_frames() -> bytes:
    kernel = Kernel(label="6.12", spec="debian:6.12", release="6.12.1", image_path="/x", image_sha256="ab" * 32)
    experiment = Experiment(
        id=_ID, mode="exact", kernels=(kernel,), cases=(Case(workload="pipe"),), blocks=1, plan=plans.Run(),
        created_at="2026-01-01T00:00:00+00:00", command="kdelta run", tool_version="0.1.0",
    )  # fmt: skip
    boot = BootResult(plan=PlannedBoot(block=0, slot=0, kernel=0), state="lost", started_at="", elapsed_s=1.0)
    packed = (
        msgspec.msgpack.encode(part) for part in (transfer.Header(experiment=experiment, tags=("a",)), boot, "end")
    )
    return b"".join(struct.pack("<I", len(one)) + one for one in packed)


_MACHINE = (
    b'[bench]\naddress = "10.0.0.2"\nconsole = "ttyS0,115200"\nstart = "kexec"\nstart_limit_s = 300\n'
    b'[bench.resources.RawSerialPort]\nport = "/dev/ttyUSB0"\n'
)
_SPEC = b'kernels = ["debian:6.12", "debian:7.0"]\ncase = ["pipe", "getppid"]\nmax-blocks = 20\nexact = true\n'


def seeds(name: str) -> list[bytes]:
    """Inputs from which a target's others are made."""
    tree = _tarred({"./boot/config-6.12": b"CONFIG_SMP=y\n", "./boot/vmlinuz-6.12": b"MZ" + bytes(62)})
    control = _tarred({"./control": b"Package: linux-image-6.12\nVersion: 6.12\nArchitecture: amd64\n"})
    found: dict[str, Callable[[], list[bytes]]] = {
        "tar": lambda: [tree],
        "deb": lambda: [_ar({"debian-binary": b"2.0\n", "control.tar": control, "data.tar": tree})],
        "rpm": lambda: [(ROOT / "tests/data/packages/tiny.rpm").read_bytes()],
        "bundle": lambda: [_frames(_seed_frames())[:-32]],
        "bundle-frames": lambda: [_seed_frames()],
        "workload": lambda: [path.read_bytes() for path in sorted((ROOT / "guest/workloads").glob("*.toml"))[:6]],
        "suite": lambda: [path.read_bytes() for path in sorted((ROOT / "guest/suites").glob("*.toml"))[:6]],
        "machine": lambda: [_MACHINE],
        "spec-file": lambda: [_SPEC],
        "program": lambda: [fuzz_program.tiny()],
    }
    return found[name]()

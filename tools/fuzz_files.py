# SPDX-License-Identifier: GPL-2.0-or-later
"""Fuzzing targets for what is read by its path: packages, exported experiments, TOML files, programs."""

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
import made_packages
from kdelta.cli import _spec_file, compare
from kdelta.guest import closure
from kdelta.kernel import deb, package, rpm, rpm_header, unpack
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
    fuzz_program.keep_structs()
    closure.read_elf.__wrapped__(path, ())


TARGETS: dict[str, Target] = {
    "tar": _tar,
    "tar-sealed": lambda data: _tar(made_packages.sealed_tar(data)),
    "deb": _file("fuzz.deb", deb.read_kernel),
    "rpm": _file("fuzz.rpm", rpm.read_kernel),
    "rpm-sealed": lambda data: _file("fuzz.rpm", rpm.read_kernel)(made_packages.sealed_rpm(data)),
    "bundle": lambda data: _file("fuzz.kdx", _import)(_bundle(data)),
    "bundle-frames": lambda data: _file("fuzz.kdx", _import)(_frames(data)),
    "workload": _file("fuzz.toml", workloads.load_entry),
    "suite": _file("fuzz.toml", _suite),
    "machine": _file("fuzz.toml", _machine),
    "spec-file": _file("fuzz.toml", _options),
    "program": _file("fuzz", _program),
}


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


_BOOT = {"./boot/config-6.12": b"CONFIG_SMP=y\n", "./boot/vmlinuz-6.12": b"MZ" + bytes(62)}


def _sparse() -> bytes:
    """A file with a hole, after a name that is too long for a header."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as tar:
        member = tarfile.TarInfo(f"./boot/vmlinuz-{'6' * 101}")
        member.size, member.pax_headers = 512, {"GNU.sparse.size": "600", "GNU.sparse.map": "0,100,500,100"}
        tar.addfile(member, io.BytesIO(bytes(512)))
    return made.getvalue().rstrip(b"\0") + bytes(1024)


def _rpms() -> list[bytes]:
    """Headers and payloads: as most packages have them, and in rpm's own form of cpio."""
    files = {"./lib/modules/6.12/vmlinuz": b"MZ" + bytes(62), **_BOOT}
    packed = {**made_packages.BUILD, 1125: "zstd"}
    absolute = {name.removeprefix("."): content for name, content in files.items()}
    lists = made_packages.listed(absolute) | {1095: ("I", [1, 1, 1]), 1096: ("I", [1, 2, 3])}
    return [
        made_packages.header(rpm_header.IMMUTABLE, made_packages.BUILD) + made_packages.cpio(files),
        made_packages.header(rpm_header.IMMUTABLE, packed) + zstandard.compress(made_packages.cpio(files)),
        made_packages.header(rpm_header.IMMUTABLE, made_packages.BUILD | lists)
        + made_packages.own_cpio(list(files.values())),
    ]


def seeds(name: str) -> list[bytes]:
    """Inputs from which a target's others are made."""
    found: dict[str, Callable[[], list[bytes]]] = {
        "tar": lambda: [made_packages.tarred(_BOOT)],
        "tar-sealed": lambda: [made_packages.tarred(_BOOT), _sparse()],
        "deb": lambda: [made_packages.deb(_BOOT)],
        "rpm": lambda: [(ROOT / "tests/data/packages/tiny.rpm").read_bytes()],
        "rpm-sealed": _rpms,
        "bundle": lambda: [_frames(_seed_frames())[:-32]],
        "bundle-frames": lambda: [_seed_frames()],
        "workload": lambda: [path.read_bytes() for path in sorted((ROOT / "guest/workloads").glob("*.toml"))[:6]],
        "suite": lambda: [path.read_bytes() for path in sorted((ROOT / "guest/suites").glob("*.toml"))[:6]],
        "machine": lambda: [_MACHINE],
        "spec-file": lambda: [_SPEC],
        "program": lambda: [fuzz_program.tiny()],
    }
    return found[name]()

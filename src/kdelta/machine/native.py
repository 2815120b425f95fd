# SPDX-License-Identifier: GPL-2.0-or-later
"""The running machine as a place to measure: no guest, no root. One start of the harness counts as one boot."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kdelta.guest import protocol
from kdelta.machine import boot, kept, process
from kdelta.model import Hardware

_AS_IT_IS = Hardware()


def run(
    binary: Path, data: Mapping[str, Path], jobs: str, folder: Path, limit_s: float, wanted: Hardware = _AS_IT_IS
) -> boot.RawBoot:
    """Run the job list on this machine, its hardware as ``wanted``; ``folder`` is private to this run.

    Raises:
        HostError: the hardware cannot be set so, or not be put back.
    """
    jobs_path, stream, data_folder = folder / "jobs", folder / "stream", folder / "data"
    for name, path in data.items():
        (data_folder / name).parent.mkdir(parents=True, exist_ok=True)
        (data_folder / name).symlink_to(path.resolve())
    boot.write_file(jobs_path, jobs.encode("ascii"))
    with stream.open("wb") as output:
        fd = output.fileno()
        argv = (str(binary), "--native", "--jobs", str(jobs_path), "--data", str(data_folder), "--fd", str(fd))
        with (
            kept.as_wanted(wanted),
            process.started(argv, folder / "console", pass_fds=(fd,), cpu=wanted.cpus or None) as running,
        ):
            ended = process.wait(
                running, stream=stream, console=folder / "console", counts=folder / "counts", limit_s=limit_s
            )
    raw, console = boot.read_output(stream), boot.read_output(folder / "console")
    parsed = protocol.parse(raw)
    state, why = protocol.diagnose(parsed, b"", ended.timed_out, ended.status)
    return boot.RawBoot(
        argv=argv,
        state=state,
        why=why,
        records=parsed.records,
        console=console,
        stream=raw,
        counts=(),
        elapsed_s=ended.elapsed_s,
        first_sample_s=ended.first_sample_s,
        qemu_log="",
    )

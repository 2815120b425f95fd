# SPDX-License-Identifier: GPL-2.0-or-later
"""The one way to boot: natively for real, and what an exact boot's identity depends on."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta import digests
from kdelta.errors import HostError, UserError
from kdelta.experiment import boot_once as boot_once_module
from kdelta.experiment.boot_once import boot_each, boot_once, identity
from kdelta.experiment.work import CannotPause, Site, Work
from kdelta.guest import binary
from kdelta.guest.jobs import JobList, case_jobs
from kdelta.guest.protocol import Note, Window
from kdelta.lab.boot import Machine, Order
from kdelta.lab.describe import Described, Options
from kdelta.machine import boot, snapshot
from kdelta.machine.options import GuestSpec
from kdelta.machine.probe import Qemu
from kdelta.model import Effort, Kernel, MachineOptions, State
from kdelta.spec.cases import parse_case
from kdelta.spec.workloads import catalogue

# A real file, known by its content: before each boot it is held against this sum.
IMAGE = Path(__file__)
KERNEL = Kernel(label="k", spec="k", release="6.12", image_path=str(IMAGE), image_sha256=digests.of_file(IMAGE))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    (program := tmp_path / "init").write_bytes(b"the guest's program")
    (qemu := tmp_path / "qemu").write_bytes(b"")
    return Site(
        programs={"x86_64": program},
        scratch=tmp_path / "boots",
        snapshots=tmp_path / "snapshots",
        qemus={"x86_64": Qemu(path=qemu, version=(7, 2), text="7.2.22")},
    )


@pytest.fixture
def work(tmp_path: Path) -> Work:
    (plugin := tmp_path / "plugin.so").write_bytes(b"counts")
    jobs = JobList(mode="exact", seed=5, lines=("job 0 pipe reps=3",))
    return Work(kernel=KERNEL, jobs=jobs, limit_s=60.0, plugin=plugin)


def test_the_running_machine_is_a_site_too(tmp_path: Path, guest_cache: Path) -> None:
    site = Site(
        programs={"x86_64": binary.build("x86_64", cache=guest_cache)},
        scratch=tmp_path / "boots",
        snapshots=tmp_path,
        options=MachineOptions(native=True),
    )
    case = parse_case("getppid", catalogue())[0]
    effort = Effort(warmup_windows=1, windows=3, window_ms=2, latency_ops=0)
    jobs = case_jobs({0: case}, mode="timed", efforts={0: effort}, exact_ops={0: 1})
    raw = boot_once(site, Work(kernel=KERNEL, jobs=jobs, limit_s=60.0))
    assert raw.state == "ok", raw.why
    assert sum(isinstance(record, Window) for record in raw.records) == 4
    assert list((tmp_path / "boots").iterdir()) == [], "its private directory is gone"


def test_what_changes_counts_changes_the_identity(site: Site, work: Work, tmp_path: Path) -> None:
    (other := tmp_path / "other.so").write_bytes(b"counts otherwise")
    (grown := tmp_path / "grown").write_bytes(b"another program")
    changed = [
        identity(site, replace(work, jobs=replace(work.jobs, seed=6))),
        identity(site, replace(work, jobs=replace(work.jobs, lines=("job 0 pipe reps=4",)))),
        identity(site, replace(work, mitigations="off")),
        identity(site, replace(work, kernel=replace(KERNEL, cmdline="quiet"))),
        identity(site, replace(work, kernel=replace(KERNEL, image_path=str(grown)))),
        identity(site, replace(work, plugin=other)),
        identity(replace(site, programs={"x86_64": grown}), work),
        identity(replace(site, options=MachineOptions(memory_mib=2048)), work),
    ]
    assert len({identity(site, work), *changed}) == 1 + len(changed)


def test_labels_limits_and_folders_do_not(site: Site, work: Work, tmp_path: Path) -> None:
    elsewhere = replace(site, scratch=tmp_path / "a", snapshots=tmp_path / "b")
    renamed = replace(work, kernel=replace(KERNEL, label="other", spec="other"), limit_s=1.0)
    assert identity(elsewhere, renamed) == identity(site, work)


def test_an_image_replaced_behind_its_name_is_not_booted(site: Site, work: Work, tmp_path: Path) -> None:
    (image := tmp_path / "bzImage").write_bytes(b"one kernel")
    kernel = replace(KERNEL, image_path=str(image), image_sha256=digests.of_file(image))
    image.write_bytes(b"another k.")
    for one in (replace(work, kernel=kernel), replace(work, kernel=kernel, plugin=None)):
        with pytest.raises(UserError, match=r"kernel k: .*bzImage has changed \(its sha256 is"):
            boot_once(site, one)
    assert not (tmp_path / "snapshots").exists(), "nothing was booted, so nothing is poisoned"


def test_an_image_replaced_while_it_is_booted_gives_no_result(
    site: Site, work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (image := tmp_path / "bzImage").write_bytes(b"one kernel")
    kernel = replace(KERNEL, image_path=str(image), image_sha256=digests.of_file(image))
    monkeypatch.setattr(boot, "run", lambda *_, **__: image.write_bytes(b"another k."))
    with pytest.raises(UserError, match="bzImage has changed"):
        boot_once(site, replace(work, kernel=kernel, plugin=None))


@pytest.mark.parametrize(("records", "booted"), [((Note(text="up"),), 3), ((), 1)])
def test_guests_that_cannot_be_paused_boot_cold_each_with_one_case(
    site: Site, work: Work, monkeypatch: pytest.MonkeyPatch, records: tuple[Note, ...], booted: int
) -> None:
    lines = ("job 0 pipe reps=3", "job 1 pidfd_open reps=3", "job 4 getppid reps=3")
    made: list[tuple[bytes, float]] = []

    def panicked(guest: GuestSpec, payload: bytes, limit_s: float) -> boot.RawBoot:
        made.append((payload, limit_s))
        return boot.RawBoot(
            argv=(), state="panicked", why=str(len(made)), records=records, console=b"", stream=b"", elapsed_s=1.0,
            first_sample_s=None, qemu_log="",
        )  # fmt: skip

    monkeypatch.setattr(boot_once_module, "_snapshot", lambda *_: None)
    monkeypatch.setattr(boot, "run", panicked)
    several = replace(work, jobs=replace(work.jobs, lines=lines), job_limits_s={0: 10.0, 1: 11.0, 4: 14.0})
    raw = boot_once(site, several)
    assert [limit_s for _, limit_s in made] == [10.0, 11.0, 14.0][:booted], "a kernel that says nothing is booted once"
    assert all(payload.count(b"\njob ") == 1 for payload, _ in made)
    assert [raw.end_of(job)[1] for job in (0, 1, 4)] == (["1", "2", "3"] if booted == 3 else ["1"] * 3)


def test_works_of_one_case_each_keep_their_order_and_limits(
    site: Site, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cold(guest: GuestSpec, payload: bytes, limit_s: float) -> boot.RawBoot:
        case = next(name for name in (b"pipe", b"futex", b"getppid", b"mmap") if b"job 0 " + name in payload)
        seed = b"seed 5" if b"set seed 5" in payload else b"seed 6"
        why = b" ".join((case, seed, str(limit_s).encode())).decode()
        return boot.RawBoot(
            argv=(), state="panicked", why=why, records=(Note(text="up"),), console=b"", stream=b"", elapsed_s=1.0,
            first_sample_s=None, qemu_log="",
        )  # fmt: skip

    def of(case: str, seed: int, limit_s: float, number: int = 0) -> Work:
        jobs = replace(work.jobs, seed=seed, lines=(f"job {number} {case} reps=3",))
        return replace(work, jobs=jobs, limit_s=limit_s, job_limits_s={number: limit_s})

    monkeypatch.setattr(boot_once_module, "_snapshot", lambda *_: None)
    monkeypatch.setattr(boot, "run", cold)
    works = [of("pipe", 5, 10.0), of("futex", 6, 20.0), of("getppid", 5, 30.0, number=7), of("mmap", 6, 40.0)]
    found = [raw.why for raw in boot_each(site, works)]
    assert found == ["pipe seed 5 10.0", "futex seed 6 20.0", "getppid seed 5 30.0", "mmap seed 6 40.0"]


def test_a_folder_that_cannot_be_made_is_one_line(site: Site, work: Work, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(HostError, match=r"cannot create a directory in .*file"):
        boot_once(replace(site, scratch=tmp_path / "file"), work)


def test_a_machine_of_a_lab_gets_kernel_program_and_jobs(
    site: Site, work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Order] = []

    def ordered(_: Machine, order: Order, folder: Path) -> boot.RawBoot:
        asked.append(order)
        return boot.RawBoot(
            argv=(), state="ok", why="", records=(), console=b"", stream=b"", elapsed_s=1, first_sample_s=1, qemu_log=""
        )

    monkeypatch.setattr(Machine, "boot", ordered)
    bench = Described(name="bench1", path=tmp_path / "lab.toml", options=Options(console="ttyAMA0,115200"))
    lab = replace(site, lab=Machine(bench))
    for seed in (1, 2):
        timed = replace(work.jobs, mode="timed", seed=seed)
        assert boot_once(lab, replace(work, plugin=None, jobs=timed, mitigations="off")).state == "ok"
    first, second = asked
    assert (first.kernel, first.mitigations_off, first.limit_s) == (KERNEL, True, 60.0)
    assert b"the guest's program" in first.initramfs
    assert b"set port ttyAMA0\n" in first.jobs and b"job 0 pipe" in first.jobs
    assert first.initramfs == second.initramfs and first.jobs != second.jobs  # so it travels once
    assert first.program is None
    inside = replace(lab, options=MachineOptions(lab="lab.toml:bench1", in_system=True))
    boot_once(inside, replace(work, plugin=None, jobs=replace(work.jobs, mode="timed"), data={"words": IMAGE}))
    assert asked[2].program == site.programs["x86_64"]
    assert "set port" not in asked[2].job_list and "job 0 pipe" in asked[2].job_list
    assert (asked[2].data, asked[2].initramfs) == ({"words": IMAGE}, b"")
    with pytest.raises(UserError, match="--in-system runs cases alone"):
        boot_once(inside, replace(work, plugin=None, programs={"stress-ng": IMAGE}))


def _died(state: State, *, killed: bool = False) -> boot.RawBoot:
    return boot.RawBoot(
        argv=(),
        state=state,
        why="",
        records=(),
        console=b"",
        stream=b"",
        elapsed_s=1.0,
        first_sample_s=None,
        qemu_log="",
        killed=killed,
    )


@pytest.mark.parametrize("cpus", [1, 4])
def test_a_boot_for_a_snapshot_that_was_killed_is_lost_and_no_reason_to_count_otherwise(
    site: Site, work: Work, monkeypatch: pytest.MonkeyPatch, cpus: int
) -> None:
    """Cold guests count up to 0.6 % otherwise, and several CPUs were told that they cannot be paused."""
    monkeypatch.setattr(snapshot, "_make", lambda *_: _died("lost", killed=True))
    monkeypatch.setattr(boot, "run", lambda *_: pytest.fail("booted cold"))
    assert boot_once(replace(site, options=MachineOptions(smp=cpus)), work).state == "lost"


def test_a_guest_that_cannot_be_paused_is_not_booted_cold_beside_others(
    site: Site, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[object] = []

    def make(*said: object) -> boot.RawBoot:
        tried.append(said)
        return _died("lost")

    monkeypatch.setattr(snapshot, "_make", make)
    monkeypatch.setattr(boot, "run", lambda *_: _died("ok"))
    with pytest.raises(CannotPause, match="cannot be paused"):
        boot_once(replace(site, alike=True), work)
    assert len(tried) == 1 and boot_once(site, work).state == "ok"
    cold = replace(site, alike=True, options=MachineOptions(cold=True))
    assert boot_once(cold, work).state == "ok" and len(tried) == 2, "nobody tries to pause it"
    assert identity(cold, work) != identity(site, work)


def test_what_hung_is_tried_again_with_more_time_and_what_panicked_is_not(
    site: Site, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    states, limits = ["hung", "panicked"], []

    def make(_guest: object, _saved: object, limit_s: float, _same: object) -> boot.RawBoot:
        limits.append(limit_s)
        return _died(states[len(limits) - 1])  # type: ignore[arg-type]

    monkeypatch.setattr(snapshot, "_make", make)
    short, long = (MachineOptions(smp=24, boot_limit_s=limit) for limit in (60.0, 90.0))
    seen = [boot_once(replace(site, options=one), work).state for one in (short, short, long, long)]
    assert seen == ["hung", "hung", "panicked", "panicked"]
    assert limits == [180.0, 270.0], "24 CPUs have three times as long, whatever the limit of a run"

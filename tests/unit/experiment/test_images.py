# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernels of a stored experiment are what they were when it was planned, or nothing is booted."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from kdelta import digests
from kdelta.errors import UserError
from kdelta.experiment import images
from kdelta.kernel import cache, intact
from kdelta.kernel.resolve import resolve
from kdelta.kernel.sources import parse_kernel
from kdelta.model import Experiment, Kernel, MachineOptions, Quiet, plans
from unit.kernel import synthetic


def experiment(*kernels: Kernel, native: bool = False) -> Experiment:
    machine = MachineOptions(native=native)
    return Experiment(id="x1", mode="timed", kernels=kernels, cases=(), plan=plans.Run(), machine=machine)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """A kernel by the path of its image, in a cache of its own."""
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    (tmp_path / "vmlinux").write_bytes(synthetic.vmlinux())
    return resolve(parse_kernel(str(tmp_path / "vmlinux")))


def test_what_is_as_it_was_passes(kernel: Kernel) -> None:
    assert kernel.vmlinux_sha256 == kernel.image_sha256 == digests.of_file(Path(kernel.image_path))
    images.require(experiment(kernel), Quiet())


def test_a_cached_image_that_was_damaged_or_pruned_comes_back_from_its_source(kernel: Kernel) -> None:
    image = Path(kernel.image_path)
    whole = image.read_bytes()
    image.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    images.require(experiment(kernel), Quiet())
    assert image.read_bytes() == whole
    cache.remove(next(one for one in cache.entries() if one.entry.sha256 == kernel.image_sha256))
    images.require(experiment(kernel), Quiet())
    assert image.read_bytes() == whole


def test_an_image_replaced_behind_its_name_is_one_line_that_says_what_to_do(kernel: Kernel, tmp_path: Path) -> None:
    Path(kernel.image_path).write_bytes(b"another kernel")
    (tmp_path / "vmlinux").write_bytes(synthetic.vmlinux(None))  # the source is another one too
    with pytest.raises(UserError) as caught:
        images.require(experiment(kernel), Quiet())
    said = str(caught.value)
    assert f"{kernel.image_path} has changed" in said and "since experiment x1 was planned" in said
    assert "put it back, or compare again" in said and "is another image today" in said and "\n" not in said


def test_a_built_kernel_is_not_built_again_unasked(kernel: Kernel) -> None:
    Path(kernel.image_path).unlink()
    with pytest.raises(UserError, match=r"cannot be read .*build it again with: kdelta kernels fetch 'src:\.@v6\.9'"):
        images.require(experiment(replace(kernel, spec="src:.@v6.9")), Quiet())


def test_the_uncompressed_image_is_held_against_its_own_sum(kernel: Kernel, tmp_path: Path) -> None:
    (apart := tmp_path / "apart").write_bytes(b"uncompressed")
    both = replace(kernel, vmlinux_path=str(apart), vmlinux_sha256=digests.of_file(apart), spec="src:.")
    images.require(experiment(both), Quiet())
    apart.write_bytes(b"uncompresseX")
    with pytest.raises(UserError, match=r"apart has changed \(its sha256 is"):
        images.require(experiment(both), Quiet())


def test_what_an_older_kdelta_stored_is_held_against_the_sum_in_the_cache(tmp_path: Path, kernel: Kernel) -> None:
    entry = cache.Entry(
        sha256="ab" * 32, vmlinux_sha256="cd" * 32, release="6", arch="x86_64", form="bzImage", added_s=0.0
    )
    folder = cache.root() / entry.sha256
    folder.mkdir()
    (folder / "vmlinux").write_bytes(b"not that")
    cache.write_atomically(folder / "meta.json", msgspec.json.encode(entry))
    stored = replace(kernel, image_path="", image_sha256=entry.sha256, vmlinux_path=str(folder / "vmlinux"))
    assert "vmlinux has changed" in intact.fault(replace(stored, vmlinux_sha256=""))


def test_natively_another_kernel_is_another_experiment() -> None:
    now = resolve(parse_kernel("running"))
    images.require(experiment(now, native=True), Quiet())
    for other in (replace(now, release="6.1.0-other"), replace(now, build_id="00" * 20)):
        with pytest.raises(UserError, match=r"but this machine runs .*boot that kernel, or measure again"):
            images.require(experiment(other, native=True), Quiet())

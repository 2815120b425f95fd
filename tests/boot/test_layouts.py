# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel linked at other places: other images, the same code, told so by exact counts."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kdelta.kernel import elf, layouts
from kdelta.model import Kernel
from kdelta.store.store import Store


def _places(kernel: Kernel) -> dict[str, int]:
    addresses, names, *_ = elf.functions(elf.parse(Path(kernel.vmlinux_path or "").read_bytes()))
    return dict(zip(names, map(int, addresses), strict=True))


@pytest.mark.full
def test_two_layouts_are_other_images_with_the_same_counts(
    kdelta: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    specs = ("src:debian:6.12", 'src:debian:6.12,cmdline="quiet"')
    words = ("compare", *specs, "--layouts", "2", "--exact", "--seeds", "6", "--case", "pidfd_open")
    done = kdelta(*words, "--json", "-q", timeout=900)
    document = json.loads(done.stdout)
    row = next(row for row in document["results"] if row["metric"] == "instructions")
    # a refilled slab is 0.7 % of it under some seeds, with one layout too
    assert row["verdict"] == "same" and row["extra"]["spread_percent"] < 1, "whichever layout a seed boots"
    with Store(f"sqlite:///{tmp_path / 'state' / 'kdelta.sqlite'}") as store:
        made = store.experiment("last")
    one = made.kernels[0]
    assert len(one.layouts) == 1 and one.layouts[0].image_sha256 != one.image_sha256
    assert one.layouts[0].build_id != one.build_id
    places = [_places(layouts.laid_out(one, block)) for block in (0, 1)]
    moved = {name: places[1][name] - places[0][name] for name in ("schedule", "vfs_read", "do_pipe2")}
    assert len(set(moved.values())) > 1, f"directories are shifted against each other: {moved}"
    assert all(delta % 16 == 0 for delta in moved.values())
    assert "linked 2 times" in " ".join(kdelta("report", "last").stdout.split())

# SPDX-License-Identifier: GPL-2.0-or-later
"""What workloads need of a kernel, and what that adds to the options that would build a file."""

from __future__ import annotations

from kdelta.spec import needs
from kdelta.spec.needs import Need
from kdelta.spec.workloads import catalogue

BOTH: dict[str, tuple[str, ...]] = {"on": ("a", "b")}
NEEDS = (
    Need(config="BLOCK", when=BOTH),
    Need(config="RAM", rare=True, when=BOTH),
    Need(config="RAM_SIZE", value="7", when=BOTH),
    Need(config="A_FS", rare=True, when={"on": ("a",)}),
    Need(config="B_FS", rare=True, when={"on": ("b",)}),
)
DISK = ("BLOCK", "RAM", "RAM_SIZE=7")


def test_what_is_built_is_also_executed() -> None:
    """Of a patch to fs/ext4 was told how it is built, and then no case executed it."""
    assert needs.with_others(("B_FS",), [NEEDS]) == ("B_FS", *DISK)
    assert needs.with_others(("BLOCK", "A_FS"), [NEEDS]) == ("BLOCK", "A_FS", *DISK[1:])
    assert set(needs.with_others(("A_FS", "B_FS"), [NEEDS])) == {"A_FS", "B_FS", *DISK}
    assert needs.with_others(("BLOCK",), [NEEDS]) == (*DISK, "A_FS")
    assert needs.with_others(("INET",), [NEEDS]) == ("INET",) and needs.with_others((), [NEEDS]) == ()
    assert needs.with_others(("ANON",), [(Need(config="ANON", when={"names": ("same",)}),)]) == ("ANON",)


def test_a_case_that_few_kernels_can_run_wants_one_that_is_known_to() -> None:
    mine = [need for need in NEEDS if need.holds({"on": "a"})]
    assert needs.met(mine, {"RAM": "y", "A_FS": "y"})
    assert not needs.met(mine, {"RAM": "y", "A_FS": "m"}) and not needs.met(mine, {})
    assert needs.met(NEEDS[:1], {}) and needs.met((), {})
    assert needs.rare([NEEDS, ()]) == ("A_FS", "B_FS", "RAM")


def test_every_file_system_of_the_catalogue_wants_its_disk() -> None:
    own = catalogue(())["files"]
    for name in own.params["on"].choices:
        wanted = {need.setting for need in own.needs_of(own.case({"on": name}))}
        disk = {"BLOCK", "BLK_DEV", "BLK_DEV_RAM", "BLK_DEV_RAM_SIZE=524288", "CRC_OPTIMIZATIONS"}
        assert wanted == (set() if name == "tmpfs" else disk | {f"{name.upper()}_FS"})
    assert needs.settings([NEEDS[:2], NEEDS[1:3], [Need(syscall="clone3")]]) == DISK

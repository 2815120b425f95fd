# SPDX-License-Identifier: GPL-2.0-or-later
"""What workloads need of a kernel, as their TOML files say it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field


class Need(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a kernel must have, always or ``when`` knobs have certain values; ``since`` is the release that has it.

    ``value``: of the option, where it is no switch. ``rare``: few kernels have it; where none is known to, the case is
    not among those that kdelta may choose, and nothing is said of it.
    """

    config: str = ""
    value: str = "y"
    rare: bool = False
    syscall: str = ""
    feature: str = ""
    since: str = ""
    when: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def holds(self, knobs: Mapping[str, str]) -> bool:
        """Whether it is needed where knobs have these values."""
        return all(knobs.get(name) in values for name, values in self.when.items())

    @property
    def setting(self) -> str:
        """As ``--config`` takes it: ``BLOCK``, ``BLK_DEV_RAM_SIZE=524288``."""
        return self.config if self.value == "y" else f"{self.config}={self.value}"


def met(needs: Iterable[Need], config: Mapping[str, str]) -> bool:
    """Whether a kernel with ``config`` is known to have what is rare of ``needs``."""
    return all(config.get(need.config) == "y" for need in needs if need.rare)


def are_rare(needs: Iterable[Need]) -> bool:
    """Whether few kernels have all of ``needs``."""
    return any(need.rare for need in needs)


def with_others(options: Sequence[str], of_workloads: Iterable[Sequence[Need]]) -> tuple[str, ...]:
    """``options`` that would build something, and those that workloads need besides to execute it.

    A file system is executed by nothing without a disk: ``EXT4_FS`` wants ``BLK_DEV_RAM`` too. Where only what several
    have in common is built (``BLOCK``), the first of these is taken.
    """
    found = dict.fromkeys(options)
    for needs in of_workloads:
        asked = [need for need in needs if need.config in options and need.when]
        if not asked or not are_rare(needs):
            continue
        fewest = min(sum(map(len, need.when.values())) for need in asked)
        for one in (need for need in asked if sum(map(len, need.when.values())) == fewest):
            knobs = {name: values[0] for name, values in one.when.items()}
            found |= dict.fromkeys(need.setting for need in needs if need.config and need.holds(knobs))
    return tuple(found)


def settings(of_cases: Iterable[Iterable[Need]]) -> tuple[str, ...]:
    """All options that cases need, as ``--config`` takes them."""
    return tuple(dict.fromkeys(need.setting for needs in of_cases for need in needs if need.config))


def rare(of_workloads: Iterable[Sequence[Need]]) -> tuple[str, ...]:
    """The options that are rare, those with the fewest cases first: ``EXT4_FS`` before the disk that all have."""
    found = [need for needs in of_workloads for need in needs if need.rare]
    return tuple(need.config for need in sorted(found, key=lambda need: sum(map(len, need.when.values()))))

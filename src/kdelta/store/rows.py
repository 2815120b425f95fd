# SPDX-License-Identifier: GPL-2.0-or-later
"""What the store answers with: light frozen rows. Whole things are ``model`` types."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from msgspec import Struct, field

from kdelta.model import Mitigations, Profile, State
from kdelta.units import Better

Status = Literal["partial", "complete", "damaged"]


class ExperimentRow(Struct, frozen=True, kw_only=True):
    """One line of a list of experiments. ``partial``: at work, or interrupted and resumable."""

    id: str
    created_at: str
    kind: str
    mode: str
    kernels: tuple[str, ...]  # labels
    boots_done: int
    boots_planned: int
    status: Status
    command: str
    tags: tuple[str, ...] = ()
    note: str = ""


class BootRow(Struct, frozen=True, kw_only=True):
    """A boot without its console, stream and samples; fields as in ``model.BootResult``."""

    block: int
    slot: int
    kernel: int
    mitigations: Mitigations
    cases: tuple[int, ...]
    state: State
    why: str = ""
    started_at: str = ""
    elapsed_s: float = 0.0
    first_sample_s: float | None = None
    machine: dict[str, str] = field(default_factory=dict)
    facts: dict[str, float | str] = field(default_factory=dict)


class Number(Struct, frozen=True, gc=False):
    """One number per boot, case and metric: what verdicts are made of.

    A run that is not ok has no series: it is one row with ``metric`` "" and ``value`` None, as is every planned case of
    a boot that ended before it. ``boot_state`` is of the whole boot: a run may be ok in a boot that panicked later.
    """

    block: int
    slot: int
    kernel: int  # index into Experiment.kernels
    mitigations: Mitigations
    boot_state: State
    case: int  # index into Experiment.cases
    state: State
    why: str
    metric: str
    unit: str
    better: Better
    value: float | None  # see samples.number_of
    samples: int  # kept, after warm-up
    spread_percent: float | None  # see samples.spread_percent


class SampleRow(NamedTuple):
    """All samples of one metric in one run; ``warm`` is as long as ``values``."""

    block: int
    slot: int
    kernel: int
    mitigations: Mitigations
    unit: str
    better: Better
    values: tuple[float, ...]
    warm: tuple[bool, ...]


class HistogramRow(NamedTuple):
    """``histograms[name]`` is an HdrHistogram V2 payload."""

    block: int
    slot: int
    kernel: int
    mitigations: Mitigations
    histograms: dict[str, bytes]


class ProfileRow(NamedTuple):
    """Exact counts by function of one run."""

    block: int
    slot: int
    kernel: int
    mitigations: Mitigations
    profile: Profile


class FactRow(NamedTuple):
    """Facts that one run stated about itself."""

    block: int
    slot: int
    kernel: int
    mitigations: Mitigations
    case: int
    facts: dict[str, float]


class Look(Struct, frozen=True, kw_only=True):
    """One sequential look: what was decided after ``blocks`` complete blocks, and what it cost."""

    blocks: int
    decided: dict[str, str]  # cell -> verdict word
    spent_alpha: float
    payload: dict[str, Any] = field(default_factory=dict)
    final: bool = False  # nothing is left to decide: the experiment is complete


class Floor(Struct, frozen=True, kw_only=True):
    """The calibrated noise floor of one case on one host and kind of machine; who asks decides whether it is stale."""

    host: str
    machine_kind: str
    case: str
    floor_percent: float
    created_at: str
    qemu_version: str = ""
    tool_version: str = ""
    payload: dict[str, Any] = field(default_factory=dict)


class HistoryRow(Struct, frozen=True, kw_only=True):
    """A case and metric on one kernel of one experiment; ``values``: one per boot that was ok, in order."""

    experiment: str
    created_at: str
    mode: str
    tags: tuple[str, ...]
    kernel: str  # label
    release: str
    image_sha256: str
    mitigations: Mitigations
    case: str
    metric: str
    unit: str
    better: Better
    value: float  # median of values
    values: tuple[float, ...]
    cpus: int = 1  # of the guests
    cold: bool = False  # they boot for each case and seed
    arch: str = ""  # of the kernel, "" where it is not known
    cmdline: str = ""  # what the user added

    @property
    def guests(self) -> str:
        """What tells its guests from the usual ones, to stand behind a name; "" of those."""
        arch = "" if self.arch in ("", "x86_64") else f", {self.arch}"
        return arch + (f", {self.cpus} CPUs" if self.cpus > 1 else "") + (", cold" if self.cold else "")

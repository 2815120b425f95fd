# SPDX-License-Identifier: GPL-2.0-or-later
"""An experiment with its plan and what is found out around it, and the answer that a report shows."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from kdelta.model.nouns import (
    Case,
    CellResult,
    Definition,
    Effort,
    Kernel,
    MachineOptions,
    Mitigations,
    Mode,
    Remark,
    Warn,
)
from kdelta.model.plans import Bisect, Check, Plan, Run, Scale, Sweep


class Gap(Struct, frozen=True, kw_only=True):
    """A version that was asked for and is no kernel: it did not build, or this host could not get it (``by_host``).

    ``place`` is its index among all versions; ``spec`` is written in the kernel grammar, to try it again.
    """

    place: int = 0
    label: str
    spec: str
    why: str
    by_host: bool


class Refuted(Struct, frozen=True):
    """A commit (whole hash) that its comparison refuted, made after so many ``readings`` of the search."""

    commit: str
    confirmation: str
    readings: int


class Search(Struct, frozen=True, kw_only=True):
    """How far a bisection came. Commits are whole hashes; ``confirmation`` is the comparison under way, or done."""

    skipped: dict[str, str] = field(default_factory=dict)  # commit -> why it cannot be built
    refuted: tuple[Refuted, ...] = ()
    confirmation: str = ""
    done: bool | None = None  # whether it came to its end; None: an older kdelta searched, and did not say


class Unreached(Struct, frozen=True, kw_only=True):
    """A changed function that no case executes; ``path`` leads to it by direct calls from one that a case executes."""

    name: str
    path: tuple[str, ...] = ()


class Looked(Struct, frozen=True, kw_only=True):
    """How cases were chosen by what a patch changed, and what of it is not looked at. Names of functions and data.

    ``measured`` is executed by the ``cases`` chosen (of ``candidates``, of which ``executing`` execute anything of it;
    0: an older kdelta chose), ``interrupting`` of it only by what interrupts them; ``left_out`` had one, but no time.
    ``whole``: ``differ`` of ``functions`` do, through a header or an option (``through``: what of these the patches
    touch). ``untouched``: cases execute it, but none of the instructions that differ. ``controls`` are cases that
    execute nothing that changed. ``by_knob`` has cases with a knob otherwise, each with the functions of which it runs
    more; () where the patched kernel did not come to its end; ``other_ways`` likewise has cases that are none of these
    with a knob otherwise.
    """

    functions: int
    differ: int
    candidates: int
    cases: tuple[str, ...] = ()
    executing: int = 0
    measured: tuple[str, ...] = ()
    unreached: tuple[Unreached, ...] = ()
    left_out: tuple[str, ...] = ()
    untouched: tuple[str, ...] = ()
    partly: dict[str, tuple[int, int]] = {}  # of what is measured: (instructions that differ and ran, all that differ)
    removed: dict[str, tuple[int, int]] = {}  # the same of the baseline's, where all of the patched kernels' ran
    interrupting: tuple[str, ...] = ()
    given: tuple[str, ...] = ()  # cases that the user named, measured whatever they execute
    controls: tuple[str, ...] = ()
    not_mapped: tuple[str, ...] = ()  # candidates that did not run here
    needs: dict[str, int] = {}  # options that the kernel lacks: how many of those said that they need it
    whole: bool = False
    through: tuple[str, ...] = ()
    boot_patched: bool = False  # instructions that the kernel patches in at boot differ
    sizes_only: bool = False  # functions that kept their size were not compared
    atlas: str = ""  # by which no case executes it, the kernel itself was not mapped (attribution/atlas.py)
    off: tuple[str, ...] = ()  # options that the patches declare, ask for or stand under, and the kernel has not set
    defaults: tuple[str, ...] = ()  # "FOO=y": what the patches make the default, and the kernel's config has otherwise
    parameters: tuple[str, ...] = ()  # of the kernel's command line: the patches bring them, and it was not given them
    not_built: tuple[str, ...] = ()  # files that the patches change, or parts of them, that the kernel is not made of
    builds: tuple[str, ...] = ()  # options (or OPTION=VALUE) with which such files would be built, and executed
    lined: tuple[
        str, ...
    ] = ()  # functions that differ in line numbers alone (``__LINE__``), and are no part of ``differ``
    rare: dict[str, str] = {}  # what differs: a case that executes it, but needs what this kernel has not, by the atlas
    rare_options: tuple[str, ...] = ()  # what these cases need (or OPTION=VALUE)
    no_time: tuple[str, ...] = ()  # candidates that were not mapped, because the time budget ended
    taken_over: int = 0  # candidates whose row is another kernel's, from which this one differs in ``beyond``
    beyond: tuple[str, ...] = ()
    by_knob: dict[str, tuple[str, ...]] = {}  # cases with a knob otherwise, and what each runs more of
    other_ways: dict[str, tuple[str, ...]] = {}
    in_memcg: dict[str, tuple[str, ...]] = {}  # cases in a memory cgroup, and what only there is executed
    charged: tuple[
        str, ...
    ] = ()  # flags of the patches for which the cases of ``in_memcg`` without functions are there
    shifted: bool = False  # nothing differs but where it lies,
    elsewhere: tuple[str, ...] = ()  # these functions and variables among other things than before
    users: tuple[str, ...] = ()  # cases that may use what a changed function made in their set-up
    near: tuple[str, ...] = ()  # measured beside ``controls``, as they spend most in functions of the files touched
    config: str = ""  # with which the user has the patched kernel built: a file, options, or both
    cpus: int = 0  # of a guest, where several could be counted; what cases execute is looked up on one


def is_new(title: str) -> bool:
    """Whether the title of a change, as ``Looked`` has it, says that the patched kernel alone has it.

    ``attribution.changes.Change.title`` makes them; reports do not import that, which loads a disassembler.
    """
    return title.partition(" (")[2].startswith("new")


def is_boot_only(title: str) -> bool:
    """Whether the title of a change says that the kernel's start alone executes it: no case does, ever."""
    return "boot only" in title.partition(" (")[2]


def sets_at_boot(title: str) -> bool:
    """Whether it says that the kernel's start executes the change, alone or not: other paths may follow from that."""
    return is_boot_only(title) or "called at boot" in title.partition(" (")[2]


class Location(Struct, frozen=True, kw_only=True):
    """The first line that a change has in a function; ``function`` is "" where it lies outside of all."""

    function: str
    path: str  # in the source tree
    line: int  # of the patched file, from 1


BOOTING = "while it booted: "  # begins why a guest has ended that did not come as far as to say who it is
# begins the tag of an experiment that belongs to another (a review, a comparison), which it names: not the last one
BESIDE_TAG = "beside/"
UNLIKE = "unlike-configs"  # code of the note that configs differ: of one version, or as one kernel alone was built here
SHARED = "shared-between-cpus"  # code of the note that a patch is about what CPUs share, and one CPU was counted


class Beside(Struct, frozen=True, kw_only=True):
    """What a review checked beside speed: ``experiment`` holds it, "" where it could not be checked (``why``).

    With both, nothing of the experiment was made, for ``why``: it is resumed as any other. With neither, there is
    nothing that could be checked: of locks, where none is a mutex.
    ``leaks``: a line for each case that leaks objects on the patched kernel alone. ``unchecked`` are those of its
    ``cases`` of which nothing can be said, as a kernel did not come to their end.
    """

    what: Literal["leaks", "locks"]
    experiment: str = ""
    cases: int = 0
    leaks: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    why: str = ""


class Annotations(Struct, frozen=True, kw_only=True):
    """What is found out around a measurement. Unlike the plan it grows while, and after, the experiment runs."""

    gate: str = ""  # above any speed: the selftests that failed anew, or have not been run yet
    ktap: dict[str, str] = field(default_factory=dict)  # kernel label -> what its selftests printed
    notes: tuple[Remark, ...] = ()
    compilers: tuple[str, ...] = ()  # of each kernel; "" where it is not known
    gaps: tuple[Gap, ...] = ()
    nameless: dict[str, str] = field(default_factory=dict)  # kernel label -> why its functions have no names
    followed_by: str = ""  # the experiment that decides what this one left open
    looked: Looked | None = None  # where the cases were chosen by what a patch changed
    beside: tuple[Beside, ...] = ()  # what a review checked beside speed
    locations: tuple[Location, ...] = ()  # of a patch, or between two commits, in the order of the diff
    floors_percent: dict[str, float] | None = None  # timed: calibrated here when it began, by case; None: not looked up
    search: Search = Search()


class Experiment(Struct, frozen=True, kw_only=True):
    """A question and the plan to answer it; everything needed to resume or rebuild it."""

    id: str
    mode: Mode
    kernels: tuple[Kernel, ...]
    cases: tuple[Case, ...]
    plan: Plan
    mitigations: tuple[Mitigations, ...] = ("default",)
    seed: int = 0
    blocks: int = 8  # planned complete blocks (timed); seeds (exact)
    looks: tuple[int, ...] = ()  # block counts at which a sequential plan looks; () = one look at the end
    precision_percent: float | None = None  # timed: an interval is narrow enough when its half-width is below this
    steal_limit_percent: float | None = None  # timed: a boot that lost more to steal takes its block out
    machine: MachineOptions = MachineOptions()
    effort: Effort = Effort()
    folders: tuple[str, ...] = ()  # of user workloads, whole paths
    definitions: dict[str, Definition] = field(default_factory=dict)  # by workload; {} in stores before revision 0004
    created_at: str = ""
    tool_version: str = ""
    host: dict[str, str] = field(default_factory=dict)
    command: str = ""  # the line that reproduces it
    annotations: Annotations = Annotations()
    imported: bool = False  # nobody here vouched for what it names; the store knows it, no document says it

    @property
    def kind(self) -> str:
        """The word by which reports and lists call it; scaling and checking measure as comparing and running do."""
        if isinstance(self.plan, Scale | Check):
            return "compare" if len(self.kernels) > 1 else "run"
        return str(self.plan.__struct_config__.tag)

    @property
    def in_steps(self) -> bool:
        """Whether each kernel is held against the one before it, not against the first."""
        return isinstance(self.plan, Sweep)

    @property
    def reuses(self) -> bool:
        """Whether boots of the same identity are taken over; a bisection must not boot the same commit twice."""
        return isinstance(self.plan, Bisect) or (isinstance(self.plan, Run | Sweep | Check) and self.plan.reuse)


class Culprit(Struct, frozen=True, kw_only=True):
    """The commit that a bisection came to; experiment ``comparison`` compares it with the good one ``before``."""

    commit: str
    before: str
    comparison: str


class ExperimentResult(Struct, frozen=True, kw_only=True):
    """Everything that a report shows; ``schema`` is what scripts depend on."""

    experiment: Experiment
    results: tuple[CellResult, ...]
    boots_done: int = 0
    boots_planned: int = 0
    boots_spared: int = 0  # of the planned ones, those that no look asked for
    boots_left_out: int = 0  # of those done, not booted: earlier ones of the kernel had no figure either
    decided: bool = False  # a look left nothing open: further boots were not needed
    boots_faulty: tuple[str, ...] = ()  # one line per lost, panicked or hung boot, with its console's name
    warnings: tuple[Warn, ...] = ()
    gate: str = ""  # "failed the gate: ..." when functional tests regressed, above any speed
    counts: tuple[CellResult, ...] = ()  # they explain, and decide nothing: of the pass that counted, beside times;
    # of several CPUs the lines that move more or less than before
    culprit: Culprit | None = None  # of a bisection
    schema: str = "kdelta/1"

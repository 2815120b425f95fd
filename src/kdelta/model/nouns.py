# SPDX-License-Identifier: GPL-2.0-or-later
"""The nouns of kdelta as frozen structs: no I/O, no behaviour beyond naming.

One word, one meaning (see ARCHITECTURE.md, Vocabulary). Times carry their unit in the name.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from msgspec import Struct, field

from kdelta.units import Better

Mode = Literal["timed", "exact"]
Arch = Literal["x86_64", "arm64"]
Cgroup = Literal["root", "child"]
Mitigations = Literal["default", "off"]
State = Literal["ok", "lost", "panicked", "hung", "unsupported", "failed"]
GRAVEST_FIRST: tuple[State, ...] = ("panicked", "hung", "lost", "failed", "unsupported")
Word = Literal["improved", "regressed", "same", "inconclusive"]

# The exact cost vector, in the order of the plugin's columns. "user_instructions" is derived.
EXACT_COUNTERS = ("instructions", "loads", "stores", "locked", "taken_branches", "rep_executions", "rep_bytes")


class Layout(Struct, frozen=True, kw_only=True):
    """A kernel linked once more, its parts at other places (kernel/layouts.py): fields as ``Kernel``'s."""

    image_path: str
    image_sha256: str
    vmlinux_path: str | None = None
    vmlinux_sha256: str = ""
    build_id: str | None = None


class Kernel(Struct, frozen=True, kw_only=True):
    """A kernel resolved: an image with its command line. The same image with two command lines is two kernels.

    ``config`` holds the facts that cases need (``ANON_VMA_NAME`` -> ``y``/``m``/``n``; absent when unknown).
    ``vmlinux_path`` is the uncompressed ELF image where one could be extracted, else None. ``layouts``: further images
    of the same code, over which boots are spread; its own is the first.
    """

    label: str
    spec: str
    release: str
    arch: Arch = "x86_64"
    image_path: str
    image_sha256: str
    vmlinux_path: str | None = None
    vmlinux_sha256: str = ""  # "" where there is none, and in experiments of an older kdelta
    build_id: str | None = None
    cmdline: str = ""
    config: dict[str, str] = field(default_factory=dict)
    origin: str = ""
    layouts: tuple[Layout, ...] = ()


class Metric(Struct, frozen=True, kw_only=True):
    """What is measured: ``source`` says how it is derived (see guest/metrics.py).

    ``least``: of averages over many operations the smallest difference that is one; 0 of counts, which are whole.
    """

    name: str
    unit: str
    better: Better
    source: str = ""
    primary: bool = False
    legacy: bool = False
    help: str = ""
    least: float = 0.0


class Definition(Struct, frozen=True, kw_only=True):
    """A workload as it was when an experiment was made: what its report needs, whatever becomes of its files."""

    metrics: tuple[Metric, ...]  # of the experiment's mode
    floor_percent: float = 0.0  # exact: differences below are noise of the path
    moved_floor_percent: float = 0.0  # of what crosses between CPUs
    exact_label: str = ""  # what an exact figure means where that is not plain
    one_task: bool = False  # however many CPUs there are
    booted_seeds: bool = False  # several CPUs: each seed has a boot of its own, not one that all share


class Case(Struct, frozen=True, kw_only=True):
    """A workload with every parameter given (defaults filled in), in one cgroup."""

    workload: str
    params: dict[str, str] = field(default_factory=dict)
    cgroup: Cgroup = "root"
    label: str = ""  # the workload and the parameters that differ from their default
    found: str = ""  # a program's: what was packed of the directory that it was started in
    pressure: str = ""  # memory pressure beside the case: WORKERSxPERCENT%, as in 2x60%
    own_tasks: bool = False  # who named it said how many tasks, be it the default: the CPUs do not say

    @property
    def name(self) -> str:
        base = (self.label or self.workload) + (f" (pressure {self.pressure})" if self.pressure else "")
        return base if self.cgroup == "root" else f"{base} (memcg)"


class Hardware(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the hardware is to be while it is measured; what is not given stays as it is.

    ``cpus``: those that the measured tasks keep to, as the kernel lists them (2,3); interrupts are moved to the others.
    """

    governor: str = ""
    turbo: bool | None = None
    smt: bool | None = None
    cpus: str = ""

    @property
    def any(self) -> bool:
        """Whether anything is to be set."""
        return self != Hardware()


class MachineOptions(Struct, frozen=True, kw_only=True):
    """What the guests look like; recorded with every result."""

    smp: int = 1
    memory_mib: int = 1024
    kvm: Literal["auto", "on", "off"] = "auto"
    native: bool = False  # the running machine itself, no guest
    lab: str = ""  # a machine that is no guest: the whole path of its description, a colon, its name
    in_system: bool = False  # there: in the installed system, not in an initramfs of ours
    hardware: Hardware = Hardware()  # of the running machine; a machine of a lab has its own in its description
    cold: bool = False  # exact mode: every guest boots, as one of the kernels cannot be paused for a snapshot
    rep_features: bool = False  # exact mode: leave ERMS/FSRM on in the guest CPU
    qemu: str = ""  # path of the user's QEMU, "" for the one on PATH
    boot_limit_s: float = 180.0
    turn_ns: int = 200  # exact mode, several CPUs: how long each runs before the next, in virtual time

    @property
    def guests(self) -> bool:
        """Whether boots are guests of QEMU, with so many CPUs and so much memory."""
        return not self.native and not self.lab

    @property
    def lab_name(self) -> str:
        """The name of the machine of a lab, "" elsewhere."""
        return self.lab.rpartition(":")[2]


class Effort(Struct, frozen=True, kw_only=True):
    """How much is sampled inside one boot."""

    warmup_windows: int = 16
    windows: int = 160
    window_ms: int = 5
    latency_ops: int = 4000
    repetitions: int = 7  # exact mode: at most, one that agrees with the round before it is enough
    seeds: int = 20  # exact mode: at most; counts that repeat are decided by five
    limit_ms: int = 60_000  # per run
    limit_given: bool = False  # by the user: then counts keep to it by the clock on the wall, not the guest's
    pmu_windows: int = 0  # under the CPU's own counters, after those that are timed
    batches: int = 0  # leak check: lives of the case, of batch_ops operations each, instead of windows
    batch_ops: int = 500

    @property
    def by_the_wall(self) -> bool:
        """Whether the limit is the user's; older stores only know that it is not the usual one."""
        return self.limit_given or self.limit_ms != Effort().limit_ms


class PlannedBoot(Struct, frozen=True, kw_only=True):
    """One boot of the schedule. ``slot`` is its position in the block; (block, slot) is unique."""

    block: int
    slot: int
    kernel: int  # index into Experiment.kernels
    mitigations: Mitigations = "default"
    cases: tuple[int, ...] = ()  # indexes into Experiment.cases; () = all


class OpenCell(Struct, frozen=True, order=True):
    """What a look left undecided: a case under ``mitigations`` that ``kernel`` has to be booted on with. Indexes."""

    case: int
    mitigations: Mitigations
    kernel: int


class Series(Struct, frozen=True, kw_only=True):
    """Samples of one metric in one run; ``warm`` marks warm-up samples, kept but never used in an estimate."""

    metric: str
    unit: str
    better: Better
    values: tuple[float, ...]
    warm: tuple[bool, ...] = ()

    def kept(self) -> tuple[float, ...]:
        """Samples that are not warm-up."""
        if not self.warm:
            return self.values
        return tuple(v for v, w in zip(self.values, self.warm, strict=True) if not w)


class MovedLine(Struct, frozen=True, kw_only=True):
    """Cache lines of one name that moved between CPUs in a run: transfers of all its operations.

    ``name`` is a variable of the kernel, "per-CPU NAME", a field ("dentry.d_lockref"), a slab cache and the offset in
    its objects ("kmalloc-64+0x0"), "struct page", or "memory: FUNCTIONS" for other memory: those to which it moved
    most. ``by`` has reads and writes by function; of one that acts for its caller (a lock) as "CALLER (FUNCTION)".
    ``unshared`` counts the transfers that carried nothing (false sharing): no byte that one CPU wrote and another used.
    ``beside``: what moved for no other reason. ``also``: other variables, most first. ``others``: transfers by others.
    """

    name: str
    reads: int
    writes: int
    lines: int = 1
    cpus: int = 0
    unshared: int = 0
    beside: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    others: dict[str, int] = field(default_factory=dict)
    by: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def transfers(self) -> int:
        return self.reads + self.writes


class Waited(Struct, frozen=True, kw_only=True):
    """How often a lock was found taken in a run: entries into ``function``, its slow path, for ``caller``.

    Or how often ``caller`` read in vain under a sequence counter: ``function`` is read_seqcount_retry (it was written
    meanwhile) or read_seqcount_begin (it was being written, and was waited for); ``taken`` then counts all its reads.

    ``lock``: the variable or field, "" where it is not known. ``taken``: how often the caller took that lock
    in all.
    """

    function: str
    caller: str
    lock: str
    times: int
    taken: int


class CallCount(Struct, frozen=True, kw_only=True, array_like=True):
    """What one system call came to, or one kind of interrupts: times, kernel instructions, bytes moved by REP."""

    calls: int
    instructions: int
    rep_bytes: int


class Profile(Struct, frozen=True, kw_only=True, weakref=True):
    """Exact counts of one run folded by function: ``functions[name]`` is a vector in EXACT_COUNTERS order.

    Kernel functions by name, user space as ``[user]``, addresses without a symbol as ``[unknown ADDRESS]``.
    Counts are of ``ops`` operations; the vectors add up to ``total``. ``calls`` says whom the functions that ran can
    call (kernel/calls.py), one line a function: its name, then those of its callees; one text, because few of many
    are asked. ``system_calls`` (attribution/entries.py) add up to the kernel's part; {} where entries are not known.
    On one CPU: ``data_lines`` and ``code_lines``, distinct cache lines touched, by the function that was first. On
    several: ``moved``, lines that moved, most transfers first; ``waits``, locks found taken; ``called``: how often each
    system call was made. ``stacks``: the tree of calls (attribution/stacks.py), as text. ``places``: by symbol the
    offsets of what ran of a patch's functions. ``faster_clock_cpu``: of a program, guest/workloads/program_clock.h.
    """

    ops: int
    functions: dict[str, tuple[int, ...]]
    total: tuple[int, ...]
    calls: str = ""
    system_calls: dict[str, CallCount] = field(default_factory=dict)
    moved: tuple[MovedLine, ...] = ()
    waits: tuple[Waited, ...] = ()
    data_lines: dict[str, int] = field(default_factory=dict)
    code_lines: dict[str, int] = field(default_factory=dict)
    stacks: str = ""
    called: dict[str, int] = field(default_factory=dict)
    places: dict[str, tuple[int, ...]] = field(default_factory=dict)
    faster_clock_cpu: float = 0.0


class RunResult(Struct, frozen=True, kw_only=True):
    """One case in one boot. ``series`` is empty unless ``state`` is ok."""

    case: int
    state: State
    why: str = ""
    series: tuple[Series, ...] = ()
    histograms: dict[str, bytes] = field(default_factory=dict)  # HdrHistogram V2 payloads
    facts: dict[str, float] = field(default_factory=dict)
    profile: Profile | None = None


class BootResult(Struct, frozen=True, kw_only=True):
    """One guest lifetime, the unit of statistics."""

    plan: PlannedBoot
    state: State
    why: str = ""
    started_at: str = ""
    elapsed_s: float = 0.0
    first_sample_s: float | None = None
    argv: tuple[str, ...] = ()
    machine: dict[str, str] = field(default_factory=dict)  # accel, qemu version, cpu, port, clock
    facts: dict[str, float | str] = field(default_factory=dict)  # steal, temperature, load: see machine/hostfacts
    console: bytes = b""
    stream: bytes = b""
    runs: tuple[RunResult, ...] = ()

    @property
    def cut_short(self) -> bool:
        """Whether its QEMU, or that of one of its cases, was killed: it is measured again."""
        return "lost" in (self.state, *(run.state for run in self.runs))


class Warn(Struct, frozen=True):
    """A warning as a value: what was found, not the sentence about it, which report/sentences.py makes.

    Each kind is a struct of its own, beside what finds it; ``code`` is stable for scripts, and several may share one.
    """

    code: ClassVar[str] = ""


class Remark(Warn, frozen=True, rename={"about": "code"}):
    """Any other warning, its sentence made already: of an estimator of your own, or kept by an older kdelta."""

    about: str
    text: str

    @property
    def code(self) -> str:  # type: ignore[override]
        return self.about


class Because(Struct, frozen=True, kw_only=True):
    """The functions behind an effect, as one line tells them: what is gone, what is new, what changed, by how much."""

    gone: tuple[str, ...] = ()
    gone_delta: float = 0.0
    new: tuple[str, ...] = ()
    new_delta: float = 0.0
    changed: tuple[tuple[str, float], ...] = ()
    others: int = 0  # functions that have another count besides
    others_delta: float = 0.0  # what all of them come to
    taken: tuple[tuple[str, float], ...] = ()  # of changed: what else came or went below it, the other way
    gone_kept: float = 0.0  # of gone_delta, without its sign: what lives on elsewhere, or in something new
    new_kept: float = 0.0  # of new_delta: what was elsewhere before


class FunctionDelta(Struct, frozen=True, kw_only=True):
    """Kernel instructions per operation of one function before and after."""

    function: str
    baseline: float
    patched: float
    delta: float
    note: str = ""  # see attribution/because.py
    where: str = ""  # of a cache line that moves: the function for which that changed most
    unshared: float = 0.0  # of it too: the part of ``delta`` that is false sharing


UNBOOTED = "not booted yet"  # what a cell, or a version, says of a kernel of which there is no boot


class CellResult(Struct, frozen=True, kw_only=True):
    """One row of the answer: a case and metric for one patched kernel against the baseline."""

    case: str
    params: dict[str, str]
    cgroup: Cgroup
    mitigations: Mitigations
    metric: str
    unit: str
    better: Better
    primary: bool
    baseline_label: str
    patched_label: str
    baseline: float | None
    patched: float | None
    effect_percent: float | None
    interval_percent: tuple[float, float] | None
    verdict: Word | None  # None: descriptive only, or not measured (see state)
    state: State
    why: str = ""
    sides: tuple[State, State] = ("ok", "ok")  # how baseline and patched kernel ended; ``state`` is the graver
    boots: tuple[int, int] = (0, 0)
    floor_percent: float | None = None
    p_value: float | None = None
    detectable_percent: float | None = None  # minimum detectable effect
    boots_needed: int | None = None  # fresh boots per kernel that would decide
    because: tuple[FunctionDelta, ...] = ()
    because_line: Because | None = None
    warnings: tuple[Warn, ...] = ()
    extra: dict[str, float] = field(default_factory=dict)  # named side figures: rep bytes, k-best, spread

    @property
    def unbooted(self) -> bool:
        """Whether there is no figure because nothing was booted yet, which is no way to end."""
        return self.state == "lost" and self.why.endswith(UNBOOTED)

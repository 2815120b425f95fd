# SPDX-License-Identifier: GPL-2.0-or-later
"""The workload catalogue: TOML files beside C files, the CASEs of C files, and will-it-scale testcases."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct, field

from kdelta.errors import UserError
from kdelta.model import Case, Effort, Metric
from kdelta.paths import shipped
from kdelta.spec import needs, sources, suites, toml, users
from kdelta.spec.counted import Counted
from kdelta.spec.needs import Need
from kdelta.units import Better

WIS_PREFIX = "wis/"
# Of a testcase that counts in a loop within its own: what an operation costs depends on where in that loop it is. Of
# page_fault2's 32,768 faults 350 said -2.4 % of 7.0 against 6.12, 1,024 said +6.3 %, 8,192 said +7.1 %.
_INNER_LOOP_OPS = 2048
TASK_KNOBS = ("tasks", "writers")  # what counts the tasks whose operations count
# Keys of a job line that belong to the harness (ARCHITECTURE.md, Contract: jobs).
RESERVED = frozenset(
    {"limit_ms", "warmup", "windows", "window_ms", "latency_ops", "reps", "ops", "cgroup", "batches", "pmu", "pressure"}
)

_AS_GOT = " (as guests get it: of a bool 0 or 1, of a size its bytes)"
_SIZES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}
_SIZE = re.compile(r"^([0-9]+)([KMG]?)(?:i?B)?$", re.IGNORECASE)
_BOOLS = {"0": "0", "off": "0", "no": "0", "false": "0", "1": "1", "on": "1", "yes": "1", "true": "1"}
_SOURCE = r"^(window:(ns_per_op|ops_per_s|mb_per_s)|hist:[a-z_]+:(p50|p90|p99|p99\.9|mean|max)|value:[a-z0-9_]+)$"

Name = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]*$")]
Positive = Annotated[int, Meta(ge=1)]


class Param(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A knob. ``only_with`` names the values of other knobs without which it means nothing."""

    type: Literal["choice", "int", "size", "bool"]
    default: str | int | bool
    help: str
    choices: tuple[str, ...] = ()
    min: int | None = None
    max: int | None = None
    only_with: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def canonical(self, text: str) -> str:
        """``text`` as guests get it: a choice, or a decimal number (sizes in bytes, bools 0 or 1).

        Raises:
            ValueError: with the reason, when the knob does not take ``text``.
        """
        if self.type == "choice":
            if text not in self.choices:
                close = get_close_matches(text, self.choices, 1)
                raise ValueError(f"one of {', '.join(self.choices)}{f'; did you mean {close[0]}?' if close else ''}")
            return text
        if self.type == "bool":
            if text.lower() not in _BOOLS:
                raise ValueError("0 or 1")
            return _BOOLS[text.lower()]
        return str(self._number(text))

    def _number(self, text: str) -> int:
        if self.type == "size":
            match = _SIZE.match(text)
            if not match:
                raise ValueError("a size such as 4096, 64K or 1M")
            number = int(match[1]) * _SIZES[match[2].upper()]
        elif text.isascii() and text.isdigit():
            number = int(text)
        else:
            raise ValueError("a whole number")
        if (self.min is not None and number < self.min) or (self.max is not None and number > self.max):
            raise ValueError(f"between {self.show(str(self.min))} and {self.show(str(self.max))}")
        return number

    def show(self, value: str) -> str:
        """A canonical ``value`` as people write it: ``65536`` of a size is ``64K``."""
        if self.type == "size" and value.isdigit():
            for suffix in "GMK":
                if int(value) and int(value) % _SIZES[suffix] == 0:
                    return f"{int(value) // _SIZES[suffix]}{suffix}"
        return value

    @property
    def words(self) -> tuple[str, ...]:
        """All that it takes, canonical; empty where that is a range of numbers."""
        return self.choices or (("0", "1") if self.type == "bool" else ())

    @property
    def default_text(self) -> str:
        """The default, canonical."""
        text = str(int(self.default)) if isinstance(self.default, bool) else str(self.default)
        return self.canonical(text)


class EffortOverride(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the workload wants other sampling than the default; see ``model.Effort``."""

    warmup_windows: Positive | None = None
    windows: Positive | None = None
    window_ms: Positive | None = None
    latency_ops: Positive | None = None
    repetitions: Positive | None = None
    limit_ms: Positive | None = None


class MetricEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A metric as the TOML file has it; ``per_part`` divides by the workload's ``parts_per_op``."""

    name: Name
    unit: str
    better: Better
    source: Annotated[str, Meta(pattern=_SOURCE)]
    primary: bool = False
    legacy: bool = False
    per_part: bool = False
    help: str = ""


class Entry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A TOML file, decoded."""

    name: Name
    title: str
    help: str
    multi_task: bool = False
    exact_ops: Annotated[int, Meta(ge=0)] = 16  # per exact repetition; 0: the workload has no exact mode
    endless: bool = False  # its loop never returns: operations are counted, not counted off
    exact_label: str = ""  # what an exact figure means where that is not plain
    floor_percent: Annotated[float, Meta(ge=0)] = -1.0  # exact: differences below are noise of the path; -1: not said
    part: str = ""  # what an operation consists of, where figures per part are of interest
    parts_per_op: Positive = 1
    data: tuple[str, ...] = ()
    needs: tuple[Need, ...] = ()
    effort: EffortOverride = EffortOverride()
    params: dict[Name, Param] = field(default_factory=dict)
    metrics: tuple[MetricEntry, ...] = ()  # none: those of a CASE


class Workload(Struct, frozen=True, kw_only=True):
    """A workload of the catalogue. ``metrics`` are ready for ``guest.metrics``; ``source_path`` is the C file.

    With parts (``path_lookup``: 205 lookups per sweep) a metric's source ends in ``/parts_per_op``:
    ``window:ns_per_op/205`` is ns per lookup.
    """

    name: str
    title: str
    help: str
    multi_task: bool
    exact_ops: int
    endless: bool
    exact_label: str
    floor_percent: float
    part: str
    parts_per_op: int
    data: tuple[str, ...]
    needs: tuple[Need, ...]
    overrides: EffortOverride
    params: dict[str, Param]
    metrics: tuple[Metric, ...]
    source_path: Path
    counted: Counted | None = None  # the program that it is, with a number of operations
    floor_said: bool = True  # by its TOML file
    every_cpu: bool = False  # counted on several CPUs it has a task on each (guest/case.h)

    @property
    def data_files(self) -> dict[str, Path]:
        """Name in the guest -> file: beside the C file, those of shipped workloads in guest/data."""
        if not self.data:
            return {}
        ours = shipped("guest") / "workloads"
        folder = ours.parent / "data" if self.source_path.parent == ours else self.source_path.parent
        return {name: folder / name for name in self.data}

    def effort(self, base: Effort) -> Effort:
        """``base`` with what this workload wants otherwise, where ``base`` has the default."""
        usual = Effort()
        wanted = {
            name: value
            for name, value in msgspec.structs.asdict(self.overrides).items()
            if value is not None
            and getattr(base, name) == getattr(usual, name)
            and not (name == "limit_ms" and base.limit_given)
        }
        return msgspec.structs.replace(base, **wanted)

    def needs_of(self, case: Case) -> tuple[Need, ...]:
        """The needs that apply to the parameters of ``case``."""
        return tuple(need for need in self.needs if need.holds(case.params))

    def case(self, given: Mapping[str, str]) -> Case:
        """The case with canonical values ``given``, the rest by default.

        Raises:
            UserError: a given knob means nothing beside the others.
        """
        params = {name: given.get(name, param.default_text) for name, param in self.params.items()}
        special = {k: v for k, v in params.items() if v != self.params[k].default_text}
        for name in special:
            for other, values in self.params[name].only_with.items():
                if params[other] not in values:
                    allowed = "|".join(values)
                    raise UserError(
                        f"case {self.name}: {name}= has no effect with {other}={params[other]}; "
                        f"add {other}={allowed} or leave {name} out"
                    )
        knobs = ",".join(f"{k}={self.params[k].show(v)}" for k, v in special.items())
        return Case(workload=self.name, params=params, label=f"{self.name}:{knobs}" if knobs else self.name)


def _takes(param: Param, values: Iterable[str]) -> bool:
    """Whether ``values`` are canonical values of ``param``."""
    try:
        return all(param.canonical(value) == value for value in values)
    except ValueError:
        return False


def _complaint(entry: Entry) -> str:
    """What is wrong with ``entry`` beyond its types, or ""."""
    for name, param in entry.params.items():
        if name in RESERVED:
            return f"params.{name}: the name is reserved for the harness; choose another"
        if (param.type == "choice") != bool(param.choices):
            return f"params.{name}: choices are needed for type choice, and only there"
        if param.type in ("int", "size") and (param.min is None or param.max is None):
            return f"params.{name}: type {param.type} needs min and max"
        try:
            param.default_text  # noqa: B018
        except ValueError as error:
            return f"params.{name}: the default {param.default!r} is not {error}"
        for other, values in param.only_with.items():
            if other not in entry.params or not values or not _takes(entry.params[other], values):
                return f"params.{name}: only_with names {other}, no parameter, or not one of its values{_AS_GOT}"
    for need in entry.needs:
        for other, values in need.when.items():
            if other not in entry.params or not _takes(entry.params[other], values):
                return f"needs: when names {other}, which is not a parameter, or a value that it does not take{_AS_GOT}"
    names = [m.name for m in entry.metrics]
    if len(set(names)) != len(names):
        return "metrics: two have the same name"
    if entry.metrics and sum(m.primary for m in entry.metrics) != 1:
        return "metrics: exactly one must have primary = true"
    if entry.parts_per_op > 1 and not entry.part:
        return 'parts_per_op: name the part, as in part = "lookup"'
    return ""


def _metric(entry: Entry, metric: MetricEntry) -> Metric:
    source = f"{metric.source}/{entry.parts_per_op}" if metric.per_part else metric.source
    kept = {k: v for k, v in msgspec.structs.asdict(metric).items() if k != "per_part"}
    return Metric(**(kept | {"source": source}))


def _workload(entry: Entry, source: Path, name: str, title: str) -> Workload:
    fields = {k: v for k, v in msgspec.structs.asdict(entry).items() if k != "effort"}
    metrics = entry.metrics or _template("case").metrics
    fields |= {"name": name, "title": title, "metrics": tuple(_metric(entry, m) for m in metrics)}
    return Workload(**fields, overrides=entry.effort, source_path=source)


def load_entry(path: Path) -> Entry:
    """Decode and check one TOML file.

    Raises:
        UserError: naming the file, the key and the remedy.
    """
    try:
        entry = toml.decode(path.read_bytes(), Entry)
    except OSError as error:
        raise UserError(f"workload {path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UserError(f"workload {path}: {error}; see docs/how-to/add-a-workload.md") from None
    if complaint := _complaint(entry):
        raise UserError(f"workload {path}: {complaint}")
    return entry


def load(path: Path, floor: float = 0.0) -> Workload:
    """The workload of one TOML file, with this ``floor`` where it says none; its C file must lie beside it.

    Raises:
        UserError: as ``load_entry``, or when the names do not agree.
    """
    entry = load_entry(path)
    source = path.with_suffix(".c")
    if entry.name != path.stem:
        raise UserError(f"workload {path}: name is {entry.name!r}; it must be the file's, {path.stem!r}")
    if not source.is_file():
        raise UserError(f"workload {path}: {source.name} is missing next to it")
    found, said = _workload(entry, source, entry.name, entry.title), entry.floor_percent >= 0
    return found if said else msgspec.structs.replace(found, floor_percent=floor, floor_said=False)


def _template(name: str) -> Entry:
    return load_entry(shipped("guest") / f"{name}.toml")


def _cases(path: Path, suite: str = "") -> Iterator[Workload]:
    """The CASEs of a C file; those of a suite have its name in front."""
    template, text = _template("case"), users.read(path)
    if not sources.includes(text):
        raise UserError(f'workload {path}: a CASE needs #include "case.h" at the top of its file')
    for case in sources.cases_of(text, str(path)):
        name = f"{suite}/{case.name}" if suite else case.name
        workload = _workload(msgspec.structs.replace(template, exact_ops=case.exact_ops), path, name, case.title)
        yield msgspec.structs.replace(workload, every_cpu=True)


def _programs(suite: suites.Suite) -> Iterator[Workload]:
    """The programs of a suite; figures are per part of one of their operations."""
    template, source = _template("counted"), shipped("guest") / "workloads" / "program.c"
    for name, one in suite.programs.items():
        text = f"{template.help.strip()}\nN is {one.operations}: {one.run}{' (SCHED_BATCH)' * one.batch}"
        parts = one.operations * one.parts
        entry = msgspec.structs.replace(template, help=text, part=one.part, parts_per_op=parts)
        workload = _workload(entry, source, f"{suite.name}/{name}", one.title)
        yield msgspec.structs.replace(workload, counted=one)


def _testcase(path: Path) -> Workload:
    text, entry = users.read(path), _template("wis")
    if sources.counts_in_inner_loop(text):
        entry = msgspec.structs.replace(entry, exact_ops=_INNER_LOOP_OPS)
    return _workload(entry, path, WIS_PREFIX + path.stem, sources.description_of(text))


def _own(path: Path, kind: sources.Kind) -> Iterator[Workload]:
    """The workloads of one C file of the user's."""
    entry = path.with_suffix(".toml")
    if kind == "cases":
        yield from _cases(path)
    elif kind == "testcase" and not entry.exists():
        yield _testcase(path)
    elif entry.exists():
        yield load(entry, _template("case").floor_percent)  # its placebos are not known: some moved by 0.05 %
    else:
        raise UserError(f"workload {path}: {entry.name} is missing next to it; {users.HOW_TO}")


@functools.cache
def _shipped() -> tuple[Workload, ...]:
    """Those that come with kdelta, read once: nothing changes them while it runs."""
    return tuple(_of(shipped("guest")))


def _of(guest: Path) -> Iterator[Workload]:
    for path in sorted((guest / "workloads").glob("*.toml")):
        yield load(path)
    for path in sorted(guest.glob("suites/*/*.c")):
        yield from _cases(path, path.parent.name)
    for suite in suites.suites().values():
        yield from _programs(suite)


def _all(own: Iterable[Path]) -> Iterator[Workload]:
    yield from _shipped()
    for place in own:
        for path in sorted(place.glob("*.toml")):
            load(path)  # a TOML file without its C file is told
    for path, kind in users.files(own):
        yield from _own(path, kind)


def catalogue(own: Iterable[Path] = ()) -> dict[str, Workload]:
    """All workloads by name: the shipped ones, then those of the user's ``own`` directories and C files.

    Raises:
        UserError: a damaged file, a path that is not there, or a name that is taken.
    """
    found: dict[str, Workload] = {}
    data: dict[str, Path] = {}
    for workload in _all(tuple(own)):
        if workload.name in found:
            other = found[workload.name].source_path
            raise UserError(f"workload {workload.source_path}: {workload.name} is already in {other}: rename it")
        found[workload.name] = workload
        for name, path in workload.data_files.items():
            if data.setdefault(name, path) != path:
                raise UserError(f"workload {workload.source_path}: data {name!r} is also {data[name]}: rename it")
            if not path.is_file():
                raise UserError(f"workload {workload.source_path}: its data {path} is not there")
    return found


def rare_options() -> tuple[str, ...]:
    """What the shipped workloads need and few kernels have (``needs.rare``)."""
    return needs.rare(workload.needs for workload in catalogue().values())

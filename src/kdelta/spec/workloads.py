# SPDX-License-Identifier: GPL-2.0-or-later
"""The workload catalogue (one TOML file beside each C file) and the argv grammar of cases.

    WORKLOAD[:KNOB=VALUE[|VALUE...][,KNOB=...]]      pipe:writers=1|2|5,readers=5,message=64K

Several values of a knob make a grid: one case for each combination. Sizes take K, M and G (1024).
"""

from __future__ import annotations

import itertools
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
from kdelta.units import Better

FIVE = ("pidfd_open", "path_lookup", "pipe", "fork_vmas", "thread_spawn")
WIS_PREFIX = "wis/"
TASK_KNOBS = ("tasks", "writers")  # what counts the tasks whose operations count
# Keys of a job line that belong to the harness (ARCHITECTURE.md, Contract: jobs).
RESERVED = frozenset(
    {"limit_ms", "warmup", "windows", "window_ms", "latency_ops", "reps", "ops", "cgroup", "batches", "pressure"}
)

_SIZES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}
_SIZE = re.compile(r"^([0-9]+)([KMG]?)(?:i?B)?$", re.IGNORECASE)
_BOOLS = {"0": "0", "off": "0", "no": "0", "false": "0", "1": "1", "on": "1", "yes": "1", "true": "1"}
_SOURCE = r"^(window:(ns_per_op|ops_per_s|mb_per_s)|hist:[a-z_]+:(p50|p90|p99|p99\.9|mean|max)|value:[a-z0-9_]+)$"
_TESTCASE = re.compile(r"char\s*\*\s*testcase_description\s*=\s*\"((?:[^\"\\]|\\.)*)\"")

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
    def default_text(self) -> str:
        """The default, canonical."""
        text = str(int(self.default)) if isinstance(self.default, bool) else str(self.default)
        return self.canonical(text)


class Need(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a kernel must have, always or ``when`` knobs have certain values; ``since`` is the release that has it."""

    config: str = ""
    syscall: str = ""
    feature: str = ""
    since: str = ""
    when: dict[str, tuple[str, ...]] = field(default_factory=dict)


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
    exact_label: str = ""  # what an exact figure means where that is not plain
    floor_percent: Annotated[float, Meta(ge=0)] = 0.0  # exact mode: differences below are noise of the path
    part: str = ""  # what an operation consists of, where figures per part are of interest
    parts_per_op: Positive = 1
    data: tuple[str, ...] = ()
    needs: tuple[Need, ...] = ()
    effort: EffortOverride = EffortOverride()
    params: dict[Name, Param] = field(default_factory=dict)
    metrics: tuple[MetricEntry, ...]


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

    def effort(self, base: Effort) -> Effort:
        """``base`` with what this workload wants otherwise, where ``base`` has the default."""
        usual = Effort()
        wanted = {
            name: value
            for name, value in msgspec.structs.asdict(self.overrides).items()
            if value is not None and getattr(base, name) == getattr(usual, name)
        }
        return msgspec.structs.replace(base, **wanted)

    def needs_of(self, case: Case) -> tuple[Need, ...]:
        """The needs that apply to the parameters of ``case``."""
        return tuple(n for n in self.needs if all(case.params.get(k) in v for k, v in n.when.items()))

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
                        f"case {self.name}: {name}= means nothing with {other}={params[other]}; "
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
            return f"params.{name}: the name belongs to the harness; choose another"
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
                return f"params.{name}: only_with names {other}, which is no parameter, or no value of it"
    for need in entry.needs:
        for other, values in need.when.items():
            if other not in entry.params or not _takes(entry.params[other], values):
                return f"needs: when names {other}, which is no parameter, or a value that it does not take"
    names = [m.name for m in entry.metrics]
    if len(set(names)) != len(names):
        return "metrics: two have the same name"
    if sum(m.primary for m in entry.metrics) != 1:
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
    fields |= {"name": name, "title": title, "metrics": tuple(_metric(entry, m) for m in entry.metrics)}
    return Workload(**fields, overrides=entry.effort, source_path=source)


def load_entry(path: Path) -> Entry:
    """Decode and check one TOML file.

    Raises:
        UserError: naming the file, the key and the remedy.
    """
    try:
        entry = msgspec.toml.decode(path.read_bytes(), type=Entry)
    except OSError as error:
        raise UserError(f"workload {path}: cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:  # ValidationError is a DecodeError
        raise UserError(f"workload {path}: {error}; see docs/how-to/add-a-workload.md") from None
    if complaint := _complaint(entry):
        raise UserError(f"workload {path}: {complaint}")
    return entry


def load(path: Path) -> Workload:
    """The workload of one TOML file; its C file must lie beside it.

    Raises:
        UserError: as ``load_entry``, or when the names do not agree.
    """
    entry = load_entry(path)
    source = path.with_suffix(".c")
    if entry.name != path.stem:
        raise UserError(f"workload {path}: name is {entry.name!r}; it must be the file's, {path.stem!r}")
    if not source.is_file():
        raise UserError(f"workload {path}: {source.name} is missing beside it")
    return _workload(entry, source, entry.name, entry.title)


def _wis(folder: Path) -> Iterator[Workload]:
    """will-it-scale testcases of a folder: C files without a TOML file that describe a testcase."""
    template = None
    for source in sorted(folder.glob("*.c")):
        if source.with_suffix(".toml").exists():
            continue
        try:
            match = _TESTCASE.search(source.read_text(errors="replace"))
        except OSError as error:
            raise UserError(f"testcase {source}: cannot be read: {error.strerror}") from None
        if match:
            template = template or load_entry(shipped("guest") / "wis.toml")
            yield _workload(template, source, WIS_PREFIX + source.stem, match[1])


def catalogue(extra_dirs: Iterable[Path] = ()) -> dict[str, Workload]:
    """All workloads by name: the shipped ones, then those of ``extra_dirs`` (own workloads, will-it-scale testcases).

    Raises:
        UserError: a damaged TOML file, a folder that is not there, or a name that is taken.
    """
    found: dict[str, Workload] = {}
    for folder in (shipped("guest") / "workloads", *map(Path, extra_dirs)):
        if not folder.is_dir():
            raise UserError(f"workloads {folder}: no such folder")
        for workload in itertools.chain(map(load, sorted(folder.glob("*.toml"))), _wis(folder)):
            if workload.name in found:
                other = found[workload.name].source_path
                raise UserError(f"workload {workload.source_path}: {workload.name} is already in {other}: rename it")
            found[workload.name] = workload
    return found


def _close(word: str, known: Iterable[str]) -> str:
    """A remedy: the close matches of ``word``, else all that is known."""
    names = sorted(known)
    close = get_close_matches(word, names, 3)
    return f"did you mean {' or '.join(close)}?" if close else f"one of {', '.join(names) or 'none'}"


def _choices(text: str, workload: Workload, piece: str) -> tuple[str, list[str]]:
    """``writers=1|2`` -> ("writers", ["1", "2"]), checked and canonical."""
    knob, equals, values = piece.partition("=")
    knob = knob.strip()
    if not equals or not values:
        raise UserError(f"case {text!r}: {piece!r} is not knob=value")
    if knob not in workload.params:
        raise UserError(f"case {text!r}: {workload.name} has no knob {knob!r}; {_close(knob, workload.params)}")
    canonical = []
    for value in values.split("|"):
        try:
            canonical.append(workload.params[knob].canonical(value.strip()))
        except ValueError as error:
            raise UserError(f"case {text!r}: {knob}={value} must be {error}") from None
    if len(set(canonical)) != len(canonical):
        raise UserError(f"case {text!r}: a value of {knob} is given twice")
    return knob, canonical


def parse_case(text: str, catalogue: Mapping[str, Workload]) -> list[Case]:
    """The cases that ``text`` names: one, or a grid in the order written, the last knob varying fastest.

    Raises:
        UserError: an unknown workload, knob or value, with the close matches.
    """
    name, colon, rest = text.partition(":")
    name = name.strip()
    if name not in catalogue:
        raise UserError(f"case {text!r}: unknown workload {name!r}; {_close(name, catalogue)}")
    workload = catalogue[name]
    if colon and not rest:
        raise UserError(f"case {text!r}: nothing after the colon; a knob is given as {name}:knob=value")
    axes: dict[str, list[str]] = {}
    for piece in rest.split(",") if rest else ():
        knob, values = _choices(text, workload, piece)
        if knob in axes:
            raise UserError(f"case {text!r}: {knob} is given twice; several values are written {knob}=a|b")
        axes[knob] = values
    return [workload.case(dict(zip(axes, values, strict=True))) for values in itertools.product(*axes.values())]


def five_cases(catalogue: Mapping[str, Workload]) -> list[Case]:
    """The five cases with their default knobs: what runs when no case is named."""
    return [case for name in FIVE for case in parse_case(name, catalogue)]

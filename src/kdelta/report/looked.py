# SPDX-License-Identifier: GPL-2.0-or-later
"""What a comparison with cases chosen by a patch looked at, and what not, in sentences that stand above the table."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from kdelta.model import Annotations, Beside, Looked, Unreached
from kdelta.model.experiment import is_boot_only, is_new, sets_at_boot
from kdelta.report import rarely, tracepoints, uncrossed
from kdelta.units import counted

_CALL = re.compile(r"__(?:x64|arm64|do|se)_sys_")
_SHOWN = 12  # names in a line; the JSON result has all
_BY_POINTER = ("used by pointer", "its address is taken")  # in the title of a change (attribution/changes.py)
_NAMESAKES = "functions of this name"  # there, too
_OF_PROGRAMS = "(the vDSO,"  # there, too
IDENTICAL = "machine code and data are identical"
_NOTHING = ": there is nothing to measure"
UNTOUCHED = "none of its changed instructions ran"
_UNSHOWN = "what that does to caches and TLBs, counts of instructions do not show"
_USUAL = ("path_lookup", "pipe", "fork_vmas", "thread_spawn", "pidfd_open")
PATCHED = (
    "Instructions that are patched in at boot differ: which of them run hangs on the features of the CPU "
    "(kdelta compare --rep-features leaves ERMS and FSRM on)"
)
USED = "What runs at boot alone is looked at through the functions that use what it may set"
UNCALLED = "not called in the cases measured"
UNTOLD = "Which of the changed instructions ran is not counted on several CPUs"
UNBOOTED = "Whether the patched kernel boots was not tried"
_MORE_CPUS = 4
_SHOWN_MISSING = 3  # of cases that do not run, which are the same for every patch


def _names(names: Sequence[str], shown: int = _SHOWN) -> str:
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more


def _folded(looked: Looked, titles: Sequence[str]) -> list[str]:
    """``titles`` with what a tracepoint is made of as one."""
    unreached = (one.name.partition(" (nearest: ")[0] for one in looked.unreached)
    return tracepoints.folded(titles, (*looked.measured, *looked.untouched, *looked.left_out, *unreached))


def _unreached(one: Unreached) -> str:
    return f"{one.name} (nearest: {' -> '.join(one.path)})" if one.path else one.name


def _calls(new: Sequence[str]) -> str:
    """What measures new functions that are system calls, which only a program for them makes."""
    if not any(_CALL.match(name) for name in new):
        return ""
    return " A program of yours may make the new system call: the same command with --case FILE.c or -- PROGRAM."


def _executes(looked: Looked) -> str:
    """What no case does: of what is used by pointer the baseline's map cannot tell."""
    pointers = any(words in one.name for one in looked.unreached for words in _BY_POINTER)
    return "is known to execute" if pointers else "executes"


def _alone(looked: Looked) -> str:
    return " on one CPU" if looked.cpus > 1 else ""


def may_set(looked: Looked) -> str:
    """What is to be said of what runs at boot; cases are named by way of one that was not measured."""
    measured = " ".join((*looked.cases, *looked.near, *looked.controls, *looked.given))
    other = next((name for name in _USUAL if name not in measured), "")
    more = f": name cases, as in kdelta compare BASELINE PATCHED --case {other}"
    return f"what is set at boot may change other paths{more if other else ''}"


def _sets(looked: Looked) -> str:
    """The same behind what no case executes: a sentence of its own."""
    said = may_set(looked)
    return f". {said[0].upper()}{said[1:]}" if any(sets_at_boot(one.name) for one in looked.unreached) else ""


def _program(looked: Looked) -> str:
    """What may execute what no case does: a sentence, without its full stop."""
    if looked.unreached and all(_OF_PROGRAMS in one.name for one in looked.unreached):
        return (
            "Counts are the kernel's: a program of yours that calls it is measured by kdelta compare --timed -- PROGRAM"
        )
    several = f", or {_MORE_CPUS} CPUs: with --smp {_MORE_CPUS}" if looked.cpus == 1 else ""
    return f"A program of yours may: the same command with -- PROGRAM{several}"


def _left_out(looked: Looked) -> str:
    """Files, and what stands under options, behind a "does not build"; "" where all is built."""
    off = _names([f"CONFIG_{name}" for name in looked.off], _SHOWN_MISSING)
    under = f"what stands under {off}" if off else ""
    return " nor ".join(filter(None, (_names(looked.not_built, _SHOWN_MISSING), under)))


def _kept(looked: Looked) -> str:
    """That a config has its own values where the patch has other defaults."""
    return f"this config has a value of its own, where the patch makes {_names(looked.defaults)} the default"


def _differ(looked: Looked) -> str:
    if looked.differ:
        kinds = "function" if looked.sizes_only else "function or variable"
        one = looked.differ == 1
        what = f"{looked.differ} {kinds}" if one else f"{looked.differ} {kinds.replace('n or', 'ns or')}s"
        by = " in size" if looked.sizes_only else ""
        return f"{what} {'differs' if one else 'differ'}{by}, of {looked.functions} functions"
    if looked.boot_patched:
        return "only instructions that are patched in at boot differ: which functions execute them is not known"
    if looked.sizes_only:
        return "no function differs in size; instructions were not compared"
    if looked.lined:
        return f"{rarely.lined(looked)}{_NOTHING}"
    if left_out := _left_out(looked):
        return f"machine code and data are identical, as this config does not build {left_out}"
    if looked.defaults:
        return f"machine code and data are identical, as {_kept(looked)}"
    if looked.shifted:
        around = f"other things lie around {_names(looked.elsewhere)}; " if looked.elsewhere else ""
        return f"machine code and data are identical, at other addresses: {around}{_UNSHOWN}"
    return f"{IDENTICAL}{_NOTHING}"


def _by(looked: Looked) -> str:
    """The cases that were chosen, and how many more there were to choose from."""
    taken = f"{len(looked.cases)} of {looked.candidates} cases"
    if looked.in_memcg and not looked.cases:
        return f"{counted(len(looked.in_memcg), 'case')} in a memory cgroup"
    if looked.controls and looked.cpus > 1 and not looked.cases:
        return f"what was measured on {looked.cpus} CPUs"
    if not looked.executing:
        return f"{taken}, the most specific first"
    if looked.executing > len(looked.cases):
        return f"{taken}, of the {looked.executing} that execute any of it"
    return f"{taken}, all that execute any of it in their operations (what they set up before is not seen)"


def _tried(what: str, found: Mapping[str, Sequence[str]]) -> list[str]:
    """Of cases that were added for instructions that the others do not run; those without a function failed there."""
    turned = [f"{case} ({_names(names, _SHOWN_MISSING)})" for case, names in found.items() if names]
    failed = [case for case, names in found.items() if not names]
    lines = [f"{what} the patched kernel did not come to the case's end: {_names(failed)}."] if failed else []
    return lines + ([f"{what} changed instructions run that otherwise do not: {_names(turned)}."] if turned else [])


def _controls(looked: Looked) -> str:
    if looked.cpus > 1:
        return f"Measured all the same, as on {looked.cpus} CPUs other code runs"
    if not looked.measured and any(sets_at_boot(one.name) for one in looked.unreached):
        return "Measured all the same, as what runs at boot may change any case"
    return "Controls, which execute nothing that differs"


def sentences(looked: Looked | None) -> tuple[str, ...]:
    """One line each; () where the cases were named by the user."""
    if looked is None:
        return ()
    lines = [f"Changed: {_differ(looked)}."]
    lines += [f"Beside that {rarely.lined(looked)}."] if looked.lined and looked.differ else []
    if looked.whole:
        through = f": {_names(looked.through)}" if looked.through else ""
        lines.append(f"Whole image: so many functions differ that a header or an option is the cause{through}.")
    if looked.boot_patched and looked.differ and not looked.whole:
        lines.append(f"{PATCHED}.")
    if looked.off:
        how = rarely.with_options(looked.off, looked.config)
        lines.append(f"NOT LOOKED AT, off in this config: {_names(looked.off)}; measured by {how}.")
    if looked.defaults:
        given = json.dumps(" ".join([*filter(None, [looked.config]), *looked.defaults[:_SHOWN]]))
        how = f"measured with ,config={given} behind the patched kernel of kdelta compare"
        lines.append(
            f"NOT LOOKED AT, another default, which this config does not take: {_names(looked.defaults)}; {how}."
        )
    if looked.parameters:
        told = " ".join(f"{name}VALUE" if name.endswith("=") else name for name in looked.parameters)
        how = f"measured with ,cmdline={json.dumps(told)} behind both kernels of kdelta compare"
        lines.append(f"NOT LOOKED AT, boot parameters that are not given: {_names(looked.parameters)}; {how}.")
    if looked.not_built:
        how = f"; built by {rarely.with_options(looked.builds, looked.config)}" if looked.builds else ""
        lines.append(f"NOT LOOKED AT, not built with this config: {_names(looked.not_built)}{how}.")
    if looked.unreached:
        those = _folded(looked, [_unreached(one) for one in looked.unreached])
        who = f"no {'mapped ' if looked.no_time else ''}case {_executes(looked)} it{_alone(looked)} in its operations"
        elsewhere = looked.measured and not looked.given and not all(is_boot_only(one.name) for one in looked.unreached)
        may = f". {_program(looked)}" if elsewhere and not tracepoints.alone(those) else ""
        many = f"{len(looked.unreached)} of {looked.differ}"
        lines.append(f"NOT LOOKED AT, {who} ({many}): {_names(those)}{may}{_sets(looked)}.")
    if looked.untouched:
        new = [name for name in looked.untouched if is_new(name)]
        old = [name for name in looked.untouched if not is_new(name)]
        lines += [f"NOT LOOKED AT, executed, but {UNTOUCHED}: {_names(old)}."] if old else []
        lines += [f"NOT LOOKED AT, {UNCALLED}: {_names(_folded(looked, new))}.{_calls(new)}"] if new else []
    if looked.left_out:
        lines.append(
            f"NOT LOOKED AT, no time ({len(looked.left_out)}; raise --time-budget): {_names(looked.left_out)}."
        )
    if looked.no_time:
        left = f"{len(looked.no_time)} of {looked.candidates} cases, of which nothing is known"
        again = "the same command goes on with them, or a larger --time-budget"
        lines.append(f"NOT LOOKED AT, no time to map {left} ({again}): {_names(looked.no_time, _SHOWN_MISSING)}.")
    if looked.measured:
        lines.append(f"Looked at: {_names(_folded(looked, looked.measured))}; by {_by(looked)}.")
        if shared := _shared(looked):
            lines.append(f"{shared}.")
        if any(map(is_boot_only, looked.measured)):
            lines.append(f"{USED}.")
        if looked.partly:
            shares = [f"{name} {ran} of {of}" for name, (ran, of) in looked.partly.items()]
            lines.append(f"Of their changed instructions ran: {_names(shares)}; the figures say nothing of the rest.")
        if looked.removed:
            shares = [f"{name} {ran} of {of}" for name, (ran, of) in looked.removed.items()]
            rest = "the figures say nothing of the rest"
            lines.append(f"Of the instructions that it takes out ran before: {_names(shares)}; {rest}.")
    elif looked.differ and not looked.untouched:
        by = f" (by the atlas of {looked.atlas}; kdelta reach KERNEL maps this very kernel)" if looked.atlas else ""
        mapped = f"{looked.candidates - len(looked.no_time)}{' mapped' if looked.no_time else ''}"
        who = f"None of {mapped} cases {_executes(looked)} in its operations{_alone(looked)} anything that differs"
        if looked.given:
            lines.append(f"{who}{by}; what you named is measured all the same: {_names(looked.given)}.")
        elif looked.controls:
            later = not all(is_boot_only(one.name) for one in looked.unreached)
            lines.append(f"{who}{by}.{f' {_program(looked)}.' if later else ''}")
        else:
            lines.append(f"{who}{by}; what they set up before is not seen: nothing was measured. {_program(looked)}.")
    lines += [said] if (said := rarely.sentence(looked)) else []
    lines += _tried("Chosen for a knob, with which", looked.by_knob)
    lines += _tried("Chosen for another way through it, on which", looked.other_ways)
    there = [f"{case} ({_names(names, _SHOWN_MISSING)})" for case, names in looked.in_memcg.items() if names]
    if there:
        lines.append(f"Chosen in a memory cgroup (memcg), as no case executes it in the root cgroup: {_names(there)}.")
    if looked.charged:
        cases = [case for case, names in looked.in_memcg.items() if not names]
        why = f"as the root cgroup is charged nothing for {_names(looked.charged)}"
        lines.append(f"Measured in a memory cgroup (memcg) too, {why}: {_names(cases)}.")
    if looked.interrupting:
        lines.append(f"Executed only by interrupts that came into the cases: {_names(looked.interrupting)}.")
    if looked.users:
        lines.append(f"Measured too, as they may use what it made in their set-up: {_names(looked.users)}.")
    if looked.near:
        why = "as they spend most in functions of the files that it touches"
        lines.append(f"Measured all the same, {why}: {_names(looked.near)}.")
    if looked.controls:
        lines.append(f"{_controls(looked)}: {_names(looked.controls)}.")
    if looked.not_mapped:
        names = _names(looked.not_mapped, _SHOWN_MISSING)
        of = "".join(f"; {count} of them {'need' if count > 1 else 'needs'} {name}" for name, count in _most(looked))
        lines.append(
            f"{len(looked.not_mapped)} of {looked.candidates} cases do not run here (kdelta reach): {names}{of}."
        )
    if looked.taken_over:
        what = f"{looked.taken_over} of {looked.candidates} cases were mapped on another kernel"
        lines.append(
            f"{what}, from which the baseline differs in {_names(looked.beyond)}: their operations execute none of it, "
            "their set-up may (kdelta reach KERNEL --anew maps them again)."
        )
    return tuple(lines)


def _most(looked: Looked) -> list[tuple[str, int]]:
    """The options that would make the most cases run, and how many."""
    return list(looked.needs.items())[:_SHOWN_MISSING]


def nothing(looked: Looked | None) -> str:
    """Why no case was measured, as the answer."""
    if looked is None:
        return ""
    if not looked.differ:
        return f"Nothing was measured: {_differ(looked).removesuffix(_NOTHING)}"
    names = _names([one.name for one in looked.unreached], _SHOWN_MISSING)
    mapped = "mapped " if looked.no_time else ""
    sets = _sets(looked) + (f". {UNBOOTED}" if _sets(looked) else "")
    what = names or "anything that differs"
    within = "" if all(is_boot_only(one.name) for one in looked.unreached) else " in its operations"
    left = (
        f"; {len(looked.no_time)} of {looked.candidates} are not mapped yet, the same command goes on" if mapped else ""
    )
    return f"Nothing was measured: no {mapped}case {_executes(looked)} {what}{within}{sets}{left}"


def not_spoken_of(looked: Looked | None) -> int:
    """How many changes the counts of the cases say nothing of."""
    return len(looked.unreached) + len(looked.left_out) + len(looked.untouched) if looked else 0


def unseen(looked: Looked | None) -> str:
    """What of the change the measured cases do not speak of, as part of the answer; "" where they execute all of it."""
    if looked is None:
        return ""
    hardly, gone = ([name for name, (ran, of) in of.items() if 2 * ran < of] for of in (looked.partly, looked.removed))
    parts = (
        _missed(looked),
        _shared(looked),
        f"Most of what differs in {_names(hardly, _SHOWN_MISSING)} did not run" if hardly else "",
        f"Most of what it takes out of {_names(gone, _SHOWN_MISSING)} did not run before" if gone else "",
        f"This config does not build {_left_out(looked)}" if _left_out(looked) else "",
        f"{_kept(looked)[0].upper()}{_kept(looked)[1:]}" if looked.defaults and looked.differ else "",
    )
    return ". ".join(filter(None, parts))


def _shared(looked: Looked) -> str:
    """That a name that is counted is that of several functions, of which not all differ."""
    names = [name.partition(" (")[0] for name in looked.measured if _NAMESAKES in name]
    which = f"Several functions are named {_names(names, _SHOWN_MISSING)}"
    return f"{which}: whether what ran is one that differs is not told" if names else ""


def _missed(looked: Looked) -> str:
    missed = not_spoken_of(looked)
    if not missed:
        return ""
    noun = "function" if looked.sizes_only else "function or variable"
    many = f"{missed} of {looked.differ} {noun.replace('n or', 'ns or')}s that differ"
    whose = f"The one {noun} that differs was" if looked.differ == 1 else f"{many} {'was' if missed == 1 else 'were'}"
    untouched = [f"{name} ({UNCALLED if is_new(name) else UNTOUCHED})" for name in looked.untouched]
    titles = [*untouched, *(one.name for one in looked.unreached), *looked.left_out]
    names = _names(_folded(looked, titles), _SHOWN_MISSING)
    return f"{whose} not looked at: {names}{_sets(looked)}"


def above(notes: Annotations, cpus: int = 1, several: bool = True) -> tuple[str, ...]:
    """What stands above the table: a line for each check beside speed, new leaks first, then ``sentences``.

    ``several``: such guests could be counted on several CPUs.
    """
    beside = sorted(notes.beside, key=lambda one: not one.leaks)
    crossing = uncrossed.above(notes, several) if cpus == 1 else ()
    ran = (f"{UNTOLD}; the same command without --smp tells.",)
    partly = cpus > 1 and notes.looked is not None and notes.looked.measured
    return (*map(_beside, beside), *crossing, *sentences(notes.looked), *(ran if partly else ()))


def _beside(one: Beside) -> str:
    name = "Leaks" if one.what == "leaks" else "What runs under mutexes"
    if not (one.experiment or one.why):
        return "What runs under locks: not counted, the series touches no mutex."
    if not one.experiment:
        return f"{name}: could not be checked: {one.why}"
    if one.why:
        return f"{name}: not looked at, {one.why} (kdelta resume {one.experiment})."
    cases = f"{counted(one.cases, 'case')} (kdelta report {one.experiment})"
    if one.unchecked and len(one.unchecked) >= one.cases:
        return f"{name}: could not be checked: of {cases} none came to its end on all kernels."
    if one.unchecked:
        cases += f", of which {len(one.unchecked)} could not be checked: {_names(one.unchecked, _SHOWN_MISSING)}"
    if one.what == "locks":
        return f"{name}: counted in {cases}."
    return f"NEW LEAK: {'; '.join(one.leaks)}; of {cases}." if one.leaks else f"{name}: none new; by {cases}."


def document(looked: Looked) -> dict[str, Any]:
    """The same for scripts, every name of it."""
    return {
        "functions": looked.functions,
        "differ": looked.differ,
        "candidates": looked.candidates,
        "cases": list(looked.cases),
        "executing": looked.executing,
        "measured": list(looked.measured),
        "unreached": [{"name": one.name, "nearest": list(one.path)} for one in looked.unreached],
        "left_out": list(looked.left_out),
        "untouched": list(looked.untouched),
        "partly": {name: list(share) for name, share in looked.partly.items()},
        "removed": {name: list(share) for name, share in looked.removed.items()},
        "interrupting": list(looked.interrupting),
        "given": list(looked.given),
        "controls": list(looked.controls),
        "near": list(looked.near),
        "users": list(looked.users),
        "shifted": looked.shifted,
        "elsewhere": list(looked.elsewhere),
        "not_mapped": list(looked.not_mapped),
        "needs": dict(looked.needs),
        "whole": looked.whole,
        "through": list(looked.through),
        "boot_patched": looked.boot_patched,
        "sizes_only": looked.sizes_only,
        "atlas": looked.atlas,
        "off": list(looked.off),
        "not_built": list(looked.not_built),
        "builds": list(looked.builds),
        "defaults": list(looked.defaults),
        "parameters": list(looked.parameters),
        **rarely.document(looked),
        "no_time": list(looked.no_time),
        "taken_over": looked.taken_over,
        "beyond": list(looked.beyond),
        "by_knob": {case: list(names) for case, names in looked.by_knob.items()},
        "other_ways": {case: list(names) for case, names in looked.other_ways.items()},
        "cpus": looked.cpus,
        "charged": list(looked.charged),
        "in_memcg": {case: list(names) for case, names in looked.in_memcg.items()},
    }

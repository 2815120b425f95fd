# SPDX-License-Identifier: GPL-2.0-or-later
"""What newcomers type, and what they mean by it: words of other programs, and one line about what was mistyped."""

from __future__ import annotations

import os
import re

import click

# What newcomers type, and what they mean: see spelled and command.
_LISTS = {"cases": ("cases", "list"), "kernels": ("kernels", "list"), "recipes": ("check", "--list")}
_MEANT = {
    **dict.fromkeys(("diff", "cmp", "vs", "test"), "compare"),
    **dict.fromkeys(("bench", "benchmark", "measure", "perf", "stat", "boot", "exec", "record", "start"), "run"),
    **dict.fromkeys(("show", "result", "results", "print", "open"), "report"),
    **dict.fromkeys(("status", "experiments", "log", "runs", "ps"), "history"),
    **dict.fromkeys(("annotate", "disasm", "objdump", "asm"), "code"),
    **dict.fromkeys(("jobs", "queue", "hosts", "workers"), "fleet"),
    **dict.fromkeys(("delete", "rm", "remove"), "history delete"),
    "tag": "history tag",
    "note": "history note",
    **dict.fromkeys(("explain", "because", "functions", "profile", "flamegraph", "flame", "stacks"), "why"),
    **dict.fromkeys(("web", "ui", "gui", "html", "server"), "serve"),
    **dict.fromkeys(("continue", "restart"), "resume"),
    **dict.fromkeys(("info", "host", "setup", "install", "env"), "doctor"),
    **dict.fromkeys(("fetch", "download", "kernel", "images", "prune", "clean"), "kernels"),
    **dict.fromkeys(("workloads", "suites", "benchmarks", "case"), "cases"),
    **dict.fromkeys(("verify", "claims", "recipes"), "check"),
    **dict.fromkeys(("build", "patch", "mail", "am", "apply", "b4", "series"), "review"),
}
# Words of other programs that are no command here, and what to do instead.
_INSTEAD = {
    **dict.fromkeys(
        ("cancel", "stop", "abort", "kill", "pause"),
        "Ctrl-C ends a command and kdelta resume goes on with it; of a fleet: kdelta fleet --cancel EXPERIMENT",
    ),
    "man": "each command explains itself: kdelta COMMAND --help",
    **dict.fromkeys(
        ("update", "upgrade", "refresh"),
        "Debian's index is read anew each day, and kdelta kernels fetch gets a kernel; kdelta itself comes by pip",
    ),
    "init": "nothing has to be set up; kdelta doctor says what this machine can do",
    **dict.fromkeys(
        ("config", "configure", "settings"),
        "options may stand in a file (--spec FILE); a kernel's config belongs to its name, as in src:./linux,config=FILE",
    ),
    **dict.fromkeys(
        ("plot", "graph", "chart", "draw"), "did you mean: kdelta report last --format html -o report.html?"
    ),
}
# Options of other programs, and those that they are here: what of them the command has is offered.
_OPTIONS = {
    **dict.fromkeys(("--cpus", "--cpu", "--vcpus", "--ncpus", "--cores", "--threads"), ("--smp",)),
    **dict.fromkeys(("--runs", "--iterations", "--repeat", "--count", "-n", "-r"), ("--seeds", "--blocks", "--boots")),
    **dict.fromkeys(("--test", "--tests", "--workload", "--benchmark", "--bench", "-t"), ("--case",)),
    **dict.fromkeys(("--mem", "--ram", "-m"), ("--memory",)),
    **dict.fromkeys(("--timeout",), ("--limit", "--time-budget")),
    **dict.fromkeys(("--out", "--outfile", "--file"), ("--output",)),
    **dict.fromkeys(("--silent", "-s"), ("--quiet",)),
    **dict.fromkeys(("--time", "--wall", "--real"), ("--timed",)),
    **dict.fromkeys(("--instructions", "--icount"), ("--exact",)),
    **dict.fromkeys(("--threshold", "--fail"), ("--fail-on",)),
    **dict.fromkeys(("--explain", "--functions"), ("--causes",)),
    "--cases": ("--case",),
}
# Options of other programs that are not needed, or said in a kernel's name: (an option of the commands concerned, why).
_NEEDLESS = {
    **dict.fromkeys(("-j", "--jobs", "--parallel"), ("--exact", "counts take all CPUs, timed boots run one by one")),
    **dict.fromkeys(
        ("--cmdline", "--append"), ("--kvm", "it belongs to a kernel, as in 'debian:6.12,cmdline=\"quiet\"'")
    ),
    **dict.fromkeys(("--config", "--kconfig"), ("--kvm", "it belongs to a kernel, as in src:./linux,config=FILE")),
    **dict.fromkeys(
        ("--param", "--params", "--parameter", "--set", "--knob"),
        ("--case", "it belongs to a case, as in --case pipe:writers=4; kdelta cases show pipe has all"),
    ),
    "--arch": ("--kvm", "it belongs to a kernel, as in debian:6.12,arch=arm64"),
    **dict.fromkeys(
        ("--quick", "--fast"), ("--case", "name a case, as in --case pidfd_open: two kernels take seconds")
    ),
    "--case": ("--reply", "a review counts the cases that execute what changed; kdelta compare takes --case"),
    "--list": ("--case", "kdelta cases list has the cases, kdelta kernels list the kernels"),
    "--debug": ("--case", "what a boot printed is kept: kdelta report last --console BLOCK.SLOT, as in 0.1"),
    **dict.fromkeys(("-v", "--verbose"), ("--quiet", "progress is shown without one, and kdelta report has the rest")),
    **dict.fromkeys(
        ("--seconds", "--duration", "--runtime", "--run-time"),
        ("--limit", "a case is so many operations, not so long; what one run of it may take at most is --limit 60s"),
    ),
}
_WHOLE = ("--seconds", "--duration", "--runtime", "--run-time")  # may also mean all that a command does
_LOUD = ("-v", "--verbose")
_LIST = re.compile(r"'(\d+(?:[,|.]+\d+)+)' is not a valid integer")
_EXPERIMENT = re.compile(r"last(~\d+)?|\d{8}(-\w+)*")
_EXTRA = re.compile(r"unexpected extra arguments? \((.*)\)")


def command(args: list[str], commands: list[str]) -> str:
    """What a line may have meant whose first word is no command."""
    import difflib
    import shlex

    word = args[0]
    if _EXPERIMENT.fullmatch(word):
        return f"; did you mean: kdelta report {shlex.join(args)}?"
    if ":" in word or "/" in word or word == "running" or word.lstrip("v")[:1].isdigit():
        several = len(args) > 1 and not args[1].startswith("-")
        verb = "run --" if _is_program(word) else "compare" if several else "run --kernel"
        return f"; did you mean: kdelta {verb} {shlex.join(args)}"
    if word in _INSTEAD:
        return f"; {_INSTEAD[word]}"
    close = [_MEANT[word]] if word in _MEANT else difflib.get_close_matches(word, commands, n=1, cutoff=0.65)
    return f"; did you mean {close[0]!r}?" if close else ""


def _is_program(name: str) -> bool:
    """Whether a file can be executed and is no kernel, of which a vmlinux is executable too."""
    try:
        with open(name, "rb") as file:
            begins = file.read(4)
    except (OSError, ValueError):
        return False
    return os.access(name, os.X_OK) and (begins[:2] == b"#!" or (begins == b"\x7fELF" and "vmlinu" not in name))


def spelled(args: list[str]) -> list[str]:
    """``args`` with the words that many programs know as the options and commands that they are here."""
    if not args:
        return ["--help"]
    first, rest = args[0], args[1:]
    if first == "help":
        return [*(spelled(rest) if rest else []), "--help"]
    if first in _LOUD and rest:
        return [*spelled(rest), first]
    if first in ("version", "-V", "-v"):
        return ["--version"]
    if first in ("list", "ls"):
        what = rest[0] if rest else ""
        return [*_LISTS[what], *rest[1:]] if what in _LISTS else ["history", *rest]
    return args


def _example(command: click.Command) -> str:
    """The first example of a command's help."""
    lines = (line.strip() for line in (command.epilog or "").splitlines())
    return next((line.split("   ")[0] for line in lines if line.startswith("kdelta ")), "")


def told(error: click.UsageError) -> str:
    """A mistyped line in one line, with an example where a word is missing or stands alone."""
    if error.ctx is None:
        return error.format_message()
    example = _example(error.ctx.command)
    if isinstance(error, click.MissingParameter) and error.param is not None and example:
        name = error.param.make_metavar(error.ctx) if isinstance(error.param, click.Argument) else error.param.opts[0]
        about = (
            f" ({error.param.help.rstrip('.')})" if isinstance(error.param, click.Option) and error.param.help else ""
        )
        return f"{error.ctx.info_name} needs {name}{about}, as in: {example}"
    if isinstance(error, click.NoSuchOption) and (meant := _option_meant(error.option_name, error.ctx.command)):
        return f"there is no option {error.option_name}: {meant}"
    if isinstance(error, click.BadParameter) and (numbers := _LIST.search(error.format_message())):
        return f"{error.param.opts[0] if error.param else ''} {numbers[1]}: {_one_by_one(numbers[1], error)}"
    where = f" (see {error.ctx.command_path} --help)"
    extra = _EXTRA.search(error.format_message())
    if extra and (meant := _word_meant(extra[1], error.ctx)):
        where = f"; did you mean {meant}?"
    elif (extra or "Missing command" in error.format_message()) and example:
        where = f"; as in: {example}"
    return error.format_message().rstrip(".") + where


def _one_by_one(numbers: str, error: click.BadParameter) -> str:
    """What to write where an option takes one number and got several."""
    has = {opt for param in (error.ctx.command.params if error.ctx else ()) for opt in param.opts}
    if error.param is None or "--smp" not in error.param.opts:
        return "it takes one number"
    if "--cpus" in has:
        most = re.split(r"[,|.]+", numbers)[-1]
        return f"did you mean --exact --cpus {numbers}, or in time --tasks {numbers} --smp {most}?"
    return "guests are of one size here; over several: kdelta scale --exact KERNEL --cpus 1,2,4"


def _option_meant(name: str, command: click.Command) -> str:
    """What an option that ``command`` has not may have meant; "" where nobody knows."""
    has = {opt for param in command.params for opt in param.opts}
    if "--format" in has:
        from kdelta.report import registry

        if (word := name.lstrip("-")) in registry.formats():
            return f"write --format {word}"
    needs, why = _NEEDLESS.get(name, ("", ""))
    if needs in has:
        return why + ("; of all there is to do, --time-budget 5m" if name in _WHOLE and "--time-budget" in has else "")
    if name in _LOUD:
        return "what a command can show besides stands in its --help"
    meant = [option for option in _OPTIONS.get(name, ()) if option in has]
    return f"did you mean {' or '.join(meant)}?" if meant else ""


def _word_meant(word: str, context: click.Context) -> str:
    """The option or command that a word too many may belong to; "" where nobody knows."""
    has = {opt for param in context.command.params for opt in param.opts}
    if "--port" in has and word.isdigit():
        return f"--port {word}"
    if "--output" in has and re.fullmatch(r"[^\s:]+\.[a-z]\w*", word):
        return f"-o {word}"
    if context.info_name != "report":
        return ""
    return f"--against {word}" if _EXPERIMENT.fullmatch(word) else f"kdelta why last {word}"

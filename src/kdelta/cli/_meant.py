# SPDX-License-Identifier: GPL-2.0-or-later
"""What newcomers type, and what they mean by it: words of other programs, and one line about what was mistyped."""

from __future__ import annotations

import os
import re
import struct

import click

from kdelta.cli import _option_meant

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
_HEADERS_BYTES = 4096  # of an ELF file: its own and those of its segments
_HELP = ("help", "-h", "--help", "?", "-?")
_LOUD = ("-v", "--verbose")
_LIST = re.compile(r"'(\d+(?:[,|.]+\d+)+)' is not a valid integer")
_EXPERIMENT = re.compile(r"last(~\d+)?|\d{8}(-\w+)*")
_EXTRA = re.compile(r"unexpected extra arguments? \((.*)\)")


def command(args: list[str], commands: list[str]) -> str:
    """What a line may have meant whose first word is no command."""
    import difflib
    import shlex
    import shutil

    word = args[0]
    if _EXPERIMENT.fullmatch(word):
        return f"; did you mean: kdelta report {shlex.join(args)}?"
    if ":" in word or "/" in word or word == "running" or word.lstrip("v")[:1].isdigit():
        several = len(args) > 1 and not args[1].startswith("-")
        verb = "run --" if is_program(word) else "compare" if several else "run --kernel"
        return f"; did you mean: kdelta {verb} {shlex.join(args)}"
    if word in _INSTEAD:
        return f"; {_INSTEAD[word]}"
    close = [_MEANT[word]] if word in _MEANT else difflib.get_close_matches(word, commands, n=1, cutoff=0.65)
    if not close and shutil.which(word):
        return f"; did you mean: kdelta run -- {shlex.join(args)}?"
    return f"; did you mean {close[0]!r}?" if close else ""


def is_program(name: str) -> bool:
    """Whether a file can be executed and is no kernel, of which a vmlinux is executable too."""
    if not os.path.isfile(name) or not os.access(name, os.X_OK):  # a FIFO would be waited for
        return False
    try:
        with open(name, "rb") as file:
            begins = file.read(_HEADERS_BYTES)
    except OSError:
        return False
    return begins[:2] == b"#!" or (begins[:4] == b"\x7fELF" and not ("vmlinu" in name or _loads_high(begins)))


def _loads_high(begins: bytes) -> bool:
    """Whether an ELF file of 64 bits is loaded where programs are not: in the upper half, as kernels are."""
    if begins[4:6] != b"\2\1" or len(begins) < 64:
        return False
    headers, size, count = struct.unpack_from("<Q", begins, 32) + struct.unpack_from("<HH", begins, 54)
    places = range(headers, min(headers + size * count, len(begins) - 55), max(size, 1))
    entries = (struct.unpack_from("<I12xQ", begins, at) for at in places)
    return any(kind == 1 and address >> 63 for kind, address in entries)


def spelled(args: list[str]) -> list[str]:
    """``args`` with the words that many programs know as the options and commands that they are here."""
    if not args:
        return ["--help"]
    first, rest = args[0], args[1:]
    if first in _HELP:
        return [*(spelled(rest) if rest else []), "--help"]
    if first in _LOUD and rest:
        return [*spelled(rest), first]
    if first in ("version", "-V", "-v"):
        return ["--version"]
    if first in ("list", "ls", "--list"):
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
    example, where = _example(error.ctx.command), f" (see {error.ctx.command_path} --help)"
    if isinstance(error, click.MissingParameter) and error.param is not None and example:
        name = error.param.make_metavar(error.ctx) if isinstance(error.param, click.Argument) else error.param.opts[0]
        about = (
            f" ({error.param.help.rstrip('.')})" if isinstance(error.param, click.Option) and error.param.help else ""
        )
        return f"{error.ctx.info_name} needs {name}{about}, as in: {example}"
    if isinstance(error, click.NoSuchOption):
        meant = _option_meant.meant(error.option_name, error.ctx)
        return f"there is no option {error.option_name}{f': {meant}' if meant else where}"
    if isinstance(error, click.BadParameter) and (numbers := _LIST.search(error.format_message())):
        return f"{error.param.opts[0] if error.param else ''} {numbers[1]}: {_one_by_one(numbers[1], error)}"
    extra = _EXTRA.search(error.format_message())
    if extra and error.ctx.info_name == "review":
        where = "; a series is one mbox, which patches become by: cat *.patch | kdelta review - --tree ./linux"
    elif extra and (meant := _word_meant(extra[1], error.ctx)):
        where = f"; did you mean {meant}?"
    elif example and (extra or re.match("Missing command|No such command", error.format_message())):
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


def _word_meant(word: str, context: click.Context) -> str:
    """The option or command that a word too many may belong to; "" where nobody knows."""
    has = {opt for param in context.command.params for opt in param.opts}
    if "--port" in has and word.isdigit():
        return f"--port {word}"
    if "--output" in has and re.fullmatch(r"[^\s:]+\.[a-z]\w*", word) and not os.path.exists(word):
        return f"-o {word}"
    if context.info_name != "report":
        return ""
    return f"--against {word}" if _EXPERIMENT.fullmatch(word) else f"kdelta why last {word}"

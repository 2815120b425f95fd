# SPDX-License-Identifier: GPL-2.0-or-later
"""Manual pages from the program's own help: ``man_pages.py DIRECTORY`` writes kdelta.1 and kdelta-COMMAND.1 there.

A page has what ``--help`` has, in the order of man-pages(7). help2man and click-man read neither a group whose commands
are found by file nor the literal blocks of an epilog.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from kdelta import __version__  # noqa: E402
from kdelta.cli.main import program  # noqa: E402

FILES = """\
.TP
.I $XDG_STATE_HOME/kdelta
Results and consoles: the store. KDELTA_STATE names another directory, KDELTA_STORE another database.
.TP
.I $XDG_CACHE_HOME/kdelta
Kernels, guest programs and snapshots; all of it can be made again. KDELTA_CACHE names another directory.
"""
EXIT = "0 success, 1 invalid input, 2 host or build error, 3 no guest did its work, 4 \\-\\-fail\\-on matched."


def escaped(text: str) -> str:
    """``text`` as roff prints it: no escape, no request, and hyphens that can be copied."""
    plain = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("'", "\\(aq")
    return "\n".join("\\&" + line if line.startswith(".") else line for line in plain.split("\n"))


def paragraphs(text: str) -> Iterator[str]:
    """Running text, and blocks that click marks with \\b as they are."""
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        literal = block.lstrip().startswith("\b")
        lines = [line for line in block.split("\n") if line.strip() != "\b"]
        if literal:
            yield ".PP\n.nf\n" + "\n".join(escaped(line.rstrip()) for line in lines) + "\n.fi"
        else:
            yield ".PP\n" + escaped(" ".join(" ".join(lines).split()))


def options(command: click.Command, context: click.Context) -> Iterator[str]:
    """Each option with its help."""
    for param in command.get_params(context):
        record = param.get_help_record(context)
        if record is not None and record[1]:
            yield f".TP\n.B {escaped(record[0])}\n{escaped(' '.join(record[1].split()))}"


def commands_below(command: click.Command, context: click.Context) -> list[tuple[str, click.Command]]:
    """Subcommands by name."""
    if not isinstance(command, click.Group):
        return []
    found = ((name, command.get_command(context, name)) for name in command.list_commands(context))
    return [(name, one) for name, one in found if one is not None and not one.hidden]


def page(command: click.Command, context: click.Context) -> str:
    """The page of one command."""
    name = context.command_path.replace(" ", "-")
    text = command.help or ""
    short = command.get_short_help_str(200).rstrip(".")
    synopsis = " ".join(command.collect_usage_pieces(context))
    below = commands_below(command, context)
    found = [
        f'.TH {escaped(name.upper())} 1 "" "kdelta {__version__}" "User Commands"',
        f".SH NAME\n{escaped(name)} \\- {escaped(short)}",
        f".SH SYNOPSIS\n.B {escaped(context.command_path)}\n{escaped(synopsis)}",
        ".SH DESCRIPTION",
        *paragraphs(text),
    ]
    if below:
        found.append(".SH COMMANDS")
        found += [f".TP\n.B {escaped(n)}\n{escaped(one.get_short_help_str(200))}" for n, one in below]
    found.append(".SH OPTIONS")
    found += options(command, context)
    after = [block for block in paragraphs(command.epilog or "") if "Exit codes:" not in block]
    found += [".SH EXAMPLES\n" + block if "Examples:" in block else block for block in after]
    above = [] if context.parent is None else [context.parent.command_path.replace(" ", "-")]
    others = above + [f"{name}-{n}" for n, _ in below]
    found += [".SH EXIT STATUS", EXIT, ".SH FILES", FILES.rstrip(), ".SH SEE ALSO"]
    found.append(",\n".join(f".BR {escaped(one)} (1)" for one in others).replace(",\n", " ,\n"))
    return "\n".join(found).replace("Examples:\n", "") + "\n"


def pages(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    """(file name, text) of the page of a command, and of one for each command below it."""
    yield context.command_path.replace(" ", "-") + ".1", page(command, context)
    for name, below in commands_below(command, context):
        yield from pages(below, click.Context(below, info_name=name, parent=context))


def main() -> int:
    if len(sys.argv) != 2:
        sys.stderr.write("usage: man_pages.py DIRECTORY\n")
        return 1
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages(program, click.Context(program, info_name="kdelta")):
        (folder / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: GPL-2.0-or-later
"""Holds the documents against the program: every ``kdelta`` line must parse, each option that a sentence names
and every relative link must exist.

Exit 1 and a line for each breach.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from kdelta.cli.main import program  # noqa: E402

OPTION = re.compile(r"`(--[a-z][a-z-]*)(?:=[^`]*)?`")
OTHERS = {"--exclusive", "--source"}  # options of sbatch, and of tools/placebos.py
HISTORY = "CHANGELOG.md"  # names what was once
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


def documents() -> list[Path]:
    """Markdown files of the project."""
    return [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]


def commands(text: str) -> list[tuple[int, str]]:
    """(line number, command) of the shell lines inside fenced blocks, continuation lines joined."""
    found: list[tuple[int, str]] = []
    fenced, kind, held = False, "", ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            fenced, kind = not fenced, line[3:].strip()
            continue
        if not fenced or kind not in ("", "sh", "console"):
            continue
        words = (held + line).strip()
        held = ""
        if words.endswith("\\"):
            held = words[:-1] + " "
            continue
        if words.startswith(("kdelta ", "$ kdelta ", ".venv/bin/kdelta ")):
            found.append((number, words.removeprefix("$ ").removeprefix(".venv/bin/")))
    return found


def parse_error(line: str) -> str:
    """Why the program would refuse this line, or ""."""
    try:
        words = shlex.split(line, comments=True)[1:]
    except ValueError as error:
        return str(error)
    command: click.Command = program
    context = click.Context(program, info_name="kdelta")
    while isinstance(command, click.Group) and words:
        if words[0].startswith("-"):
            return ""
        try:
            _, found, words = command.resolve_command(context, words)
        except click.UsageError as error:
            return error.format_message()
        if found is None:
            return "there is no such command"
        command = found
        context = click.Context(command, info_name=command.name, parent=context)
    try:
        command.make_context(command.name, words, resilient_parsing=False)
    except click.exceptions.Exit:
        return ""
    except click.UsageError as error:
        return error.format_message()
    return ""


def options(command: click.Command, context: click.Context) -> set[str]:
    """Every option of a command and of those below it."""
    found = {word for param in command.params for word in (*param.opts, *param.secondary_opts)}
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            found |= options(below, context) if below is not None else set()
    return found


def unknown_options(text: str, known: set[str]) -> list[tuple[int, str]]:
    """(line number, option) of the options that stand alone in a sentence and are in ``known`` no more."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        found += [(number, name) for name in OPTION.findall(line) if name not in known]
    return found


def main() -> int:
    wrong = []
    known = options(program, click.Context(program)) | OTHERS
    for path in documents():
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(ROOT)
        for number, line in commands(text):
            # A pipe, a redirection, or an explanation set off by blanks ends the command.
            if why := parse_error(re.sub(r"\s+[|>]\s.*$|(?<=\S)\s{2,}\S.*$", "", line)):
                wrong.append(f"{name}:{number}: {line.strip()}: {why}")
        for number, option in unknown_options(text, known) if path.name != HISTORY else ():
            wrong.append(f"{name}:{number}: {option}: no subcommand has this option")
        for target in LINK.findall(text):
            if not target.startswith(("http:", "https:", "mailto:")) and not (path.parent / target).exists():
                wrong.append(f"{name}: broken link {target}")
    sys.stdout.writelines(line + "\n" for line in wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: GPL-2.0-or-later
"""Holds the documents against the program: every ``kdelta`` line must parse, every relative link must exist.

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


def main() -> int:
    wrong = []
    for path in documents():
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(ROOT)
        for number, line in commands(text):
            # A pipe, a redirection, or an explanation set off by blanks ends the command.
            if why := parse_error(re.sub(r"\s+[|>]\s.*$|(?<=\S)\s{2,}\S.*$", "", line)):
                wrong.append(f"{name}:{number}: {line.strip()}: {why}")
        for target in LINK.findall(text):
            if not target.startswith(("http:", "https:", "mailto:")) and not (path.parent / target).exists():
                wrong.append(f"{name}: broken link {target}")
    sys.stdout.writelines(line + "\n" for line in wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

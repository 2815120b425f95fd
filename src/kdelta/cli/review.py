# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta review: what a series does to performance, what was looked at, and what not."""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kdelta.cli import _output
from kdelta.errors import UserError

if TYPE_CHECKING:
    from kdelta.kernel.cover import Cover

EPILOG = """\b
Examples:
  kdelta review series.mbox --tree ./linux             the mail's own base-commit, in your repository
  b4 am -o - MESSAGE-ID | kdelta review - --tree debian:6.12
  kdelta review v6.18..mybranch --tree ./linux --format mail

The tree is built without the series and with it, in a sandbox; the cases that execute what the series changed are
counted exactly. Interrupted, the same command goes on: what was built, mapped and counted is kept.
"""
_RANGE = re.compile(r"^([^.\s][^\s]*?)\.\.([^.\s][^\s]*)$")
_UNSAFE = re.compile(r"[^A-Za-z0-9_]+")


_reply = click.option(
    "--reply", type=click.Path(path_type=Path, dir_okay=False), callback=_output.check, metavar="FILE",
    help="Write the report as a mail in the series' thread, for git send-email; nothing is sent.",
)  # fmt: skip


@click.command(epilog=EPILOG)
@click.argument("series", metavar="MBOX|RANGE|-")
@click.option("--tree", required=True, metavar="TREE", help="What the series applies to: a source tree or repository [@REF], or debian:VERSION.")  # fmt: skip
@click.option("--time-budget", default="10m", show_default=True, metavar="TIME", help="What the chosen cases may take, as in 20m.")  # fmt: skip
@click.option("--config", default="", metavar="FILE", help="Build with this fragment, or whole .config.")
@click.option("--each", is_flag=True, help="Measure the series patch by patch: which one made the difference.")
@click.option("--selftests", metavar="SUITE,...", help="Run these kernel selftests first.")
@click.option("--all", "all_cases", is_flag=True, help="Add cases that execute nothing that changed, as a control.")
@click.option("--fail-on", metavar="regressed[:PERCENT]", help="Exit 4 when a case regressed (by at least PERCENT).")
@_output.format_option
@_output.output_option("Write the report to a file.")
@_reply
@click.option("--quiet", "-q", is_flag=True, help="No progress on standard error.")
def command(series: str, tree: str, reply: Path | None, quiet: bool, **options: Any) -> int:
    """Review a series: build it, count what it changed, say what was looked at and what was not."""
    from kdelta.cli import compare
    from kdelta.kernel.cover import Cover

    suffix = f',config="{options.pop("config")}"' if options["config"] else (options.pop("config") or "")
    match = _RANGE.match(series)
    if match and not Path(series).exists():
        source = _source(tree)
        if "@" in source or source.startswith("src:debian:"):
            raise UserError(f"--tree {tree}: a range needs the repository that it is of, without @REF")
        kernels, cover = [f"{source}@{match[1]}{suffix}", f"{source}@{match[2]}{suffix}"], Cover()
    else:
        kernels, cover = _mails(series, tree, suffix)
    if reply is not None:
        if cover.answer_to is None:
            raise UserError(f"--reply {reply}: {series} has no mail with a Message-ID and a sender to answer")
        options |= {"fmt": "mail", "output": reply}
    causes = ["--causes"] if options["fmt"] in _output.FOLDING else []
    words = [*kernels, "--exact", "--case", "auto", *causes, *_words(options), *(["--quiet"] if quiet else [])]
    try:
        code: int = compare.command.main(args=words, prog_name="kdelta review", standalone_mode=False)
    finally:  # also where --fail-on matched
        if reply is not None and reply.exists():
            _as_reply(cover, reply)
    if cover.claims and options["fmt"] == "terminal" and options["output"] is None:
        _output.write(_claims(cover), None)
    return code


def _words(options: dict[str, Any]) -> list[str]:
    """The options that compare takes too, as it takes them."""
    names = {"fmt": "format", "all_cases": "all"}
    words = []
    for name, value in options.items():
        option = "--" + names.get(name, name).replace("_", "-")
        if value is True:
            words.append(option)
        elif value:
            words += [option, str(value)]
    return words


def _source(tree: str) -> str:
    return tree if tree.startswith("src:") else f"src:{tree}"


def _mails(series: str, tree: str, suffix: str) -> tuple[list[str], Cover]:
    """The tree without and with the mails of ``series``, which are kept under a name that a kernel's name can hold.

    Raises:
        UserError: no such file, no patch in it, or a base that is not in the tree.
    """
    from kdelta.kernel import cache, cover, mail
    from kdelta.paths import state_dir

    data = _read(series)
    mail.steps(data, series)  # no patch: refused by the name that the user knows
    about = cover.read(data)
    stem = "stdin" if series == "-" else _UNSAFE.sub("-", Path(series).stem)[:40].strip("-")
    kept = state_dir() / "reviews" / f"{stem}-{hashlib.sha256(data).hexdigest()[:8]}.mbox"
    cache.write_atomically(kept, data)
    base = _source(tree) + _ref(tree, about.base)
    return [f"{base}{suffix}", f"{base}+{kept}{suffix}"], about


def _read(series: str) -> bytes:
    from kdelta.kernel import mail

    if series == "-":
        data = sys.stdin.buffer.read(mail.MAX_BYTES + 1)
        if not data.strip():
            raise UserError("review -: standard input is empty; pipe the mails of the series into it")
        return data
    path = Path(series).expanduser()
    if not path.is_file():
        raise UserError(
            f"review {series}: no such file; give an mbox, a range such as v6.18..mybranch, or - for standard input"
        )
    if path.stat().st_size > mail.MAX_BYTES:
        raise UserError(mail.too_large(series, path.stat().st_size))
    return path.read_bytes()


def _ref(tree: str, base: str) -> str:
    """``@COMMIT`` where the mails name their base and ``tree`` is a repository without a ref.

    Raises:
        UserError: the repository lacks that commit.
    """
    from kdelta.kernel.origin import has_commit, look

    target = tree.removeprefix("src:")
    if not base or target.startswith("debian:") or "@" in target:
        return ""
    seen = look(target, "")
    if seen.git_dir is None:
        return ""
    if not has_commit(seen.path, base):
        raise UserError(
            f"--tree {tree}: it lacks the series' base-commit {base[:12]}; fetch it, or name a base as {tree}@REF"
        )
    return f"@{base}"


def _as_reply(cover: Cover, path: Path) -> None:
    from kdelta.kernel.cover import reply

    if cover.answer_to is not None:
        body = path.read_text() + (_claims(cover) if cover.claims else "")
        _output.write(reply(cover.answer_to, body), path)


def _claims(cover: Cover) -> str:
    """The figures that the series itself gives, below what was measured."""
    from kdelta.report.scrub import clean

    lines = [
        "",
        "Figures that the series gives itself (quoted, not checked)",
        *(f"- {clean(line)}" for line in cover.claims),
    ]
    return "\n".join(lines) + "\n"

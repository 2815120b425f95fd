# SPDX-License-Identifier: GPL-2.0-or-later
"""Write the patch mails of this directory from a real kernel tree: ``python make.py TREE`` (linux-source-6.12).

Each is an edit of fs/pipe.c made here; the mangled ones are what mail programs made of it.
"""

from __future__ import annotations

import difflib
import itertools
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
FILE = "fs/pipe.c"
NULL_WRITE = (
    "\tif (unlikely(total_len == 0))\n\t\treturn 0;\n\n\tmutex_lock(&pipe->mutex);\n\n\tif (!pipe->readers) {\n"
)
# movl, then 33 times (nop, decl, jnz): 100 instructions
LOOP = (
    "\t/* planted cost: exactly 100 instructions in each write */\n"
    "\tif (total_len) {\n"
    '\t\tasm volatile("movl $33, %%ecx\\n"\n'
    '\t\t\t     "1:\\tnop\\n"\n'
    '\t\t\t     "decl %%ecx\\n"\n'
    '\t\t\t     "jnz 1b" : : : "ecx", "cc");\n'
    "\t}\n\n"
)
EDITS = {
    "loop": (NULL_WRITE, NULL_WRITE.replace("\tmutex_lock", LOOP + "\tmutex_lock")),
    "comment": ("\t/* Null write succeeds. */\n", "\t/*\n\t * A write of nothing succeeds, and wakes nobody.\n\t */\n"),
    "broken": ("\tif (unlikely(total_len == 0))\n", "\tif (unlikely(totl_len == 0))\n"),
    "panic": ("static int __init init_pipe_fs(void)\n{\n", None),
    "comment2": (
        "\t * That naturally merges small writes, but it also\n",
        "\t * That merges small writes as they come, but it also\n",
    ),
}


def edited(text: str, name: str) -> str:
    """``text`` with one edit made; the place must be there, once in the function."""
    old, new = EDITS[name]
    if name == "panic":
        new = old + '\tpanic("planted panic");\n'
    start = text.index("pipe_write(struct kiocb") if name != "panic" else 0
    at = text.index(old, start)
    return text[:at] + (new or "") + text[at + len(old) :]


def diff(old: str, new: str) -> str:
    """A unified diff in git's form."""
    lines = difflib.unified_diff(old.splitlines(True), new.splitlines(True), f"a/{FILE}", f"b/{FILE}")
    return f"diff --git a/{FILE} b/{FILE}\n" + "".join(lines)


def mail(subject: str, body: str, serial: int) -> str:
    """A message as git format-patch writes it."""
    return (
        f"From {serial:040x} Mon Sep 17 00:00:00 2001\nFrom: A Developer <dev@example.org>\n"
        f"Date: Mon, 2 Nov 2026 10:{serial:02d}:00 +0000\nSubject: {subject}\n\n{body}-- \n2.39.5\n\n"
    )


def mangled(clean: str) -> str:
    """What a web mailer leaves of a diff in a reply: quoted, tabs collapsed, lone blanks gone, the tail cut."""
    lines = []
    for line in clean.splitlines():
        collapsed = line[:1] + re.sub(r"\t+", " ", line[1:]) if line[:1] in "+- " else line
        lines.append("> " + collapsed if collapsed.strip() else ">")
    return "\n".join(lines[:-1]) + "\n"


def main(tree: str) -> None:
    """Write all files."""
    text = (Path(tree) / FILE).read_text()
    stat = f"---\n {FILE} | 8 ++++++++\n 1 file changed\n\n"
    made = {name: diff(text, edited(text, name)) for name in EDITS}
    for name in ("loop", "comment", "broken", "panic"):
        message = mail(f"[PATCH] pipe: {name}", f"A planted change for tests.\n\n{stat}{made[name]}", 1)
        (HERE / f"pipe-{name}.patch").write_text(message)
    quoted = (
        "From: A Reviewer <rev@example.org>\nSubject: Re: [PATCH] pipe: loop\nMIME-Version: 1.0\n"
        "Content-Type: text/plain; charset=utf-8\n\nOn Mon, A Developer wrote:\n> A planted change for tests.\n>\n"
        + mangled(made["loop"]).replace("> @@", "A remark of the reviewer.\n> @@", 1)
        + "\nLooks slow to me.\n"
    )
    (HERE / "pipe-loop-quoted.eml").write_text(quoted)
    states = [text]
    for name in ("comment", "loop", "comment2"):
        states.append(edited(states[-1], name))
    bodies = [diff(old, new) for old, new in itertools.pairwise(states)]
    cover = mail("[PATCH v2 0/3] pipe: three steps", "Cover letter, no diff.\n", 10)
    parts = [mail(f"[PATCH v2 {n}/3] pipe: step {n}", f"Step {n}.\n\n{stat}{bodies[n - 1]}", 10 + n) for n in (3, 1, 2)]
    (HERE / "pipe-series.mbox").write_text(cover + "".join(parts))


if __name__ == "__main__":
    main(sys.argv[1])

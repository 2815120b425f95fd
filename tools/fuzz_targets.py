# SPDX-License-Identifier: GPL-2.0-or-later
"""What reads bytes that others wrote, for a fuzzer: each raises what its docstring declares, or nothing."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

import fuzz_files
from kdelta.attribution import holds, lines, profiles, tracefs
from kdelta.errors import KdeltaError
from kdelta.guest import ktap, protocol
from kdelta.inbox import mails
from kdelta.kernel import apt, btf, config_fragment, cover, diff, elf, image, kallsyms, kconfig, mail, memory, thread
from kdelta.kernel.sources import parse_kernel
from kdelta.lab import hearing
from kdelta.spec import cases, collectors, recipes, sources, workloads

ROOT = Path(__file__).resolve().parents[1]
FOUND = ROOT / "tests" / "data" / "fuzz"  # inputs that once broke a target: TARGET/NAME
DECLARED = (KdeltaError, elf.ElfError, memory.ImageError, btf.BtfError, kallsyms.KallsymsError)
Target = Callable[[bytes], object]


def _text(read: Callable[[str], object]) -> Target:
    return lambda data: read(data.decode("utf-8", "replace"))


def _patches(data: bytes) -> None:
    for step in mail.steps(data, "fuzz.mbox"):
        diff.parse(step)


def _elf(data: bytes) -> None:
    file = elf.parse(data)
    elf.build_id(file)
    elf.has_pvh(file)
    elf.functions(file)


def _kallsyms(data: bytes) -> None:
    for _ in kallsyms.candidates(memory.open_image(data)):
        break


def _serial(data: bytes) -> None:
    said = hearing.apart(data)
    protocol.parse(said.stream)
    prompts = data.count(b"kd1 ")  # a record behind one becomes a line of its own
    assert len(said.stream) + len(said.console) <= len(data) + prompts
    hearing.ended(data), hearing.spoken(data), hearing.sampled(data)


_catalogue = cache(workloads.catalogue)
TARGETS: dict[str, Target] = {
    "records": protocol.parse,
    "counts": profiles.read,
    "holds": holds.read,
    "moves": lines.read,
    "ktap": _text(lambda text: ktap.subtests(text.splitlines())),
    "hist": _text(tracefs.parse_hist),
    "mail": _patches,
    "thread": thread.newest,
    "cover": cover.read,
    "inbox": mails.read,
    "elf": _elf,
    "kallsyms": _kallsyms,
    "btf": btf.parse,
    "image": lambda data: image.unpack("fuzz", data),
    "kconfig": _text(kconfig.facts),
    "fragment": _text(lambda text: config_fragment.parse(text, "fuzz.config")),
    "kernel": _text(parse_kernel),
    "case": _text(lambda text: cases.parse_case(text, _catalogue())),
    "case-source": _text(lambda text: sources.cases_of(text, "fuzz.c")),
    "recipe": _text(lambda text: recipes.parse(text, "fuzz.toml")),
    "collector": _text(lambda text: collectors.parse(text, "fuzz.toml")),
    "deb822": _text(apt.parse_deb822),
    "sources-list": _text(apt.parse_one_line),
    "serial": _serial,
    **fuzz_files.TARGETS,
}
_KTAP = b"TAP version 13\n1..2\nok 1 first # SKIP no device\n    ok 1 inner\nnot ok 2 second # TODO x\n"
_HIST = b"# event histogram\n#\n{ len: 64 } hitcount: 2\n\nTotals:\n    Hits: 2\n    Entries: 1\n    Dropped: 0\n"
_WRITTEN: dict[str, tuple[bytes, ...]] = {
    "records": (b'kd1 0 c5ee9eb6 {"t":"hello","proto":1}\nnoise\n',),
    "counts": (b"KDELTACT" + bytes(64),),
    "holds": (bytes(64),),
    "moves": (bytes(64),),
    "ktap": (_KTAP,),
    "serial": (
        b'login: kd1 0 c5ee9eb6 {"t":"hello","proto":1}\n',
        b'[    0.1] Linux\r\nkd1 0 c5ee9eb6 {"t":"hello","proto":1}\r\nx\r\nkd1 1 0 {"t":"end"}\n',
    ),
    "hist": (_HIST,),
    "elf": (b"\x7fELF\2\1\1" + bytes(9) + b"\2\0\x3e\0\1\0\0\0" + bytes(40),),
    "kallsyms": (b"\x7fELF\2\1\1" + bytes(9) + b"\2\0\x3e\0\1\0\0\0" + bytes(40), bytes(4096)),
    "btf": (b"\x9f\xeb\1\0\x18\0\0\0" + bytes(64),),
    "image": (b"MZ" + bytes(510) + b"HdrS" + bytes(600), b"!<arch>\ndebian-binary", b"\x1f\x8b\x08" + bytes(40)),
    "kconfig": (b"CONFIG_SMP=y\n# CONFIG_NUMA is not set\nCONFIG_HZ=250\n",),
    "fragment": (b"CONFIG_SMP=y\n# CONFIG_NUMA is not set\n",),
    "kernel": (b'a=debian:6.12/cloud,cmdline="quiet",arch=arm64', b"src:.@v6.9+a.patch", b"debian:6.1..7.3"),
    "case": (b"pipe:writers=1|2,message=64K", b"syscalls/poll-*", b"contention/*"),
    "deb822": (b"Types: deb\nURIs: http://deb.example/debian\nSuites: sid\nComponents: main\nSigned-By: /k.gpg\n",),
    "sources-list": (b"deb [arch=amd64 signed-by=/k.gpg] http://deb.example/debian sid main # x\n",),
}
_FILES = {
    **dict.fromkeys(("mail", "thread", "cover", "inbox"), "tests/data/mail/*.*[hlx]"),
    "case-source": "guest/suites/*/*.c",
    "recipe": "recipes/*.toml",
    "collector": "recipes/collectors/*.toml",
    "hist": "tests/data/traces/*6.1.stream",
}
_MOST_BYTES = 1 << 16  # of a seed


def seeds(name: str) -> list[bytes]:
    """Inputs from which a target's others are made, and those that once broke it."""
    written = fuzz_files.seeds(name) if name in fuzz_files.TARGETS else list(_WRITTEN.get(name, ()))
    files = sorted(ROOT.glob(_FILES[name]))[:12] if name in _FILES else []
    found = sorted(path for path in (FOUND / name).glob("*")) if (FOUND / name).is_dir() else []
    return written + [path.read_bytes()[:_MOST_BYTES] for path in (*files, *found)]


def mutated(data: bytes, dice: random.Random) -> bytes:
    """``data`` with one to four small injuries."""
    made = bytearray(data)
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(made) + 1)
        kind = dice.randrange(6)
        if kind == 0 and made:
            made[at - 1] ^= 1 << dice.randrange(8)
        elif kind == 1:
            del made[at : at + dice.randint(1, 64)]
        elif kind == 2:
            made[at:at] = dice.choice((b"\0", b"\xff" * 8, b"\n", b"\r\n", b":", b'"', b"\xe2\x80\xae", b"9" * 20))
        elif kind == 3:
            other = dice.randrange(len(made) + 1)
            made[at:at] = made[other : other + dice.randint(1, 64)]
        elif kind == 4:
            del made[at:]
        else:
            made[at : at + 8] = dice.randbytes(dice.randint(0, 8))
    return bytes(made)


def run(name: str, data: bytes) -> None:
    """One input; what the target declares is no failure."""
    with contextlib.suppress(*DECLARED):
        TARGETS[name](data)

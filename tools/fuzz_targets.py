# SPDX-License-Identifier: GPL-2.0-or-later
"""What reads bytes that others wrote, for a fuzzer: each raises what its docstring declares, or nothing."""

from __future__ import annotations

import contextlib
import random
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import fuzz_files
import fuzz_guest
import fuzz_kernels
import fuzz_mails
import fuzz_pages
from kdelta.errors import KdeltaError
from kdelta.guest import follow
from kdelta.kernel import apt, btf, config_fragment, debver, elf, kallsyms, memory
from kdelta.kernel.sources import parse_kernel
from kdelta.spec import cases, collectors, recipes, sources, workloads

ROOT = Path(__file__).resolve().parents[1]
FOUND = ROOT / "tests" / "data" / "fuzz"  # inputs that once broke a target: TARGET/NAME
DECLARED = (KdeltaError, elf.ElfError, memory.ImageError, btf.BtfError, kallsyms.KallsymsError)
Target = Callable[[bytes], object]


def _text(read: Callable[[str], object]) -> Target:
    return lambda data: read(data.decode("utf-8", "replace"))


def _packages(text: str) -> None:
    found = debver.kernels(text, "x86_64")
    debver.newest(found, "6.12", "cloud")
    debver.sources(text)


def _testcase(text: str) -> None:
    """A file of will-it-scale."""
    sources.kind_of(text), sources.description_of(text), sources.counts_in_inner_loop(text), sources.includes(text)


def _collector(text: str) -> None:
    name = re.search(r'^name = "([^"\n]{1,99})"$', text, re.MULTILINE)  # which must be the file's
    collectors.parse(text, f"{name[1] if name else 'fuzz'}.toml")


@cache
def _few() -> dict[str, workloads.Workload]:
    """Of the catalogue what has knobs, and some cases: an unknown name is compared with each."""
    known = workloads.catalogue()
    kept = [*(name for name in known if known[name].params)][:12]
    return {name: known[name] for name in (*kept, *(name for name in known if name.startswith("syscalls/poll")))}


_OWN: dict[str, Target] = {
    "fragment": _text(lambda text: config_fragment.parse(text, "fuzz.config")),
    "kernel": _text(parse_kernel),
    "case": _text(lambda text: cases.parse_case(text, _few())),
    "case-source": _text(lambda text: sources.cases_of(text, "fuzz.c")),
    "testcase": _text(_testcase),
    "recipe": _text(lambda text: recipes.parse(text, "fuzz.toml")),
    "collector": _text(_collector),
    "deb822": _text(apt.parse_deb822),
    "sources-list": _text(apt.parse_one_line),
    "packages": _text(_packages),
    "strace": _text(lambda text: list(follow.opened(text, ROOT))),
}
_GROUPS = (fuzz_guest, fuzz_mails, fuzz_kernels, fuzz_files, fuzz_pages)
TARGETS: dict[str, Target] = {name: target for group in _GROUPS for name, target in group.TARGETS.items()} | _OWN
_PACKAGE = b"""Package: linux-image-6.12.94+deb13-cloud-amd64
Source: linux-signed-amd64 (6.12.94+1)
Version: 6.12.94-1
Architecture: amd64
Filename: pool/x.deb
Size: 12345678

Package: linux-binary-6.12.95+deb13-amd64
Version: 6.12.95-1~bpo12+1
Size: 99999999

Package: linux-base-6.12.95+deb13-amd64
Version: 6.12.95-1~bpo12+1

Package: linux-source-6.12
Version: 6.12.95-1
Size: 5
"""
_WRITTEN: dict[str, tuple[bytes, ...]] = {
    "fragment": (b"CONFIG_SMP=y\n# CONFIG_NUMA is not set\n",),
    "kernel": (b'a=debian:6.12/cloud,cmdline="quiet",arch=arm64', b"src:.@v6.9+a.patch", b"debian:6.1..7.3"),
    "case": (b"pipe:writers=1|2,message=64K", b"syscalls/poll-*", b"thread_spawn:stack=8M,detached=1|0"),
    "deb822": (b"Types: deb\nURIs: http://deb.example/debian\nSuites: sid\nComponents: main\nSigned-By: /k.gpg\n",),
    "sources-list": (b"deb [arch=amd64 signed-by=/k.gpg] http://deb.example/debian sid main # x\n",),
    "packages": (_PACKAGE,),
    "strace": (
        b'openat(AT_FDCWD</x>, "a\\303\\244.so", O_RDONLY|O_CLOEXEC) = 3</x/a>\nchdir("/y") = 0\n',
        b'stat("b", {st_mode=S_IFREG}) = 0\nreadlink("/proc/self/exe", "/x", 9) = 2\nopen("c"..., O_CREAT) = -1\n',
    ),
}
_FILES = {
    "testcase": "tests/data/wis/*.c",
    "case-source": "guest/suites/*/*.c",
    "recipe": "recipes/*.toml",
    "collector": "recipes/collectors/*.toml",
}
_MOST_BYTES = 1 << 16  # of a seed


def seeds(name: str) -> list[bytes]:
    """Inputs from which a target's others are made, and those that once broke it."""
    of_group: list[bytes] = next((group.seeds(name) for group in _GROUPS if name in group.TARGETS), [])
    files = sorted(ROOT.glob(_FILES[name]))[:12] if name in _FILES else []
    found = sorted(path for path in (FOUND / name).glob("*")) if (FOUND / name).is_dir() else []
    written = [*of_group, *_WRITTEN.get(name, ())]
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

# SPDX-License-Identifier: GPL-2.0-or-later
"""Fuzzing targets for what users, recipes and Debian's archive write: names, cases, sources, lists of packages."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

from kdelta.guest import follow
from kdelta.kernel import apt, config_fragment, debver, kbuild
from kdelta.kernel.sources import parse_kernel
from kdelta.spec import cases, collectors, recipes, sources, workloads

ROOT = Path(__file__).resolve().parents[1]
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


def _kbuild(text: str) -> None:
    """A Kconfig and a Makefile, each at all places where one is looked for."""
    options, _, rules = text.partition("\0")

    def read(path: str) -> str:
        return options if "Kconfig" in path else rules

    kbuild.missing(read, "fs/a/b.c", {"NET": "y"})
    kbuild.needed(read, ("fs/a/Kconfig",), "B", {})


@cache
def _few() -> dict[str, workloads.Workload]:
    """Of the catalogue what has knobs, and some cases: an unknown name is compared with each."""
    known = workloads.catalogue()
    kept = [*(name for name in known if known[name].params)][:12]
    return {name: known[name] for name in (*kept, *(name for name in known if name.startswith("syscalls/poll")))}


TARGETS: dict[str, Target] = {
    "kbuild": _text(_kbuild),
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
_KBUILD = b"""menu "a"
	depends on NET && BLOCK
if A
source "fs/a/Kconfig.b"
config B
	tristate "b" if C
	depends on D || E
	depends on F
	help
		config G is none.
endif
endmenu
\0obj-$(CONFIG_A) += a/
obj-$(CONFIG_B) += b.o \\
	c.o
b-y := d.o
"""
_WRITTEN: dict[str, tuple[bytes, ...]] = {
    "kbuild": (_KBUILD,),
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


def seeds(name: str) -> list[bytes]:
    """Inputs from which a target's others are made."""
    files = sorted(ROOT.glob(_FILES[name]))[:12] if name in _FILES else []
    return [*_WRITTEN.get(name, ()), *(path.read_bytes() for path in files)]

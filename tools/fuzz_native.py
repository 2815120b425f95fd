# SPDX-License-Identifier: GPL-2.0-or-later
"""Fuzzing targets in C: what the guest's program and the plugin read. Each is tools/fuzz_c/NAME.c and what it links.

make fuzz builds them with clang and libFuzzer; make test tries a few hundred inputs of each, built by gcc. Both with
the sanitizers of addresses and of undefined behaviour.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tools" / "fuzz_c"
LINKED = {
    "guest-jobs": ("fuzz_c/jobs.c", "guest/jobs.c"),
    "guest-proc": ("fuzz_c/proc.c", "guest/stream.c", "guest/readfile.c", "guest/trace.c", "guest/harness_outcome.c"),
    "plugin-decode": ("fuzz_c/decode.c", "plugin/decode.c"),
    "plugin-functions": ("fuzz_c/functions.c", "plugin/memory.c"),
    "plugin-entries": ("fuzz_c/entries.c", "plugin/memory.c"),
    "plugin-sites": ("fuzz_c/sites.c", "plugin/memory.c"),
    "plugin-memory": ("fuzz_c/memory.c", "plugin/memory.c", "plugin/table.c"),
}
_KERNEL = b"kdelta-kernel 1\nslab 1000 0 0 40 8 8 10 18 20\ncaller ffffffff81000000 ffffffff81000040\n"
_WRITTEN: dict[str, tuple[bytes, ...]] = {
    "guest-jobs": (
        b"kdelta-jobs 1\nset mode exact\nset seed 7\njob 0 pipe limit_ms=20000 reps=7 ops=16 cgroup=child writers=2\n"
        b"trace probe p:x do_exit\ntrace read trace\njob 1 selftest program=/x pressure=2x60%\nend\n",
        b"kdelta-jobs 1\nset mode timed\nset port ttyS0\nset turns_ms 100\nset settle_ms 1\nset snapshot 1\nend\n",
    ),
    "guest-proc": (
        b"slabinfo - version: 2.1\n# name <active_objs> <num_objs> <objsize>\nkmalloc-64  1200 1280 64 64\n",
        b"MemTotal: 2015864 kB\nSlab:   50624 kB\npgscan_kswapd 12\nallocstall_normal 3\nworkingset_refault_anon 1\n",
        b"ffffffff81000000 T _stext\nffffffff81000040 t x\t[ext4]\nffffffff82000000 B _end\n",
        b"2x60%",
    ),
    "plugin-decode": (
        bytes.fromhex("0f1f8400071d4d4b f348a5 f0480fb10f 48890424 0f05 ff5010 e800000000 c3 66f30f1efa 74fe"),
        bytes.fromhex("c80f5fd6 c0035fd6 1f2003d5 e0074092"),
    ),
    "plugin-functions": (b"kdelta-functions 1\nff81000000 function\nff81000040 part\nff82000000 end\n",),
    "plugin-entries": (b"kdelta-entries 1\ncall ff81000000 0\nirq ff81000040 1\nbirth ff82000000 0\n",),
    "plugin-sites": (
        b"kdelta-hold-sites 2\nask ffffffff81000000 0 0\nacq ffffffff81000005 0 0\nrel ffffffff81000040 0 0\n",
    ),
    "plugin-memory": (_KERNEL + bytes(4096) + bytes(range(256)) * 4, _KERNEL + b"\0" + b"\x20\x10" + bytes(8190)),
}
# NULL + 0, which a loop over lines ends with, is defined from C2y on (WG14 N3322), and does nothing before.
_ALLOWED = "-fno-sanitize=pointer-overflow"
_CHECKED = ("-std=gnu11", "-D_GNU_SOURCE", "-g", "-O1", "-fno-sanitize-recover=all", "-Wall", "-Wextra", "-Werror")


def seeds(name: str) -> list[bytes]:
    """Inputs from which a target's others are made, and those that once broke it."""
    found = (ROOT / "tests" / "data" / "fuzz" / name).glob("*")
    return [*_WRITTEN[name], *(path.read_bytes() for path in sorted(found))]


def _sources(name: str) -> list[str]:
    return [str(ROOT / ("tools" if part.startswith("fuzz_c/") else ".") / part) for part in LINKED[name]]


def build(name: str, program: Path, alone: bool) -> None:
    """The target as a program: libFuzzer's, or one that tries the files it is given (``alone``).

    Raises:
        CalledProcessError: the compiler refuses it, or is not there.
    """
    flags = ["-Wno-unused-function", "-o", str(program), *_sources(name)]
    if alone:
        argv = ["gcc", *_CHECKED, "-fsanitize=address,undefined", _ALLOWED, str(FOLDER / "alone.c"), *flags]
    else:
        argv = ["clang", *_CHECKED, "-fsanitize=fuzzer,address,undefined", _ALLOWED, *flags]
    subprocess.run(argv, check=True)

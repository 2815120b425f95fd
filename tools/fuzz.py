# SPDX-License-Identifier: GPL-2.0-or-later
"""Coverage-guided fuzzing of what reads foreign bytes: ``fuzz.py --minutes N [TARGET...]``, each in its turn.

With ``--inputs N``, a target ends when it had so many inputs since one broke it, and is then left out: later runs go
on where others ended. ``--table FILE`` writes how many each had into a document, and goes on from it where the corpora
are new.

libFuzzer, by atheris or around C (fuzz_native.py), grows a corpus of each target in ``--corpus``; an input that breaks
a target is left there as ``crash-*``, ``timeout-*`` or ``oom-*``: it belongs into tests/data/fuzz/TARGET, where make
test tries it. Exit 1 where there is one.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import fuzz_counts
from marked import written

ONE = "--one"
_HANGS_S = 20
_MEMORY_MB = 3000
# Inputs of one process: atheris keeps some kB of each, 3 GB after 220,000 of symbols, of which none is kdelta's.
_AT_ONCE = 150_000
_RUNS_MOST = (1 << 31) - 1  # libFuzzer's own number is an int


def one(name: str, words: list[str]) -> None:
    """libFuzzer's process for one target; ``words`` are its options and directories."""
    import atheris

    with atheris.instrument_imports(include=["kdelta"]):
        import fuzz_one

        target = fuzz_one.group_of(name).TARGETS[name]
    atheris.Setup([name, *words], lambda data: fuzz_one.run(target, data))
    atheris.Fuzz()


def round_of(
    name: str, corpus: Path, seconds: int, hangs_s: int = _HANGS_S, most: int | None = None
) -> tuple[int, list[Path]]:
    """(inputs tried, those that broke it) of a while of one target, which ends with ``most`` inputs.

    What each process tried is kept as it ends: who is killed loses no more than the last one's.
    """
    import fuzz_native

    tried, end = 0, time.monotonic() + seconds
    at_once = sys.maxsize if name in fuzz_native.LINKED else _AT_ONCE
    while True:
        left = min(at_once, sys.maxsize if most is None else most - tried)
        part, found = _process(name, corpus, max(1, round(end - time.monotonic())), hangs_s, left)
        tried += part
        fuzz_counts.add(corpus, name, part, bool(found))
        if found or time.monotonic() > end - 1 or (most is not None and tried >= most):
            return tried, found


def hung(program: list[str], hangs_s: int, path: Path) -> bool:
    """Whether an input that took too long does again, alone: time on the wall passes for who is stopped, too."""
    done = subprocess.run([*program, f"-timeout={hangs_s}", str(path)], capture_output=True, check=False)
    if not done.returncode:
        path.unlink()
    return bool(done.returncode)


def _process(name: str, corpus: Path, seconds: int, hangs_s: int, most: int) -> tuple[int, list[Path]]:
    """``round_of``, by one process of libFuzzer."""
    import fuzz_native
    import fuzz_targets

    folder, broken = corpus / name, corpus / f"{name}-broken"
    for made in (folder, broken):
        made.mkdir(parents=True, exist_ok=True)
    native = name in fuzz_native.LINKED
    for number, data in enumerate(fuzz_native.seeds(name) if native else fuzz_targets.seeds(name)):
        (folder / f"seed-{number}").write_bytes(data)
    program = [sys.executable, __file__, ONE, name]
    if native:
        fuzz_native.build(name, corpus / f"{name}-program", alone=False)
        program = [str(corpus / f"{name}-program"), "-close_fd_mask=2"]  # what it says of each input it refuses
    hangs = [f"-timeout={hangs_s}", f"-report_slow_units={hangs_s}"]  # by default, 10 s leave a file too
    limits = [f"-max_total_time={seconds}", f"-runs={min(most, _RUNS_MOST)}", f"-rss_limit_mb={_MEMORY_MB}", *hangs]
    options = [str(folder), f"-artifact_prefix={broken}/", "-print_final_stats=1", *limits]
    done = subprocess.run([*program, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    text = done.stdout.decode("utf-8", "replace")
    tried = re.findall(r"stat::number_of_executed_units:\s*(\d+)", text) or re.findall(r"^#(\d+)\t", text, re.MULTILINE)
    left = sorted(broken.iterdir())
    found = [path for path in left if not path.name.startswith("timeout-") or hung(program, hangs_s, path)]
    if done.returncode and not left:
        raise SystemExit(f"fuzz: {name}: {text[-2000:]}")
    if found:
        sys.stdout.write(text[-2000:])
    return int(tried[-1]) if tried else 0, found


def main() -> int:
    if sys.argv[1:2] == [ONE]:
        one(sys.argv[2], sys.argv[3:])
        return 0
    import fuzz_native
    import fuzz_targets

    known = [*fuzz_targets.TARGETS, *fuzz_native.LINKED]
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(known))
    parser.add_argument("--minutes", type=float, default=10.0, help="for all targets together")
    parser.add_argument("--inputs", type=int, help="no more than so many since one broke it")
    parser.add_argument("--table", type=Path, metavar="FILE", help="write what each target had into this document")
    parser.add_argument("--hangs", type=int, default=_HANGS_S, metavar="S", help="an input may take so many seconds")
    parser.add_argument("--corpus", type=Path, default=Path(os.environ.get("TMPDIR", "/tmp")) / "kdelta-fuzz")
    asked = parser.parse_args()
    names = asked.targets or known
    if unknown := set(names) - set(known):
        parser.error(f"no target {min(unknown)!r}; there are {', '.join(known)}")
    if asked.table:
        fuzz_counts.go_on(asked.corpus, asked.table.read_text(encoding="utf-8"))
    left: dict[str, int] = {}
    if asked.inputs is not None:
        had = fuzz_counts.clean(asked.corpus)
        left = {name: more for name in names if (more := asked.inputs - had.get(name, 0)) > 0}
        names = list(left)
    failures = 0
    for name in names:
        seconds = max(1, round(60 * asked.minutes / len(names)))
        tried, found = round_of(name, asked.corpus, seconds, asked.hangs, left.get(name))
        failures += len(found)
        clean = fuzz_counts.clean(asked.corpus)[name]
        broke = f"{len(found)} broke it {' '.join(map(str, found))}".strip()
        sys.stdout.write(f"{name:16} {tried:10} inputs, {broke}; {clean} in a row\n")
        sys.stdout.flush()
    if asked.table:
        made = fuzz_counts.table(fuzz_counts.clean(asked.corpus), fuzz_native.LINKED, fuzz_targets.TARGETS)
        asked.table.write_text(written(asked.table.read_text(encoding="utf-8"), made, "fuzz"), encoding="utf-8")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

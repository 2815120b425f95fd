# SPDX-License-Identifier: GPL-2.0-or-later
"""Completion in real shells: what bash, fish and zsh answer for a line that is half typed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from kdelta.cli import _complete
from kdelta.cli.main import run
from kdelta.kernel import debian
from kdelta.kernel.debver import DebianKernel
from kdelta.store.store import Store
from unit.serve.serve_store import HOSTILE, experiment

BASH = """
source <(kdelta completion bash)
compopt() { :; }
for typed in "$@"; do
    COMP_LINE=$typed COMP_POINT=${#typed} COMPREPLY=()
    _kdelta_completion kdelta
    echo "$typed = ${COMPREPLY[*]}"
done
"""

ZSH = """
compdef() { :; }
told() { local name=${${argv:#-*}[(r)described|plain|open]}; print -r -- "$* = ${(P)name}"; }
compadd() { told "$@"; }
compset() { told "$@"; }
_describe() { told "$@"; }
_path_files() { told "$@"; }
source <(kdelta completion zsh)
for typed in "$@"; do
    words=(kdelta ${(z)typed}) CURRENT=${#words}
    _kdelta_completion
done
"""


def _kernel(upstream: str, flavour: str = "") -> DebianKernel:
    return DebianKernel(
        release=f"{upstream}-amd64",
        upstream=upstream,
        flavour=flavour,
        arch="x86_64",
        package=f"linux-image-{upstream}",
        package_version=f"{upstream}-1",
        size_bytes=1,
    )


@pytest.fixture
def env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A machine whose index has three kernels, and whose store has experiments."""
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("KDELTA_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("KDELTA_STORE", raising=False)
    index = debian.Index(
        kernels=[_kernel("6.12.9"), _kernel("6.12.9", "cloud"), _kernel("7.0.1")], sources=[], read_s=0.0
    )
    folder = tmp_path / "cache" / "apt" / "amd64"
    folder.mkdir(parents=True)
    (folder / "index.json").write_bytes(msgspec.json.encode(index))
    with Store() as store:
        store.create(experiment("first", ("6.12", "7.0"), created_at="2026-05-01T10:00:00+00:00"))
        store.create(experiment("second", (HOSTILE,), created_at="2026-05-02T10:00:00+00:00"))
    program = tmp_path / "bin" / "kdelta"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nfrom kdelta.cli.main import main\nmain()\n")
    program.chmod(0o755)
    return {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}


def test_bash_completes_releases_cases_and_experiments(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "x.deb").touch()
    said = {
        "kdelta comp": "compare completion",
        "kdelta compare debian:6": "6.12 6.12/cloud",  # bash's own cut: after the colon
        f"kdelta compare deb:{tmp_path}/x": f"{tmp_path}/x.deb",
        "kdelta run --case pipe:writers=2,p": "2,pipe_bytes= 2,pattern=",
        "kdelta run --case=pipe:mode=t": "threads",
        "kdelta why first path_l": "",  # this experiment has no such case
        'kdelta compare "nothing': "",
    }
    done = subprocess.run(["bash", "-c", BASH, "bash", *said], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"{typed} = {words}" for typed, words in said.items()]
    assert not done.stderr


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("compare 7", "7.0"),
        ("compare src:debian:", "6.12 7.0"),
        ("history pid", "pidfd_open"),
        ("history ta", "tag"),
        ("run --case pipe:pattern=mix,mo", "mix,mode="),
        ("run --case pipe:mode=threads,mo", ""),  # given already
        ("why first pid", "pidfd_open"),
        ("why pid", "pidfd_open"),  # of the last experiment
        ("report la", "last"),
        ("report firs", "first"),
        ("report last --format ht", "html"),
        ("compare --why locks,st", "locks,stacks"),
        ("trace --what locks,al", "locks,allocs"),
        ("trace --what locks,lo", ""),  # said already
        ("run --suite sy", "syscalls"),
        ("compare src:FOLDER/", "FOLDER/bin/ FOLDER/cache/ FOLDER/state/"),  # no tree is a file
    ],
)
@pytest.mark.usefixtures("env")
def test_what_completes_a_word(
    typed: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.deb").touch()
    monkeypatch.setenv(_complete.ASKED, "bash_complete")  # as the function of bash asks: cuts of its COMP_WORDBREAKS
    monkeypatch.setenv("COMP_CUTS", "=:")
    monkeypatch.setenv("COMP_TYPED", f"kdelta {typed}".replace("FOLDER", str(tmp_path)))
    with pytest.raises(SystemExit) as ended:  # click's way
        run([])
    offered = [line.partition(",")[2] for line in capsys.readouterr().out.splitlines() if line]
    assert (ended.value.code, " ".join(offered)) == (0, words.replace("FOLDER", str(tmp_path)))


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish here: apt-get install fish")
def test_fish_completes_with_what_each_word_is(env: dict[str, str]) -> None:
    asked = """
        kdelta completion fish | source
        complete -C 'kdelta compare debian:7'
        complete -C 'kdelta history pip'
        complete -C 'kdelta report '
        complete -C 'kdelta report --ou'
        complete -C 'kdelta report last --format=ht'
        complete -C 'kdelta run --case pipe:mode=thr'
        complete -C 'kdelta review /usr/bin/en'
        complete -C 'kdelta report last --output=/usr/bin/en'
    """
    done = subprocess.run(["fish", "-N", "-c", asked], env=env, capture_output=True, text=True, check=True)
    release, case, first, last, second, output, html, mode, *files = done.stdout.splitlines()
    assert (release, case) == ("debian:7.0", "pipe\tWriters and readers on one pipe")
    assert last == "last\tthe newest experiment" and first == "first\tcompare: 6.12 7.0"
    assert second.startswith("second\tcompare: <script>") and second.isprintable() is False  # one line, one tab
    assert second.replace("\t", "").isprintable()
    assert output.startswith("--output\t") and ", as in result.html" in output  # what stood behind a comma was lost
    assert html == "--format=html\tone self-contained page with charts"
    assert mode == "pipe:mode=threads"
    assert {"/usr/bin/env", "--output=/usr/bin/env"} <= {file.partition("\t")[0] for file in files}


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh here: apt-get install zsh")
def test_zsh_keeps_the_option_before_a_value_and_adds_no_blank_to_what_goes_on(
    env: dict[str, str], tmp_path: Path
) -> None:
    typed = [
        "report last --format=ht",
        "compare debian:7",
        "compare rp",
        f"compare deb:{tmp_path}/b",
        "history ta",
        "run --case=pipe:wr",
        "review /x",
    ]
    done = subprocess.run(["zsh", "-f", "-c", ZSH, "zsh", *typed], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "-V unsorted described -U = --format=html:one self-contained page with charts",
        "-U -V unsorted -a plain = debian:7.0",
        "-U -S  -V open -a open = rpm:",
        f"-U -S  -V open -a open = deb:{tmp_path}/bin/",
        "-V unsorted described -U = tag:Tag an EXPERIMENT.",
        "-U -S  -V open -a open = --case=pipe:writers=",
        "-P -*= = ",
        "-f = ",
    ]


def test_a_damaged_store_offers_nothing_and_says_nothing(
    env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "state" / "kdelta.sqlite").write_bytes(b"no database" * 100)
    monkeypatch.setenv(_complete.ASKED, "bash_complete")
    monkeypatch.setenv("COMP_TYPED", "kdelta report 2026")
    with pytest.raises(SystemExit) as ended:  # click's way
        run([])
    assert ended.value.code == 0 and capsys.readouterr() == ("\n", "")

# SPDX-License-Identifier: GPL-2.0-or-later
"""First commands, typed from memory: each is done, or answered in one line that says what to type instead."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from kdelta.cli import _show, history
from kdelta.cli.main import run
from kdelta.model.plans import Plan
from kdelta.report import registry
from kdelta.store.store import Store
from unit.serve.serve_store import boot, experiment

# The first word of the answer's remedy, by what was typed; nothing here may need a network, a guest or the store.
ANSWERED = {
    "6.12 7.0": "kdelta compare 6.12 7.0",
    "debian:6.12": "kdelta run --kernel debian:6.12",
    "diff a b": "'compare'",
    "bench": "'run'",
    "show last": "'report'",
    "status": "'history'",
    "delete last": "'history delete'",
    "explain last": "'why'",
    "ui": "'serve'",
    "download 6.12": "'kernels'",
    "comapre a b": "'compare'",
    "compare": "kdelta compare debian:6.12 debian:7.0",
    "compare 6.12": "two kernels",
    "compare debian 6.12": "debian:6.12",
    "compare linux-6.12 debian:7.0": "debian:6.12",
    "compare debian:6.12 debian:7.0 pipe": "--case pipe",
    "compare debian:6.12 debian:7.0 syscalls": "--suite syscalls",
    "compare debian:6.12 debian:7.0 --case nope": "kdelta cases list",
    "cases show ./mine/pingpong.c": "kdelta cases list --workloads mine",
    "compare debian:6.12 debian:7.0 --cases pipe": "--case",
    "compare debian:6.12 debian:6.12+my.patch": "src:debian:6.12+my.patch",
    "compare src:6.12 src:7.0": "src:debian:6.12",
    "compare 6.12 7.0 --json --format html": "exclude each other",
    "compare src:a src:a+b.mbox --timed --exact --each": "give one of --timed and --exact",
    "run pipe": "--case pipe",
    "run --smp 4": "about guests",
    "run debian:6.12 --kernel debian:7.0": "one kernel",
    "run debian:6.12 debian:7.0": "kdelta run",
    "run --exact": "--kernel debian:6.12",
    "sweep": "debian:6.1..7.3",
    "bisect": "kdelta bisect src:",
    "bisect v6.8 v6.9 --case pipe": "src:.@v6.9",
    "scale": "kdelta scale debian:6.12",
    "trace debian:6.12": "--what locks",
    "leaks": "kdelta leaks debian:6.12",
    "reach": "kdelta reach",
    "review": "kdelta review series.mbox",
    "review x.mbox": "--tree",
    "check": "kdelta check --list",
    "check nope": "pidfs",
    "calibrate": "kdelta calibrate debian:6.12",
    "cases nope": "kdelta cases list",
    "cases pip": "did you mean pipe",
    "kernels nope": "debian:6.12",
    "report": "kdelta compare",
    "report last --html": "--format html",
    "why": "kdelta compare",
    "findings": "no sweep is stored yet; kdelta sweep",
    "resume": "kdelta compare",
    "export": "kdelta export",
    "import": "kdelta import",
    "import nope.kdelta": "nope.kdelta",
    "history nope": "kdelta compare",
    "compare --nonsense": "kdelta compare --help",
    "run --case pipe --nonsense": "no option --nonsense (see kdelta run --help)",
    "compare debian:6.12 debian:7.0 --cpus 4": "--smp",
    "compare debian:6.12 debian:7.0 -n 10": "--seeds or --blocks",
    "compare debian:6.12 debian:7.0 --threads 4": "did you mean --smp?",
    "run debian:6.12 --seeds 2": "did you mean --boots?",
    "compare debian:6.12 debian:7.0 --arch arm64": "debian:6.12,arch=arm64",
    "compare debian:6.12 debian:7.0 --config x": "src:./linux,config=FILE",
    "compare debian:6.12 debian:7.0 --cmdline quiet": "debian:6.12,cmdline=",
    "exec ls": "did you mean 'run'?",
    "record": "did you mean 'run'?",
    "compare debian:6.12 debian:7.0 --workload pipe": "--case",
    "compare debian:6.12 debian:7.0 --case PIPE": "did you mean pipe",
    "compare debian:6.12 debian:7.0 --format jsn": "did you mean json?",
    "serve 8080": "--port 8080",
    "export last out.kdelta": "-o out.kdelta",
    "report last getppid": "kdelta why last getppid",
    "report last last": "did you mean --against last?",
    "report last last~1": "did you mean --against last~1?",
    "run --case pipe --param writers=4": "--case pipe:writers=4",
    "post": "Missing command; as in: kdelta post patchwork",
    "cases PIPE": "did you mean pipe",
    "cases list syscal": "did you mean syscalls",
    "compare debian:6.12 debian:7.0 --case pipe,fork_vmas": "--case pipe --case fork_vmas",
    "compare debian:6.12 debian:7.0 -j4": "counts take all CPUs",
    "compare debian:6.12 debian:7.0 --jobs 4": "counts take all CPUs",
    "compare debian:6.12 debian:7.0 -v": "progress is shown",
    "compare debian:6.12 debian:7.0 --memory 512T": "as in 2048 (MiB) or 4G",
    "compare debian:6.12 debian:7.0 --memory 1M": "as in 2048 (MiB) or 4G",
    "reach debian:6.12 --memory lots": "as in 2048 (MiB) or 4G",
    "boot debian:6.12": "'run'",
    "flame last": "'why'",
    "help nosuch": "no command 'nosuch'",
    "compare HEAD~1 HEAD": "a commit is named with its tree, as in src:.@HEAD~1",
    "compare master 610dbbea2f59": "src:.@master",
    "compare ./@v6.12 ./@v6.18": "did you mean src:./@v6.12?",
    "compare 6.12 7.0 --warmup 3": "warms up by itself",
    "compare 6.1/cloud 6.12/cloud": "did you mean debian:6.1/cloud?",
    "compare debian:6.12 debian:6.12+https://lore.kernel.org/x/": "src:debian:6.12+https://lore.kernel.org/x/",
    "compare src:debian:6.12 src:debian:6.12+https://lore.kernel.org/x/": "save it, as b4 am does",
    "review https://lore.kernel.org/linux-mm/1.2-a@b.c/raw": "b4 am -o - 1.2-a@b.c | kdelta review - --tree",
    "review <1.2-a@b.c>": "b4 am -o - 1.2-a@b.c | kdelta review - --tree",
    "review https://patchwork.kernel.org/patch/123/": "b4 am -o - MESSAGE-ID | kdelta review - --tree",
    "review v6.12..me@home --tree .": "no commit 'v6.12'",
    "review x.mbox --tree . --case pipe": "kdelta compare takes --case",
    "bisect src:.@v6.12..v6.18 --case pipe": "kdelta bisect src:.@v6.12 src:.@v6.18",
    "bisect v6.12..v6.18 --case pipe": "kdelta bisect src:.@v6.12 src:.@v6.18",
    "bisect debian:6.1 debian:6.12 --case pipe": "kdelta sweep debian:6.1 debian:6.12",
    "reach pipe_write": "kdelta reach debian:6.12 pipe_write",
    "run true": "put -- before it, as in -- true",
    "compare true": "put -- before it, as in -- true",
    "compare --list": "kdelta cases list has the cases",
    "delete x": "'history delete'",
    "am x.mbox": "did you mean 'review'?",
    "update": "kdelta kernels fetch gets a kernel",
    "man compare": "kdelta COMMAND --help",
    "init": "kdelta doctor",
    "cancel": "kdelta fleet --cancel EXPERIMENT",
    "stop last": "Ctrl-C ends a command and kdelta resume goes on",
    "config": "src:./linux,config=FILE",
    "plot last": "kdelta report last --format html -o report.html",
    "graph": "kdelta report last --format html -o report.html",
    "annotate vfs_read": "did you mean 'code'?",
    "ps": "did you mean 'history'?",
    "compare debian:6.12 debian:7.0 --quick": "--case pidfd_open",
    "compare debian:6.12 debian:7.0 --debug": "kdelta report last --console",
    "compare debian:6.12 debian:7.0 --seconds 5": "--limit 60s; of all there is to do, --time-budget 5m",
    "scale debian:6.12 --duration=5": "--limit 60s",
    "scale debian:6.12 --smp 3,9": "--exact --cpus 3,9, or in time --tasks 3,9 --smp 9",
    "compare debian:6.12 debian:7.0 --smp 1,2": "kdelta scale --exact KERNEL --cpus",
    "compare debian:6.12 debian:7.0 --seeds 5,8": "it takes one number",
    "-v compare debian:6.12 debian:7.0": "no option -v: progress is shown without one",
    "--verbose doctor": "no option --verbose",
    "why last pipe -v": "no option -v",
    "trace debian:6.12 --what holds": "one of allocs, locks, sizes, syscalls, wakeups, hold; did you mean hold?",
    "compare debian:6.12 debian:7.0 --qemu ./qemu": "QEMU ./qemu: no such program",
    "sweep --refs v6.8..v6.9 --tree /": "not a git repository, so it has no tags; name one with --tree",
    "sweep --refs v6.8.. --tree ./linux": "src:./linux: no such tree",
    "watch /etc/passwd --tree debian:6.12": "it holds no mail",
    "compare --base debian:6.12 debian:7.0": "as in kdelta compare debian:6.12 debian:7.0",
    "compare debian:6.12 --patch x.patch": "src:./linux+fix.patch",
    "compare debian:6.12 debian:7.0 --command ls": "behind --, as in -- ls -l",
    "compare debian:6.12 debian:7.0 /bin/ls -l": "as in -- /bin/ls -l",
    "compare debian:6.12 debian:7.0 ls -l": "as in -- ls -l",
    "compare debian:6.12 debian:7.0 --alpha 0.01": "docs/methodology.md",
    "serve --prot 80": "did you mean --port?",
    "compare debian:6.12 debian:7.0 --zzz 4": "there is no option --zzz (see kdelta compare --help)",
    "review x.mbox --base debian:6.12": "did you mean --tree?",
    "check pidfs --kernel debian:6.12": "did you mean --patched?",
    "bisect --good v6.1 --bad v6.2": "both ends stand first",
    "why last --flamegraph": "--format html",
    "serve --bind 0.0.0.0": "did you mean --host?",
    "publish --output site": "kdelta publish site/",
    "compare latest stable": "kdelta kernels list --available",
    "compare HEAD~1..HEAD debian:7.0": "src:.@HEAD~1 src:.@HEAD",
    "compare debian:6.12 debian:7.0 --json out.json": "-o out.json",
    "compare git@github.com:torvalds/linux.git debian:7.0": "clone a repository",
    "compare debian:6.12 vs debian:7.0": "leave out 'vs'",
    "compare debian: debian:7.0": "it is written debian:VERSION",
    "bisect debian:6.12..7.0 --case pipe": "kdelta sweep 'debian:6.12..7.0'",
    "bisect v6.12.. --case pipe": "kdelta bisect src:.@v6.12 src:.@HEAD",
    "review 1.patch 2.patch --tree .": "cat *.patch | kdelta review -",
    "review . --tree .": "cat ./*.patch | kdelta review -",
    "post last": "as in: kdelta post patchwork",
    "ls-files": "no command 'ls-files' (see",
    "sh -c true": "kdelta run -- sh -c true",
    "kernels rm debian:6.12": "kdelta kernels prune --only",
    "cases list --suite syscalls": "kdelta cases syscalls",
    "watch https://lore.kernel.org/linux-mm --tree .": "clone it with git",
}
# Options that would do nothing there, each with the line that it stands in.
IDLE = {
    "--blocks": "compare debian:6.12 debian:7.0 --exact --blocks 5",
    "--max-blocks": "compare debian:6.12 debian:7.0 --exact --max-blocks 12",
    "--precision": "compare debian:6.12 debian:7.0 --kvm off --precision 1%",
    "--precision ": "compare debian:6.12 debian:7.0 --timed --blocks 8 --precision 1%",
    "--seeds": "compare debian:6.12 debian:7.0 --timed --seeds 5",
    "--repetitions": "compare debian:6.12 debian:7.0 --pressure 2x60% --repetitions 2",
    "--rep-features": "compare debian:6.12 debian:7.0 --timed --rep-features",
    "--turn": "compare debian:6.12 debian:7.0 --exact --turn 400",
    "--turn ": "compare debian:6.12 debian:7.0 --timed --smp 2 --turn 400",
    "--kvm": "compare debian:6.12 debian:7.0 --exact --kvm on",
    "--all": "compare debian:6.12 debian:7.0 --all",
    "--cold": "compare debian:6.12 debian:7.0 --cold",
    "--memory": "run --memory 2048",
    "--turn  ": "run debian:6.12 --timed --smp 2 --turn 400",
    "--blocks ": "sweep 6.1..7.3 --blocks 8",
    "--fresh": "sweep 6.1..7.3 --timed --fresh",
    "--tree": "sweep 6.1..7.3 --tree ./linux",
    "--smp": "sweep --add last --smp 2",
    "--seeds ": "bisect src:.@a src:.@b --case pipe --timed --seeds 8",
    "--max-boots": "bisect src:.@a src:.@b --case pipe --max-boots 50",
    "--timed": "bisect --resume last --timed",
    "--suite": "scale debian:6.12 --suite syscalls",
    "--blocks  ": "calibrate --resume last --blocks 24",
    "--turn   ": "calibrate debian:6.12 --turn 400",
    "--turn    ": "leaks debian:6.12 --turn 400",
    "--seed": "trace debian:6.12 --what locks --seed 3",
    "--blocks   ": "check pidfs --exact --blocks 9",
    "--seeds  ": "check --list --seeds 9",
    "--format": "report last --console 0.0 --format html",
    "--side": "why last pipe --side baseline",
    "--limit": "history pipe --limit 3",
    "--arch": "kernels list --arch arm64",
}


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache and store, and a folder without files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("KDELTA_STATE", str(tmp_path / "state"))


def refused(words: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words.split()) == 1
    said = capsys.readouterr()
    lines = [line for line in said.err.splitlines() if ": taken as " not in line]
    assert len(lines) == 1 and lines[0].startswith("kdelta: ") and told in lines[0], said


@pytest.mark.parametrize("words", ANSWERED)
def test_a_first_command_is_answered_with_what_to_type(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    refused(words, ANSWERED[words], capsys)


@pytest.mark.parametrize("option", IDLE)
def test_an_option_that_would_do_nothing_is_refused(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    refused(IDLE[option], option.strip(), capsys)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("", "Usage: kdelta"),
        ("help", "Usage: kdelta"),
        ("help compare", "Usage: kdelta compare"),
        ("-h compare", "Usage: kdelta compare"),
        ("?", "Usage: kdelta"),
        ("help history tag", "Usage: kdelta history tag"),
        ("version", "kdelta, version"),
        ("-V", "kdelta, version"),
        ("list", "No experiment yet"),
        ("ls", "No experiment yet"),
        ("history list", "No experiment yet"),
        ("list cases", "fork_vmas"),
        ("list kernels", "no kernels in"),
        ("list recipes", "pidfs"),
        ("cases", "fork_vmas"),
        ("cases pipe", "Writers and readers on one pipe"),
        ("cases syscalls", "syscalls/getpid "),
        ("cases syscalls --json", '"suite": "syscalls"'),
        ("cases list syscalls", "syscalls/getpid "),
        ("help help", "Usage: kdelta"),
        ("help list", "Usage: kdelta history"),
        ("kernels", "no kernels in"),
    ],
)
def test_words_that_other_programs_know_work(words: str, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words.split()) == 0
    assert shown in capsys.readouterr().out


def test_a_version_alone_is_taken_and_said_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", "v6.12", "v6.12", "--case", "nope"]) == 1  # once, though it is named twice
    first, _ = capsys.readouterr().err.splitlines()
    assert first == "v6.12: taken as debian:6.12 (a tag of a git tree is src:TREE@v6.12)"


def test_a_package_alone_is_taken_and_said_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", "./linux-image.deb", "old=x.deb,arch=arm64", "--case", "nope"]) == 1
    first, second, _ = capsys.readouterr().err.splitlines()
    assert first == "./linux-image.deb: taken as deb:./linux-image.deb"
    assert second == 'old=x.deb,arch=arm64: taken as old=deb:x.deb,arch="arm64"'


@pytest.mark.parametrize("name", ["md", "txt", "markdown"])
def test_a_format_is_found_by_what_else_it_is_called(name: str) -> None:
    assert registry.find(name).name == {"txt": "terminal"}.get(name, "markdown")


def test_why_of_a_case_alone_is_of_the_last_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    with Store() as store:
        store.create(experiment("20260101-000000-0000", ("6.12", "7.0")))
        for slot in range(2):
            store.save_boot("20260101-000000-0000", boot(0, slot))
    assert run(["why", "pidfd_open"]) == 0
    assert capsys.readouterr().out.startswith("pidfd_open: 6.12 -> 7.0")
    refused("why nope", "'nope' is not in the store", capsys)


def stored(*names: str) -> None:
    with Store() as store:
        for hour, name in enumerate(names):
            store.create(experiment(name, ("6.12", "7.0"), created_at=f"2026-05-01T1{hour}:00:00+00:00"))
            for slot in range(2):
                store.save_boot(name, boot(0, slot))


def test_the_experiment_before_the_last_has_a_name_too(capsys: pytest.CaptureFixture[str]) -> None:
    stored("20260101-100000-aaaa", "20260101-110000-bbbb")
    for name, id_ in (("last", "110000-bbbb"), ("last~0", "110000-bbbb"), ("last~1", "100000-aaaa")):
        assert run(["report", name]) == 0
        assert f"experiment 20260101-{id_}," in capsys.readouterr().out
    refused("report last~2", "so many are not in the store", capsys)
    refused("report latest", "did you mean last?", capsys)


def test_a_case_and_an_experiment_in_each_others_place_are_answered(capsys: pytest.CaptureFixture[str]) -> None:
    stored("20260101-100000-aaaa")
    refused("report pidfd_open", "kdelta why last pidfd_open", capsys)
    refused("history last", "kdelta report 20260101-100000-aaaa", capsys)
    refused("history 20260101-100000-aaaa", "kdelta report 20260101-100000-aaaa", capsys)
    refused("history PIDFD_OPEN", "did you mean 'pidfd_open'?", capsys)
    refused("history pidfd_open --metric instuctions", "has no metric 'instuctions'; it has instructions", capsys)
    assert run(["history", "rm", "last", "--yes"]) == 0


def test_a_list_that_a_filter_leaves_empty_does_not_call_the_store_so(capsys: pytest.CaptureFixture[str]) -> None:
    stored("20260101-100000-aaaa")
    for words, told in (("--tag x", "with the tag x"), ("--kind scale --tag x", "of kind scale with the tag x")):
        assert run(["history", *words.split()]) == 0
        assert capsys.readouterr().out == f"No experiment {told}; kdelta history lists all.\n"
    refused("history --kind nope", "'nope' is not one of 'compare', 'run', 'sweep'", capsys)
    assert set(history.KINDS) == {kind.__struct_config__.tag for kind in get_args(Plan)}


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("a.html", "<!doctype html>"),
        ("a.json", "{"),
        ("a.md", "**"),
        ("a.CSV", "record,"),
        ("a.txt", "So far: "),
        ("a", "So far: "),
    ],
)
def test_a_report_is_written_in_the_format_that_its_name_says(name: str, begins: str) -> None:
    stored("20260101-100000-aaaa")
    assert run(["report", "last", "-o", name]) == 0
    assert Path(name).read_text(encoding="utf-8").startswith(begins)
    assert run(["report", "last", "-o", name, "--format", "html"]) == 0
    assert Path(name).read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("setting", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_no_color_is_honoured(setting: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in setting.items():
        monkeypatch.setenv(name, value)
    assert _show._coloured() == coloured


@pytest.mark.parametrize(
    ("command", "default"),
    [("compare", "[default: patches]"), ("reach", "[default: all suites]"), ("leaks", "for leaks]"), ("bisect", "")],
)
def test_help_says_which_cases_run_without_a_suite(
    command: str, default: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """That of reach named the suite of patches, and mapped all of them; bisect takes none at all."""
    assert run([command, "--help"]) == 0
    told = " ".join(capsys.readouterr().out.split()).partition("--suite SUITE")[2].partition("--workloads")[0].strip()
    assert told.endswith(default or "repeatable.")

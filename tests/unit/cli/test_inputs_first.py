# SPDX-License-Identifier: GPL-2.0-or-later
"""What a user got wrong is told before anything is downloaded, unpacked, built or booted, by every subcommand.

No program but git can be run here, and the cache is empty: whoever begins his work before he has read his inputs ends
with another exit code, or leaves something behind.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from kdelta.cli.main import _modules, program, run
from kdelta.machine import probe

CASE = ("--case", "pipe")
# Subcommands that take kernels, with the kernel that is tried last.
KERNELS = {
    "compare": ("compare", "debian:6.12", "{}"),
    "compare of three": ("compare", "debian:6.12", "debian:7.0", "{}", "--timed", *CASE),
    "compare --each": ("compare", "src:debian:6.12", "{}", "--each"),
    "compare --selftests": ("compare", "src:debian:6.12", "{}", "--selftests", "pidfd"),
    "run": ("run", "--kernel", "{}"),
    "sweep": ("sweep", "debian:6.12", "{}"),
    "sweep of a range": ("sweep", "debian:6.1..7.3", "{}"),
    "bisect-step": ("bisect-step", "{}", *CASE, "--good", "1", "--bad", "2"),
    "calibrate": ("calibrate", "{}"),
    "leaks": ("leaks", "debian:6.12", "{}"),
    "scale": ("scale", "debian:6.12", "{}"),
    "scale --exact": ("scale", "--exact", "debian:6.12", "{}"),
    "trace": ("trace", "debian:6.12", "{}", "--what", "locks"),
    "code": ("code", "debian:6.12", "{}"),
    "reach": ("reach", "{}"),
    "check": ("check", "pidfs", "--baseline", "debian:6.12", "--patched", "{}"),
    "kernels fetch": ("kernels", "fetch", "debian:6.12", "{}"),
    "kernels show": ("kernels", "show", "{}"),
}
HUNK = "--- a/fs/a.c\n+++ b/fs/a.c\n@@ -1,3 +1,4 @@\n one\n two\n+more\n three\n"
FILES = {
    "no.patch": "Dear all,\n\nI have nothing to add.\n",
    "cut.patch": HUNK.replace("+1,4", "+1,9"),
    "path.patch": HUNK.replace("b/fs/a.c", "b/../../etc/passwd"),
    "binary.patch": "diff --git a/x b/x\nBinary files a/x and b/x differ\n@@ -1 +1 @@\n",
    "no.toml": "= = =",
    "tree/README": "no kernel",
    "empty": "",
    "wrong.config": "CONFIG_FOO maybe\n",
}
BAD = {
    "a patch that is not there": ("src:debian:6.12+{}/missing.patch", "missing.patch"),
    "a patch taken out that is not there": ("src:debian:6.12-{}/missing.patch", "missing.patch"),
    "a patch without a diff": ("src:debian:6.12+{}/no.patch", "no.patch: no diff"),
    "a patch that was cut off": ("src:debian:6.12+{}/cut.patch", "cut off in hunk 1 of fs/a.c"),
    "a patch of a path outside": ("src:debian:6.12+{}/path.patch", "outside the kernel tree"),
    "a directory as a patch": ("src:debian:6.12+{}/tree", "not a regular file"),
    "a tree that is not there": ("src:{}/missing", "missing"),
    "a tree that is none": ("src:{}/tree", "tree"),
    "a ref without git": ("src:{}/tree@v6.12", "tree"),
    "a fragment that is not there": ("src:debian:6.12,config={}/missing.config", "missing.config"),
    "a fragment that is none": ("src:debian:6.12,config={}/wrong.config", "wrong.config"),
    "an image that is not there": ("{}/missing", "missing"),
    "a directory as an image": ("{}/tree", "directory"),
    "a text as an image": ("{}/no.toml", "not a kernel image"),
    "an empty file as an image": ("{}/empty", "not a kernel image"),
    "a package that is not there": ("deb:{}/missing.deb", "missing.deb"),
    "an RPM that is not there": ("rpm:{}/missing.rpm", "missing.rpm"),
    "an RPM that is none": ("rpm:{}/no.patch", "not an RPM package"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").symlink_to(shutil.which("git") or "/usr/bin/git")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("KDELTA_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def refused(words: list[str], folder: Path, capsys: pytest.CaptureFixture[str], wanted: str) -> None:
    before = sorted(path for path in folder.rglob("*") if "state" not in path.parts)
    code = run(words)
    said = capsys.readouterr()
    lines = [line for line in said.err.splitlines() if line.strip()]
    assert code == (128 if words[0] == "bisect-step" else 1), said  # 128 ends git bisect run
    assert len(lines) == 1 and lines[0].startswith("kdelta: ") and wanted in lines[0], said
    assert sorted(path for path in folder.rglob("*") if "state" not in path.parts) == before


@pytest.mark.parametrize("what", BAD)
@pytest.mark.parametrize("command", KERNELS)
def test_a_kernel_that_cannot_be_is_refused_first(
    command: str, what: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel, wanted = BAD[what]
    if command == "compare --each" and not ({"+", "-"} & {*kernel.removeprefix("src:debian:6.12")[:1]}):
        wanted = "--each"
    if command == "compare --selftests" and not kernel.startswith("src:"):
        wanted = "--selftests"
    refused([word.format(kernel.format(folder)) for word in KERNELS[command]], folder, capsys, wanted)


COMPARED = [name for name, words in KERNELS.items() if "debian:6.12" in words and name not in ("code", "kernels fetch")]


@pytest.mark.parametrize("command", COMPARED)
def test_kernels_of_two_architectures_are_refused_first(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word.format("debian:7.0,arch=arm64") for word in KERNELS[command]]
    refused(words, folder, capsys, "debian:6.12 is x86_64, debian:7.0,arch=arm64 arm64")


@pytest.mark.parametrize("what", [what for what, (kernel, _) in BAD.items() if kernel.startswith("src:{}")])
def test_bisect_reads_its_tree_first(what: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel, wanted = BAD[what]
    tree = kernel.format(folder).partition("@")[0]
    refused(["bisect", f"{tree}@v6.11", f"{tree}@v6.12", *CASE], folder, capsys, wanted)


def _repository(tree: Path) -> Path:
    """A kernel's tree with two releases."""
    (tree / "fs").mkdir(parents=True)
    (tree / "Kconfig").write_text("")
    git = ["git", "-C", str(tree), "-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "maintenance.auto=false"]
    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    for minor in (11, 12):
        (tree / "Makefile").write_text(f"VERSION = 6\nPATCHLEVEL = {minor}\nSUBLEVEL = 0\nEXTRAVERSION =\n")
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-q", "-m", f"Linux 6.{minor}"], check=True)
        subprocess.run([*git, "tag", f"v6.{minor}"], check=True)
    return tree


@pytest.mark.parametrize("what", [what for what, (kernel, _) in BAD.items() if "+" in kernel or "config=" in kernel])
def test_bisect_reads_patches_and_config_before_it_builds(
    what: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = _repository(folder / "linux")
    kernel, wanted = BAD[what]
    named = kernel.format(folder).replace("src:debian:6.12", f"src:{tree}@{{}}")
    refused(["bisect", named.format("v6.11"), named.format("v6.12"), *CASE], folder, capsys, wanted)


def _outputs() -> list[list[str]]:
    """Every subcommand with -o, on a line that would be right without it."""
    lines = {
        **{words[0]: [word.format("debian:7.0") for word in words] for words in KERNELS.values()},
        "resume": ["resume", "last"],
        "report": ["report", "last"],
        "export": ["export", "last"],
        "findings": ["findings"],
        "why": ["why", "last", "pipe"],
        "review": ["review", "series.mbox", "--tree", "debian:6.12"],
    }
    found = []
    for name in sorted(_modules()):
        command = program.get_command(click.Context(program), name)
        assert command is not None
        if any(param.name == "output" for param in command.params):
            found.append(lines[name])
    return found


@pytest.mark.parametrize("words", _outputs(), ids=lambda words: words[0])
@pytest.mark.parametrize("where", ["nowhere/report", "empty/report", "tree", "x" * 300, "link"])
def test_an_output_that_cannot_be_written_is_refused_first(
    words: list[str], where: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "link").symlink_to("nowhere/report")
    refused([*words, "-o", str(folder / where)], folder, capsys, where)


@pytest.mark.parametrize(
    "words", [words for words in _outputs() if words[0] in ("compare", "run", "sweep", "resume", "report")]
)
def test_an_unknown_format_is_refused_first(words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused([*words, "--format", "pdf"], folder, capsys, "pdf")
    if words[0] in ("compare", "run", "sweep") and "--selftests" not in words:
        refused([*words, "-o", str(folder / "report.pdf")], folder, capsys, "no report is .pdf")  # text stood in it
    if words[0] == "report":
        refused([*words, "--format", "pdf", "--console", "0.0"], folder, capsys, "pdf")


@pytest.mark.parametrize("command", ["compare", "run", "sweep"])
def test_more_cpus_than_are_counted_are_refused_first(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word.format("debian:7.0") for word in KERNELS[command]]
    exact = () if command == "sweep" else ("--exact",)
    refused([*words, *exact, "--smp", "65", *CASE], folder, capsys, "counts up to 64 CPUs")


@pytest.mark.parametrize("command", ["compare", "run", "sweep"])
def test_several_cpus_that_are_not_counted_are_refused_first(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word.format("new=debian:7.0,arch=arm64") for word in KERNELS[command]]
    exact = () if command == "sweep" else ("--exact",)
    refused([*words, *exact, "--smp", "2", *CASE], folder, capsys, "and new is arm64")


def test_looking_at_an_output_leaves_it_as_it_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (old := folder / "old").write_text("an older report")
    (link := folder / "link").symlink_to("later")
    os.utime(old, (1, 1))
    for path in (old, link, folder / "new"):
        refused(["report", "nothing", "-o", str(path)], folder, capsys, "nothing")
    assert old.read_text() == "an older report" and old.stat().st_mtime == 1
    assert link.is_symlink() and not link.exists()


@pytest.mark.parametrize("command", [name for name in KERNELS if name.split()[0] not in ("code", "check", "kernels")])
def test_workloads_that_cannot_be_read_are_refused_first(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = "src:debian:6.12" if command == "compare --selftests" else "debian:7.0"
    words = [word.format(kernel) for word in KERNELS[command] if word != "--each"]
    refused([*words, "--workloads", str(folder / "missing")], folder, capsys, "missing")
    refused([*words, "--workloads", str(folder / "empty")], folder, capsys, "empty")
    (folder / "own").mkdir()
    (folder / "own" / "mine.toml").write_text(FILES["no.toml"])
    refused([*words, "--workloads", str(folder / "own")], folder, capsys, "mine.toml")


@pytest.mark.parametrize("command", ["compare", "sweep"])
def test_more_memory_than_there_is_is_refused_first(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """QEMU took five minutes to fail of it, and a resume was offered."""
    monkeypatch.setattr("kdelta.machine.hostfacts.memory_mib", lambda: 2048)
    words = [word.format("debian:7.0") for word in KERNELS[command]]
    case = () if "--case" in words else CASE
    refused([*words, *case, "--memory", "2049"], folder, capsys, "does not fit into the 2048 MiB of this machine")
    refused(
        [*words, *case, "--memory", "3GiB"], folder, capsys, "--memory 3072: a guest does not fit into the 2048 MiB"
    )


def test_timed_options_are_refused_first_where_kvm_is_known_not_to_run(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were so only after the kernels had been fetched."""
    monkeypatch.setattr("kdelta.machine.probe.kvm_opens", lambda: True)
    qemu = folder / "bin" / "qemu-system-x86_64"
    qemu.write_text("#!/bin/sh\necho QEMU emulator version 8.2.0\n")
    qemu.chmod(0o755)
    found = probe.find_qemu("qemu-system-x86_64", "x86_64")
    host = {"aarch64": "arm64"}.get(machine := os.uname().machine, machine)
    probe.decide_accel("auto", found, host, folder / "cache", lambda: (False, "it hung"))
    words = ["compare", "debian:6.12", "debian:7.0", *CASE, "--blocks", "5"]
    refused(words, folder, capsys, "--blocks is for timed mode")

# SPDX-License-Identifier: GPL-2.0-or-later
"""The job files in contrib/ are what GitHub and GitLab take, and the commands in them are kdelta's."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from check_docs import parse_error

CONTRIB = Path(__file__).parents[3] / "contrib"
JOBS = {"github/kdelta.yml": "vendor.github-workflows", "gitlab/kdelta.yml": "vendor.gitlab-ci"}
_COMMAND = re.compile(r"(?:^|run: |- )\s*(kdelta (?!kdelta).*)$", re.MULTILINE)


def commands(text: str) -> list[list[str]]:
    """The words of each line that calls kdelta; what the shell puts in is one word."""
    plain = re.sub(r'"\$\(.*?\)\.\.\$HEAD"', "BASE..HEAD", text)
    return [shlex.split(match[1]) for match in _COMMAND.finditer(plain)]


@pytest.mark.parametrize(("name", "schema"), JOBS.items())
def test_a_job_file_is_valid(name: str, schema: str) -> None:
    words = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(CONTRIB / name)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", JOBS)
def test_every_command_of_a_job_is_one_that_kdelta_takes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = commands((CONTRIB / name).read_text())
    assert {words[1] for words in found} >= {"review", "report", "export", "import", "post"}
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kdelta.experiment").touch()  # what the first job leaves to the second
    for words in found:
        assert parse_error(shlex.join(words)) == "", words


@pytest.mark.parametrize("name", JOBS)
def test_a_job_installs_nothing_by_a_name_that_anybody_may_take(name: str) -> None:
    """kdelta is not on PyPI: what is installed is filled in, and a job that is not so ends before pip asks anybody."""
    lines = re.findall(r"pip install .*", (CONTRIB / name).read_text())
    assert len(lines) == 2
    for line in lines:
        done = subprocess.run(
            ["/bin/sh", "-c", f"pip() {{ echo asked; }}\n{line}"], env={"KDELTA": ""}, capture_output=True
        )
        assert done.returncode and b"fill in" in done.stderr and not done.stdout, line


def test_the_images_of_gitlab_can_install_by_git_and_https() -> None:
    """Debian's image has neither git nor certificates, and what is only recommended is not installed."""
    text = (CONTRIB / "gitlab/kdelta.yml").read_text()
    (installed,) = re.findall(r"apt-get install --no-install-recommends -y (.*)", text)
    assert {"git", "ca-certificates"} <= set(installed.split())
    assert "slim" not in " ".join(re.findall(r"image: (\S+)", text))

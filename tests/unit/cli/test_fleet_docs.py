# SPDX-License-Identifier: GPL-2.0-or-later
"""The files for Slurm and Kubernetes in docs/how-to/fleet.md: what they start exists, and their formats hold."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kdelta.cli import worker

PAGE = (Path(__file__).resolve().parents[3] / "docs/how-to/fleet.md").read_text(encoding="utf-8")


def block(language: str, start: str) -> str:
    found: list[str] = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return next(text for text in found if text.startswith(start))


def test_both_start_a_worker_as_it_is_started_today() -> None:
    known = {name for parameter in worker.command.params for name in parameter.opts}
    slurm = re.search(r"kdelta worker (.*)", block("bash", "#!/bin/bash\n#SBATCH"))
    pod = re.search(r"args: \[kdelta, worker, (.*)\]", block("yaml", "apiVersion"))
    for line in (slurm, pod):
        assert line is not None
        used = set(re.findall(r"--[a-z-]+", line[1]))
        assert used and used <= known


@pytest.mark.full
def test_the_slurm_script_is_clean(tmp_path: Path) -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("no shellcheck: apt-get install shellcheck")
    (tmp_path / "worker.sh").write_text(block("bash", "#!/bin/bash\n#SBATCH"))
    done = subprocess.run(["shellcheck", tmp_path / "worker.sh"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.full
def test_the_daemon_set_is_one(tmp_path: Path) -> None:
    """By the schemas of Kubernetes, with fields that it does not know refused."""
    validate: Any = pytest.importorskip("kubernetes_validate")
    yaml: Any = pytest.importorskip("yaml")
    found = yaml.safe_load(block("yaml", "apiVersion"))
    validate.validate(found, "1.30", strict=True)
    found["spec"]["template"]["spec"]["containerz"] = found["spec"]["template"]["spec"].pop("containers")
    with pytest.raises(validate.ValidationError):
        validate.validate(found, "1.30", strict=True)

# SPDX-License-Identifier: GPL-2.0-or-later
"""Hardware is set, and put back whatever happens: on trees as the kernel makes them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kdelta.errors import HostError
from kdelta.machine import kept, settings
from kdelta.model import Hardware

_TREE = {
    "sys/devices/system/cpu/online": "0-3",
    "sys/devices/system/cpu/smt/control": "on",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "powersave",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_available_governors": "performance powersave",
    "sys/devices/system/cpu/cpufreq/policy2/scaling_governor": "performance",
    "sys/devices/system/cpu/cpufreq/policy2/scaling_available_governors": "performance powersave",
    "sys/devices/system/cpu/intel_pstate/no_turbo": "0",
    "proc/irq/7/smp_affinity_list": "0-3",
    "proc/irq/8/smp_affinity_list": "1",
    "proc/irq/9/smp_affinity_list": "2",
    "proc/sys/kernel/random/boot_id": "this-boot",
}
ALL = Hardware(governor="performance", turbo=False, smt=False, cpus="2")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in _TREE.items():
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return tmp_path / "root"


def _now(root: Path) -> dict[str, str]:
    return {name: (root / name).read_text().strip() for name in _TREE if (root / name).exists()}


def _changed(root: Path) -> dict[str, str]:
    return {name.rpartition("/")[0].rpartition("/")[2] + "/" + name.rpartition("/")[2]: text
            for name, text in _now(root).items() if text != _TREE[name]}  # fmt: skip


def test_all_is_set_and_put_back(root: Path, tmp_path: Path) -> None:
    with kept.as_wanted(ALL, root, tmp_path / "state"):
        assert _changed(root) == {
            "smt/control": "off",
            "policy0/scaling_governor": "performance",
            "intel_pstate/no_turbo": "1",
            "7/smp_affinity_list": "0,1,3",
            "9/smp_affinity_list": "0,1,3",
        }
        assert len(kept.left(root, tmp_path / "state")) == 5
    assert not _changed(root)
    assert not (tmp_path / "state").exists()


def test_what_a_killed_kdelta_left_is_put_back_at_the_next_start(root: Path, tmp_path: Path) -> None:
    script = (
        "import os, signal, sys; from pathlib import Path\n"
        "from kdelta.machine import kept; from kdelta.model import Hardware\n"
        "with kept.as_wanted(Hardware(governor='performance', smt=False), Path(sys.argv[1]), Path(sys.argv[2])):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    words = [sys.executable, "-c", script, str(root), str(tmp_path / "state")]
    assert subprocess.run(words, env=os.environ, check=False).returncode == -9
    assert "smt/control" in _changed(root)
    assert len(kept.left(root, tmp_path / "state")) == 2
    with kept.as_wanted(Hardware(), root, tmp_path / "state"):
        assert not _changed(root)
    assert not (tmp_path / "state").exists()


def test_after_a_restart_of_the_machine_nothing_is_put_back(root: Path, tmp_path: Path) -> None:
    left = (
        b'{"boot_id":"another","writes":[{"path":"/sys/devices/system/cpu/smt/control","before":"off","after":"on"}]}'
    )
    (tmp_path / "state").write_bytes(left)
    assert kept.left(root, tmp_path / "state") == ()
    with kept.as_wanted(Hardware(), root, tmp_path / "state"):
        assert not _changed(root)
    assert not (tmp_path / "state").exists()


def test_an_error_in_between_puts_back(root: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), kept.as_wanted(ALL, root, tmp_path / "state"):
        raise KeyboardInterrupt
    assert not _changed(root)
    told = pytest.raises(HostError, match=r"governor 'schedutil' is not there: it offers performance, powersave")
    with told, kept.as_wanted(Hardware(smt=False, governor="schedutil"), root, tmp_path / "state"):
        pass
    assert not _changed(root), "threads were set first, and are back"


@pytest.mark.parametrize(
    ("gone", "wanted", "why"),
    [
        ("sys/devices/system/cpu/cpufreq", Hardware(governor="performance"), "no frequency scaling"),
        ("sys/devices/system/cpu/intel_pstate", Hardware(turbo=False), "neither .*no_turbo nor .*boost"),
        ("sys/devices/system/cpu/smt", Hardware(smt=True), "smt = on cannot be set"),
        ("", Hardware(cpus="9"), "CPU 9 is not online"),
        ("", Hardware(cpus="0-3"), "no CPU is left for interrupts"),
    ],
)
def test_what_a_machine_has_not_is_told(root: Path, tmp_path: Path, gone: str, wanted: Hardware, why: str) -> None:
    if gone:
        (root / gone).rename(tmp_path / "gone")
    with pytest.raises(HostError, match=why), kept.as_wanted(wanted, root, tmp_path / "state"):
        pass


def test_no_threads_are_threads_that_are_off(root: Path, tmp_path: Path) -> None:
    (root / "sys/devices/system/cpu/smt/control").write_text("notsupported\n")
    with kept.as_wanted(Hardware(smt=False), root, tmp_path / "state"):
        pass


class _Refusing(kept.Here):
    """A tree of which the kernel refuses some files."""

    def __init__(self, root: Path, refused: str) -> None:
        super().__init__(root)
        self._refused = refused

    def write(self, path: str, text: str) -> str:
        return "Input/output error" if self._refused in path else super().write(path, text)


def test_an_interrupt_that_cannot_be_moved_stays_and_all_else_is_firm(root: Path) -> None:
    done = settings.apply(_Refusing(root, "irq/7"), ALL, lambda _: None)
    assert [write.path for write in done if "irq" in write.path] == ["/proc/irq/9/smp_affinity_list"]
    settings.put_back(kept.Here(root), done)
    with pytest.raises(HostError, match=r"no_turbo cannot be set to 1: Input/output error"):
        settings.apply(_Refusing(root, "no_turbo"), ALL, lambda _: None)


def test_another_kdelta_at_work_is_not_disturbed(root: Path, tmp_path: Path) -> None:
    with kept.as_wanted(ALL, root, tmp_path / "state"):
        told = pytest.raises(HostError, match=r"another kdelta \(process \d+\) has set")
        with told, kept.as_wanted(ALL, root, tmp_path / "state"):
            pass
        assert _changed(root)


def test_what_cannot_be_put_back_is_kept_and_told(root: Path, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("{")
    cannot = pytest.raises(HostError, match="put the hardware back by hand")
    with cannot, kept.as_wanted(Hardware(), root, tmp_path / "state"):
        pass


def test_a_report_says_what_was_set() -> None:
    assert settings.told(ALL) == {
        "governor": "performance (set)",
        "turbo": "off (set)",
        "smt": "off (set)",
        "kept to CPUs": "2 (set)",
        "interrupts": "moved off CPU 2",
    }
    assert settings.told(Hardware()) == {}

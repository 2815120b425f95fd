# SPDX-License-Identifier: GPL-2.0-or-later
"""What programs and cases take for granted, and a config has off."""

from __future__ import annotations

import pytest

from kdelta.experiment import lacking
from kdelta.kernel import source
from unit.store.store_builders import experiment, kernel

TAKEN = (
    "MMU PROC_FS SYSFS FUTEX TMPFS SHMEM MULTIUSER UNIX EPOLL EVENTFD SIGNALFD TIMERFD POSIX_TIMERS FILE_LOCKING "
    "SYSVIPC AIO ADVISE_SYSCALLS BINFMT_SCRIPT PRINTK"
)


def test_what_programs_need_and_a_config_has_off_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of FUTEX=n it was "killed by SIGABRT", of PROC_FS=n "some merged or split", and by no word why."""
    whole = dict.fromkeys(TAKEN.split(), "y")
    less = {**whole, "FUTEX": "n", "PROC_FS": "n"}
    options = {"a": {**whole, "UNIX": "m"}, "b": less, "c": {"HZ": "250"}, "d": {}, "e": less}
    monkeypatch.setattr(source, "options", lambda one: options[one.label])
    (note,) = lacking.of(experiment("first", kernels=tuple(map(kernel, options))))
    assert note.about == "config"
    assert note.text.startswith(
        "b, e: off in their configs are CONFIG_PROC_FS, CONFIG_FUTEX; what needs them fails there"
    )

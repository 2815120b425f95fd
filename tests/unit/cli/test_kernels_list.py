# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta kernels list: which of the kernels built here is which."""

from __future__ import annotations

import pytest

from kdelta.cli.kernels import _whence
from kdelta.cli.main import run
from kdelta.kernel import cache

_BUILT = "; guest config; gcc (Debian 12.2.0-14+deb12u1) 12.2.0"
_HASH = "2de99cd554186e7e5ef3a9a5ab7ffc1eba1e1e01"


@pytest.mark.parametrize(
    ("origin", "told"),
    [
        ("Debian linux-image-6.12.118+deb13-amd64 6.12.118-1", "Debian"),
        ("package linux-image-6.1.0-56-cloud-amd64 6.1.192-2", "package"),
        ("file /srv/vmlinux", "file"),
        (f"Debian linux-source 7.3.4-1~bpo13+1{_BUILT}", "Debian source"),
        (f"Debian linux-source 7.3.4-1~bpo13+1 +a.patch{_BUILT}", "Debian source +a.patch"),
        (
            f"Debian linux-source 7.3.4-1 +s.mbox [1/3] +s.mbox [2/3] +b.patch{_BUILT}",
            "Debian source +s.mbox [2/3] +b.patch",
        ),
        (f"/srv/linux@driver (10522a784801){_BUILT}", "linux@driver"),
        (f"/srv/my linux@{_HASH} (2de99cd55418) +a.patch{_BUILT}", "my linux@2de99cd55418 +a.patch"),
    ],
)
def test_a_kernel_is_known_by_its_tree_and_its_patches(origin: str, told: str) -> None:
    assert _whence(origin) == told


def test_words_of_other_programs_list_what_there_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """ls was looked for as a kernel's file."""
    monkeypatch.setattr(cache, "entries", list)
    assert run(["kernels", "ls"]) == 0
    assert capsys.readouterr().out.startswith("no kernels in ")
    assert run(["cases", "ls"]) == 0
    assert "pidfd_open" in capsys.readouterr().out
    assert run(["history", "ls"]) == 0
    assert "no result for case" not in capsys.readouterr().err

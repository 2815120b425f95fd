# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

from kdelta.errors import HostError, UserError
from kdelta.kernel import apt, cache, debian, debver
from kdelta.kernel.apt import Source
from kdelta.model import Quiet

DEB822 = """\
# the archive
Types: deb deb-src
URIs: http://mirror.test/debian
Suites: bookworm bookworm-updates
Components: main contrib
# a comment in between
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.test/debian-security/
Suites: bookworm-security
Components: main

Types: deb
Enabled: no
URIs: http://off.test/debian
Suites: sid
Components: main

Types: deb-src
URIs: http://source.test/debian
Suites: sid
Components: main

Types: deb
URIs: https://vendor.test/debian
Suites: bookworm
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 xsFN
 -----END PGP PUBLIC KEY BLOCK-----
"""
MAIN = Source(uri="http://m.test/debian", suites=("trixie",), components=("main",))


class Steps(Quiet):
    """Collects what a Progress is told."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        self.said.append(text)

    def note(self, text: str) -> None:
        self.said.append(text)


def test_enabled_binary_sources_are_read_from_deb822() -> None:
    found = apt.parse_deb822(DEB822)
    assert [source.uri.split("/")[2] for source in found] == ["mirror.test", "mirror.test", "vendor.test"]
    assert found[0].suites == ("bookworm", "bookworm-updates")
    assert found[0].components == ("main", "contrib")


def test_one_line_sources_are_read_with_their_options() -> None:
    text = (
        "# deb http://old.test/debian sid main\n"
        "deb [arch=amd64 signed-by=/k/debian-archive-keyring.gpg] http://m.test/debian trixie main contrib # note\n"
        "deb-src http://m.test/debian trixie main\n"
        "deb http://m.test/debian-security trixie-security main\n"
    )
    found = apt.parse_one_line(text)
    assert [(source.uri, source.suites) for source in found] == [
        ("http://m.test/debian", ("trixie",)),
        ("http://m.test/debian-security", ("trixie-security",)),
    ]
    assert found[0].signed_by == "/k/debian-archive-keyring.gpg"


def test_only_debians_archive_and_its_security_mirror_are_taken() -> None:
    main, security = apt.archives(apt.parse_deb822(DEB822))
    assert main is not None and main.uri == "http://mirror.test/debian"
    assert security is not None and security.uri == "http://mirror.test/debian-security/"


@pytest.mark.parametrize(
    "source",
    [
        Source(uri="https://v.test/debian", suites=("bookworm",), components=("main",), signed_by="/k/vendor.gpg"),
        Source(uri="https://v.test/debian", suites=("bookworm",), components=("stable",)),
        Source(uri="https://v.test/debian/12/prod", suites=("bookworm",), components=("main",)),
        Source(uri="cdrom:[disc]/debian", suites=("bookworm",), components=("main",)),
        Source(uri="file:/mirror/debian", suites=("bookworm",), components=("main",)),
    ],
)
def test_other_sources_are_not_debians_archive(source: Source) -> None:
    assert apt.archives([source]) == (None, None)


def test_suites_reach_from_the_machines_own_to_experimental() -> None:
    main, security = apt.suites(("trixie",))
    assert main[:3] == ("bookworm", "bookworm-updates", "bookworm-backports")
    assert {"trixie-backports", "forky", "sid", "experimental"} <= set(main)
    assert security[0] == "bookworm-security"
    assert "bullseye" in apt.suites(("bullseye", "bullseye-updates"))[0]
    assert apt.suites(("stable",))[0] == main


def test_absent_and_unverifiable_suites_are_recognised_in_apts_messages() -> None:
    errors = (
        "E: The repository 'http://m.test/debian duke Release' does not have a Release file.\n"
        "W: GPG error: http://m.test/debian forky InRelease: The following signatures couldn't be verified\n"
        "E: The repository 'http://m.test/debian forky InRelease' is not signed.\n"
    )
    assert apt.absent_suites(errors) == {"duke", "forky"}
    assert apt.first_error("W: a\nE: the reason\nE: more") == "the reason"
    assert apt.first_error("") == "no message"


def _archive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answers: list[tuple[int, str, str]]) -> list[list[str]]:
    """apt replaced by ``answers``, one a call; the calls are recorded."""
    calls: list[list[str]] = []

    def run(argv: list[str], **_: object) -> tuple[int, str, str]:
        calls.append(argv)
        return answers.pop(0)

    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path))
    monkeypatch.setattr(apt, "_run", run)
    monkeypatch.setattr(apt, "machine_sources", lambda: [MAIN])
    monkeypatch.setattr(apt, "_settings", lambda: {"Acquire::http::Proxy": ["http://proxy.test:3128"], "Other": ["x"]})
    monkeypatch.setattr(apt, "_keyring", lambda source: "/k/debian-archive-keyring.gpg")
    return calls


def test_absent_suites_are_left_out_with_a_note(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    absent = "E: The repository 'http://m.test/debian duke Release' does not have a Release file.\n"
    calls = _archive(monkeypatch, tmp_path, [(100, "", absent), (0, "", "")])
    steps = Steps()
    lists = tmp_path / "apt/state/lists"
    lists.mkdir(parents=True)
    for suite in set(apt.suites(MAIN.suites)[0]) - {"duke"}:
        (lists / f"m.test_debian_dists_{suite}_InRelease").touch()
    apt.Apt(tmp_path / "apt", "amd64").update(steps)
    assert len(calls) == 1, "all else has arrived"
    assert any("duke" in said for said in steps.said)
    sources = (tmp_path / "apt/etc/sources.list.d/debian.sources").read_text()
    assert " duke " not in sources and "trixie-backports" in sources and "Signed-By: /k/" in sources


@pytest.mark.parametrize(
    "beside",
    [
        "",  # nothing more, but apt has kept no list
        "E: Some index files failed to download. They have been ignored, or old ones used instead.\n",
        "E: The repository 'http://m.test/debian sid InRelease' is not signed.\n",
    ],
)
def test_where_more_is_amiss_than_a_suite_that_is_not_there_all_is_fetched_again(
    beside: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    absent = "E: The repository 'http://m.test/debian duke Release' does not have a Release file.\n"
    calls = _archive(monkeypatch, tmp_path, [(100, "", absent + beside), (0, "", "")])
    apt.Apt(tmp_path / "apt", "amd64").update(Steps())
    assert len(calls) == 2


EXPIRED = (
    "E: Release file for http://m.test/debian/dists/{}/InRelease is expired (invalid since 17d 19h 36min 41s). "
    "Updates for this repository will not be applied.\n"
)


def test_suites_that_expired_on_the_mirror_are_left_out_with_a_note(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    expired = EXPIRED.format("sid") + EXPIRED.format("trixie-updates")
    calls = _archive(monkeypatch, tmp_path, [(100, "", expired), (0, "", "")])
    steps = Steps()
    apt.Apt(tmp_path / "apt", "amd64").update(steps)
    assert len(calls) == 2
    (note,) = (said for said in steps.said if "expired" in said)
    assert "sid (17d ago), trixie-updates (17d ago); is the clock right?" in note
    sources = (tmp_path / "apt/etc/sources.list.d/debian.sources").read_text()
    assert " sid " not in sources and "trixie-updates" not in sources and "trixie-backports" in sources


def test_suites_that_expired_are_named_again_where_their_kernels_may_be_missed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The note came with the index alone; for a day after it a sweep was short by them without a word."""
    stanza = "Package: linux-image-6.12.117+deb13-amd64\nVersion: 6.12.117-1\nSize: 108488460\n"
    read = [(0, "linux-image-6.12.117+deb13-amd64 - Linux\n", ""), (0, stanza, "")]
    _archive(monkeypatch, tmp_path, [(100, "", EXPIRED.format("sid")), (0, "", ""), *read])
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    notes: list[str] = []
    for _ in range(2):
        steps = Steps()
        assert [one.upstream for one in debian.find_range("6.1", "7.3", "", "x86_64", steps)] == ["6.12.117"]
        notes += [said for said in steps.said if "expired" in said]
    assert [note.partition(": ")[2][:3] for note in notes] == ["sid", "sid"]
    with pytest.raises(UserError, match=r"series: 6\.12; expired on this mirror, their kernels are left out: sid$"):
        debian.find("7.2", "", "x86_64", Steps())


def test_nothing_is_left_where_all_suites_expired(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    expired = "".join(EXPIRED.format(suite) for suite in apt.suites(MAIN.suites)[0])
    _archive(monkeypatch, tmp_path, [(100, "", expired)])
    with pytest.raises(HostError, match=r"bookworm/InRelease is expired .*; is the clock right\? Else: another mirror"):
        apt.Apt(tmp_path / "apt", "amd64").update(Steps())


def test_apts_own_line_is_the_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _archive(monkeypatch, tmp_path, [(100, "", "E: Failed to fetch X  Could not connect")])
    with pytest.raises(HostError, match=r"Failed to fetch X .*; what needs no archive: the path"):
        apt.Apt(tmp_path / "apt", "amd64").update(Steps())


def test_the_private_root_keeps_the_machines_proxy_and_none_of_its_hooks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _archive(monkeypatch, tmp_path, [(0, "", "")])
    apt.Apt(tmp_path / "apt", "arm64").update(Steps())
    conf = (tmp_path / "apt/apt.conf").read_text()
    assert 'Acquire::http::Proxy "http://proxy.test:3128";' in conf
    assert "Other" not in conf
    assert f'Dir::State "{tmp_path}/apt/state";' in conf
    assert 'Dir::Etc::main "/dev/null";' in conf
    assert 'APT::Architecture "arm64";' in conf


def test_too_little_space_is_refused_before_apt_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls = _archive(monkeypatch, tmp_path, [])
    monkeypatch.setattr(cache, "_free_bytes", lambda path: 1 << 20)
    with pytest.raises(HostError, match="1 MiB free"):
        apt.Apt(tmp_path / "apt", "amd64").update(Steps())
    assert not calls


class _Clock:
    def __init__(self) -> None:
        self.now_s = 1e9

    def __call__(self) -> float:
        return self.now_s


def test_an_index_is_read_once_a_day_and_kept_when_the_mirror_is_away(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stanza = "Package: linux-image-6.12.117+deb13-amd64\nVersion: 6.12.117-1\nSize: 108488460\n"
    good = [(0, "", ""), (0, "linux-image-6.12.117+deb13-amd64 - Linux\n", ""), (0, stanza, "")]
    calls = _archive(monkeypatch, tmp_path, [*good, (100, "", "E: Could not connect")])
    clock, steps = _Clock(), Steps()
    archive = debian.Archive("x86_64", steps, clock)
    assert [kernel.upstream for kernel in archive.index().kernels] == ["6.12.117"]
    clock.now_s += debian.INDEX_AGE_S - 1
    archive.index()
    assert len(calls) == 3
    clock.now_s += 2
    assert [kernel.upstream for kernel in archive.index().kernels] == ["6.12.117"]
    assert any("Could not connect" in said for said in steps.said)


def test_an_unknown_version_or_flavour_names_the_nearest() -> None:
    kernels = debver.kernels(
        "Package: linux-image-6.12.117+deb13-amd64\nVersion: 6.12.117-1\nSize: 99999999\n\n"
        "Package: linux-image-6.12.117+deb13-cloud-amd64\nVersion: 6.12.117-1\nSize: 99999999\n",
        "x86_64",
    )
    assert "nearest: 6.12.117; series: 6.12" in str(debian.unknown(kernels, "6.13", "", "x86_64"))
    assert "comes as the generic one, cloud" in str(debian.unknown(kernels, "6.12", "rt", "x86_64"))
    assert "there are cloud" in str(debian.unknown(kernels, "9.9", "rt", "x86_64"))
    assert "the flavour cloud is debian:6.12/cloud" in str(debian.unknown(kernels, "6.12-cloud", "", "x86_64"))

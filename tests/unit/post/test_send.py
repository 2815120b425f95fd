# SPDX-License-Identifier: GPL-2.0-or-later
"""A reply is handed to the real git send-email, which says what it would do, or sends by the user's set-up."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kdelta.errors import HostError, UserError
from kdelta.kernel import cover, mail
from kdelta.post import send

TO = mail.Message(text="", id="<0@b>", subject="[PATCH 0/1] pipe: one", sender="a@example.org", to=("l@example.org",))
BODY = "1 regressed\nCc: Eve <eve@example.org>\nSigned-off-by: Mallory <m@example.org>\n"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose send-email "sends" to a program that keeps what it gets."""
    monkeypatch.setenv("HOME", str(tmp_path))
    keep = tmp_path / "sendmail"
    keep.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/whom\ncat > {tmp_path}/sent\n')
    keep.chmod(0o755)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for name, value in (("user.name", "K"), ("user.email", "k@example.org"), ("sendemail.smtpServer", str(keep))):
        subprocess.run(["git", "-C", str(tmp_path), "config", name, value], check=True)
    (tmp_path / "reply").write_bytes(cover.reply(TO, BODY))
    return tmp_path


def test_a_dry_run_sends_nothing_and_a_real_one_goes_to_the_thread_alone(tree: Path) -> None:
    said = send.send(tree / "reply", tree, really=False)
    assert "Dry-OK" in said and "In-Reply-To: <0@b>" in said and not (tree / "sent").exists()
    send.send(tree / "reply", tree, really=True)
    sent = (tree / "sent").read_text()
    assert "In-Reply-To: <0@b>" in sent and "Subject: Re: [PATCH 0/1] pipe: one" in sent and "1 regressed" in sent
    whom = (tree / "whom").read_text()
    assert "a@example.org" in whom and "l@example.org" in whom
    assert "eve" not in whom and "m@example" not in whom


def test_what_git_refuses_is_one_line(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree / "nobody").write_bytes(b"Subject: x\n\ny\n")
    with pytest.raises(UserError, match="no To line"):
        send.send(tree / "nobody", tree, really=False)
    subprocess.run(["git", "-C", str(tree), "config", "sendemail.smtpServer", "/nowhere/at-all"], check=True)
    with pytest.raises(HostError, match="git send-email") as caught:
        send.send(tree / "reply", tree, really=True)
    assert "\n" not in str(caught.value)
    for change in (("user.useConfigOnly", "true"), ("--unset", "user.email")):
        subprocess.run(["git", "-C", str(tree), "config", *change], check=True)
    with pytest.raises(HostError, match="who you are: git config --global") as caught:
        send.send(tree / "reply", tree, really=False)
    assert "\n" not in str(caught.value)
    monkeypatch.setenv("PATH", str(tree / "empty"))
    with pytest.raises(HostError, match="apt-get install"):
        send.send(tree / "reply", tree, really=False)

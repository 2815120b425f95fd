# SPDX-License-Identifier: GPL-2.0-or-later
"""A mail handed to ``git send-email``, which sends it by the user's own set-up (git-send-email(1)), or tries it dry.

Whom it goes to stands in the mail alone: ``--suppress-cc=body`` keeps names in the report from becoming addresses, and
nothing is asked, so that it works without a terminal.
"""

from __future__ import annotations

import email
import email.policy
import email.utils
import subprocess
from pathlib import Path

from kdelta import distributions
from kdelta.errors import HostError, UserError
from kdelta.report.scrub import clean

_LIMIT_S = 120.0
_SAID_LINES = 40


def send(mail: Path, folder: Path, *, really: bool) -> str:
    """Hand ``mail`` over, with the set-up that git has in ``folder``; returns what git said.

    Raises:
        UserError: the mail names nobody.
        HostError: git has no send-email here, or it fails.
    """
    parsed = email.message_from_bytes(mail.read_bytes(), policy=email.policy.default)
    to = [address for _, address in email.utils.getaddresses([str(parsed.get("To", ""))]) if "@" in address]
    if not to:
        raise UserError(f"{mail}: has no To line; it can be sent to nobody")
    words = [
        "git", "send-email", "--confirm=never", "--suppress-cc=body", "--no-format-patch", "--8bit-encoding=UTF-8",
        *(f"--to={address}" for address in to), *([] if really else ["--dry-run"]), str(mail.absolute()),
    ]  # fmt: skip
    try:
        done = subprocess.run(
            words,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LIMIT_S,
        )
    except FileNotFoundError:
        raise HostError(f"git is missing: {distributions.install('git git-email')}") from None
    except subprocess.TimeoutExpired:
        raise HostError(f"git send-email did not end within {_LIMIT_S:.0f} s; the mail is {mail}") from None
    said = done.stdout + done.stderr
    if done.returncode:
        raise HostError(f"git send-email {mail}: {_why(said)}")
    return "".join(f"{line}\n" for line in said.splitlines()[:_SAID_LINES])


def _why(said: str) -> str:
    """What git said as it failed, in one line, with the remedy where it is known."""
    if "not a git command" in said:
        return f"git has no send-email here: {distributions.install('git-email')}"
    if "tell me who you are" in said or "_IDENT" in said:  # git-var(1) is asked for the From line
        return "git does not know who you are: git config --global user.email YOU@EXAMPLE.ORG"
    return clean(" ".join(line.strip() for line in said.splitlines() if line.strip()))

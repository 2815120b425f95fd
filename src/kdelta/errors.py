# SPDX-License-Identifier: GPL-2.0-or-later
"""Errors by who must act, each with the exit code that scripts see.

Only ``cli`` prints them. A message names what, where and the remedy, in one line.
"""


class KdeltaError(Exception):
    """Base of all errors that reach a user as one line."""

    exit_code = 2


class UserError(KdeltaError):
    """Refused input: a typo, an unknown kernel, a knob out of range. Nothing was changed."""

    exit_code = 1


class HostError(KdeltaError):
    """This machine or a build failed: no QEMU, disk full, compiler error."""

    exit_code = 2


class UnreadableError(HostError):
    """An experiment is damaged in the store; who only looks whether it is of use goes on without it."""


class DiskFull(HostError):
    """No space is left in the place that it is made with.

    Who knows how to go on better than by the same command says so behind ``said``.
    """

    @property
    def said(self) -> str:
        return f"{self.args[0]}: the disk is full: free some space"

    def __str__(self) -> str:
        return f"{self.said}, then run the same command again"


class GuestError(KdeltaError):
    """A guest was lost, panicked or hung where the result depended on it."""

    exit_code = 3


class RegressionFound(KdeltaError):
    """``--fail-on`` matched: the result stands, the gate is closed."""

    exit_code = 4

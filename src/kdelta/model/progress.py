# SPDX-License-Identifier: GPL-2.0-or-later
"""How long work tells a front end where it is, without printing."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Hears of steps, boots and remarks. ``done`` and ``total`` are in the unit that ``text`` names."""

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """``text`` has begun, or has come to ``done`` of ``total``."""

    def boots(self, done: int, planned: int, what: str) -> None:
        """``done`` of ``planned`` boots are stored; ``what`` runs now."""

    def note(self, text: str) -> None:
        """One line worth telling."""


class Once:
    """A Progress that hands each remark and step on to another once: a patch's come with every kernel that has it."""

    def __init__(self, heard: Progress) -> None:
        self._heard, self._said = heard, set[str]()

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """Each once, but those that count."""
        if done is not None or text not in self._said:
            self._said.add(text)
            self._heard.step(text, done, total)

    def boots(self, done: int, planned: int, what: str) -> None:
        """As it is."""
        self._heard.boots(done, planned, what)

    def note(self, text: str) -> None:
        """Each once."""
        if text not in self._said:
            self._said.add(text)
            self._heard.note(text)


class Quiet:
    """A Progress that says nothing."""

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """Drop the step."""

    def boots(self, done: int, planned: int, what: str) -> None:
        """Drop the count."""

    def note(self, text: str) -> None:
        """Drop the line."""

# SPDX-License-Identifier: GPL-2.0-or-later
"""Subcommands with subcommands of their own, of which one is meant where none is named: ``history CASE``."""

from __future__ import annotations

from typing import ClassVar

import click
from click.shell_completion import CompletionItem


class DefaultGroup(click.Group):
    """``COMMAND WORDS`` is ``COMMAND BARE`` where there are no words, ``COMMAND NAMED WORDS`` where no command is named."""

    bare = "list"
    named = "show"
    also: ClassVar[dict[str, tuple[str, ...]]] = {"ls": ("list",)}  # words of other programs, for those that are here

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] in self.also:
            args = [*self.also[args[0]], *args[1:]]
        completing = ctx.resilient_parsing and not args
        if not completing and (not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names)):
            alone = not args or args[0].startswith("-")
            args = [self.bare if alone else self.named, *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """The commands, and what the one that is meant without a name takes as its first word."""
        found = super().shell_complete(ctx, incomplete)
        meant = self.commands.get(self.named if self.named in self.commands else self.bare)
        words = [] if meant is None else [one for one in meant.params if isinstance(one, click.Argument)]
        for word in words[:1]:
            found += word.shell_complete(ctx, incomplete)
        return found

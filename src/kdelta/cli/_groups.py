# SPDX-License-Identifier: GPL-2.0-or-later
"""Subcommands with subcommands of their own, of which one is meant where none is named: ``history CASE``."""

from __future__ import annotations

import click


class DefaultGroup(click.Group):
    """``COMMAND WORDS`` is ``COMMAND BARE`` where there are no words, ``COMMAND NAMED WORDS`` where no command is named."""

    bare = "list"
    named = "show"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            alone = not args or args[0].startswith("-")
            args = [self.bare if alone else self.named, *args]
        return super().parse_args(ctx, args)

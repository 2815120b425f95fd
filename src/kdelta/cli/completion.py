# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta completion: the script that lets a shell complete kdelta's words."""

from __future__ import annotations

import click

from kdelta.cli._say import put

EPILOG = """\b
Examples:
  source <(kdelta completion bash)          in this shell, or in ~/.bashrc
  kdelta completion zsh > ~/.zfunc/_kdelta
  kdelta completion fish > ~/.config/fish/completions/kdelta.fish

Beside commands and options it knows releases, cases, suites, experiments and formats.
Debian's package installs all three.
"""


@click.command(epilog=EPILOG)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the script that completes kdelta's words in SHELL."""
    from click.shell_completion import get_completion_class

    from kdelta.cli import _complete, main

    _complete.register()
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"this click knows no completion for {shell}: update it with pip install -U click")
    put(found(main.program, {}, "kdelta", _complete.ASKED).source())

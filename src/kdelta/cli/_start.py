# SPDX-License-Identifier: GPL-2.0-or-later
"""Entry point of the installed program: Ctrl-C while Python still reads the program's own files ends it silently."""

# What the module signal is made of: that one reads many files first.
import _signal as signal  # type: ignore[import-not-found]

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where a shell's background job ignores it
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from kdelta.cli.main import main

__all__ = ["main"]

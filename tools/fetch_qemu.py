# SPDX-License-Identifier: GPL-2.0-or-later
"""Unpack a QEMU of 10 or later beside the installed one, for tests: prints the path of its wrapper.

Debian's backports for Debian 12, signatures verified, nothing installed:
    KDELTA_QEMU_ALT=$(.venv/bin/python tools/fetch_qemu.py) make test-full
"""

from __future__ import annotations

import sys

from kdelta.cli.progress import Reporter
from kdelta.errors import KdeltaError
from kdelta.experiment import emulator


def main() -> int:
    try:
        print(emulator.fetched(Reporter()) / "qemu-system-x86_64")
    except KdeltaError as error:
        print(f"fetch_qemu: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

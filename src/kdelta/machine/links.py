# SPDX-License-Identifier: GPL-2.0-or-later
"""Unix sockets in directories of any name: an address holds 107 bytes (unix(7)), and caches lie in long ones."""

from __future__ import annotations

import os
import socket
from pathlib import Path


def connected(path: Path) -> socket.socket:
    """A stream to the socket at ``path``, however long that is.

    Raises:
        OSError: nobody listens there.
    """
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
        try:
            link.connect(f"/proc/self/fd/{folder}/{path.name}")
        finally:
            os.close(folder)
    except OSError:
        link.close()
        raise
    return link

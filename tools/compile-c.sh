#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Compiles the guest and the plugin as the tool itself does, for both architectures where the compilers are there.
set -euo pipefail
cd "$(dirname "$0")/.."
exec .venv/bin/python - <<'PY'
import pathlib
import shutil
import sys
import tempfile

from kdelta.guest import binary
from kdelta.machine import plugin

with tempfile.TemporaryDirectory() as folder:
    cache = pathlib.Path(folder)
    binary.build("x86_64", cache=cache)
    if shutil.which("aarch64-linux-gnu-gcc"):
        binary.build("arm64", cache=cache)
    else:
        sys.stderr.write("arm64 skipped: no aarch64-linux-gnu-gcc\n")
    plugin.build(cache)
PY

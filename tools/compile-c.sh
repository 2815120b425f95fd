#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Compiles the guest and the plugin as the tool itself does, but with all warnings, for both architectures where the compilers are there. What once compiled
# without a warning is taken from the cache: it is known by its source, headers, flags and compiler.
set -euo pipefail
cd "$(dirname "$0")/.."
exec .venv/bin/python - <<'PY'
import shutil
import sys

from kdelta import paths
from kdelta.guest import binary
from kdelta.machine import plugin

cache = paths.cache_dir()
binary.build("x86_64", cache=cache, warnings=binary.STRICT)
if shutil.which("aarch64-linux-gnu-gcc"):
    binary.build("arm64", cache=cache, warnings=binary.STRICT)
else:
    sys.stderr.write("arm64 skipped: no aarch64-linux-gnu-gcc\n")
plugin.build(cache, binary.STRICT)
PY

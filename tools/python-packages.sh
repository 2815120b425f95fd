#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Installs kdelta from this checkout into .venv, with the optional dependencies that are named (dev,fleet).
# uv takes a quarter of pip's time; it does not read pip's settings, so where these name an index, or where it fails, pip does it.
set -euo pipefail
cd "$(dirname "$0")/.."
what=(-e ".[$1]")
pip=(.venv/bin/pip --quiet --disable-pip-version-check)

by_uv() {
	case $("${pip[@]}" config list) in *index*) return 1 ;; esac
	"${pip[@]}" install uv >/dev/null 2>&1 && .venv/bin/uv pip install --quiet --compile-bytecode --python .venv/bin/python "${what[@]}"
}

by_uv || "${pip[@]}" install "${what[@]}"

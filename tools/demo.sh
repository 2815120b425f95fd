#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# make demo: the main job on two shipped kernels.
set -euo pipefail
cd "$(dirname "$0")/.."
first=${1:-debian:6.12} second=${2:-debian:7.0}
echo "\$ kdelta compare $first $second"
exec .venv/bin/kdelta compare "$first" "$second"

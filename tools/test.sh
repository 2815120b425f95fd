#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# make test, once all is set up: the gates, the tests, and those that boot. What they need from Debian's archive (a second QEMU, kernels:
# some 500 MB) comes while others run.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=.venv/bin
unset PYTHONDONTWRITEBYTECODE # else each pytest reads all tests anew, 8 s
# those that most tests boot: one that is not here is fetched by its test
kernels=(debian:6.12/cloud debian:6.1/cloud debian:7.0/cloud debian:6.18/cloud debian:6.19/cloud debian:7.3/cloud debian:6.12 debian:6.1
	debian:6.12/cloud,arch=arm64)

coming=$(mktemp -d)
qemu='' fetching='' reading=''
trap 'kill $qemu $fetching $reading 2>/dev/null || true; rm -rf "$coming"' EXIT

$bin/python tools/fetch_qemu.py >"$coming/qemu" &
qemu=$!
# once for the three that read all tests anew, each, where none was read before
$bin/python -m pytest --collect-only -qq -m 'not full' >/dev/null 2>&1 &
reading=$!
tools/check.sh
wait "$reading" || true # the tests themselves say what is wrong
reading=''
wait "$qemu" || echo "no second QEMU: its tests are skipped" >&2
qemu=''
$bin/kdelta kernels fetch -q "${kernels[@]}" >"$coming/kernels" &
fetching=$!
echo "tests without guests (kernels are fetched meanwhile)"
# a quarter of their time these wait for other programs: three at once fill two cores
KDELTA_QEMU_ALT=$(<"$coming/qemu") $bin/python -m pytest -m 'not full and not boot' -n 3 --dist worksteal --durations=8
wait "$fetching" || echo "not all kernels are here: tests fetch what they boot" >&2
fetching=''
echo "tests that boot"
# with two at once a quarter of two cores was idle
$bin/python -m pytest tests/boot -m 'not full' -n 3 --dist loadscope --durations=8

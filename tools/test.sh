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
qemu='' booting=''
trap 'kill $qemu 2>/dev/null || true; [ -z "$booting" ] || kill -- -"$booting" 2>/dev/null || true; rm -rf "$coming"' EXIT
trap 'exit 130' INT TERM # pytest ends in its own way, after which bash would go on

boots() { # the tests that boot: they wait for guests, the others for programs, and together they fill two cores
	$bin/kdelta kernels fetch -q "${kernels[@]}" || echo "not all kernels are here: tests fetch what they boot"
	$bin/python -m pytest tests/boot -m 'not full' -n 1 --durations=8
}

$bin/python tools/fetch_qemu.py >"$coming/qemu" &
qemu=$!
tools/check.sh
wait "$qemu" || echo "no second QEMU: its tests are skipped" >&2
qemu=''
set -m # a group of its own, which ends as a whole
boots >"$coming/boots" 2>&1 &
booting=$!
set +m
echo "tests without guests (those that boot run beside them)"
failed=0
KDELTA_QEMU_ALT=$(<"$coming/qemu") $bin/python -m pytest -m 'not full and not boot' -n 3 --dist worksteal --durations=8 || failed=$?
echo "tests that boot"
tail -n +1 -f --pid="$booting" "$coming/boots" &
wait "$booting" || failed=$?
booting=''
wait
exit "$failed"

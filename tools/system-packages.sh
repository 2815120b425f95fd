#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Installs the Debian packages that kdelta needs, when it may; else prints the exact line to run.
set -euo pipefail

packages=(qemu-system-x86 qemu-system-arm gcc libc6-dev make python3 python3-venv git ca-certificates
	clang-format util-linux xz-utils binutils debian-archive-keyring)
# "test": also what make test needs; "full": also what make test-full needs
full=()
case "${1:-}" in test | full) full=(chromium chromium-driver) ;; esac
if [ "${1:-}" = full ]; then
	full=(chromium chromium-driver postgresql)
	# the real benchstat is installed with Go; one in /usr/local is as good as Debian's
	PATH="$PATH:/usr/local/go/bin" command -v go >/dev/null || full+=(golang-go)
fi
optional=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross flex bison bc libelf-dev libssl-dev libcap-dev bubblewrap ccache cpio strace stress-ng rpm git-email libmailtools-perl)

missing=()
for package in "${packages[@]}" "${optional[@]}" "${full[@]}"; do
	dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

line="apt-get install --no-install-recommends ${missing[*]}"
if ! command -v apt-get >/dev/null; then
	echo "this is not a Debian system: install the equivalents of: ${missing[*]}" >&2
	exit 2
fi
if [ "$(id -u)" -eq 0 ]; then
	sudo=()
elif sudo -n true 2>/dev/null; then
	sudo=(sudo -n)
else
	echo "system packages are missing; please run:  sudo $line" >&2
	exit 2
fi
echo "installing system packages: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { "${sudo[@]}" apt-get update -qq && "${sudo[@]}" $line -y -qq; } >"$log" 2>&1; then
	tail -n 20 "$log" >&2
	echo "installing system packages failed; please run:  sudo $line" >&2
	exit 2
fi

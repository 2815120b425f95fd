#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Installs the packages that kdelta needs on Debian, when it may; else, and on Fedora and Arch, prints the exact line to run.
# OS_RELEASE names another file than /etc/os-release, for the tests.
set -euo pipefail

packages=(qemu-system-x86 qemu-system-arm gcc libc6-dev make python3 python3-venv git ca-certificates
	clang-format util-linux xz-utils binutils debian-archive-keyring)
# "test": also what make test needs; "full": also what make test-full needs; "fuzz": also what make fuzz needs
full=()
case "${1:-}" in
test | full) full=(chromium chromium-driver fish zsh adb fastboot groff-base rpm postgresql shellcheck) ;;
fuzz) full=(clang libclang-rt-dev) ;;
esac
if [ "${1:-}" = full ]; then
	full+=(mmdebstrap buildah e2fsprogs openssh-server)
	# the real benchstat is installed with Go; one in /usr/local is as good as Debian's
	PATH="$PATH:/usr/local/go/bin" command -v go >/dev/null || full+=(golang-go)
fi
optional=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross flex bison bc libelf-dev libssl-dev libcap-dev bubblewrap ccache cpio strace stress-ng openssh-client git-email libmailtools-perl)

# what this distribution calls them: a column of the table that kdelta doctor uses too
family=$(. "${OS_RELEASE:-/etc/os-release}" && for word in $ID ${ID_LIKE:-}; do
	case $word in debian | fedora | arch) echo "$word" && break ;; esac
done)
case $family in
debian) column=1 install="apt-get install --no-install-recommends" ;;
fedora) column=2 install="dnf install" ;;
arch) column=3 install="pacman -S --needed" ;;
*)
	echo "kdelta knows the packages of Debian, Fedora and Arch: install the equivalents of: ${packages[*]} ${optional[*]} ${full[*]}" >&2
	exit 2
	;;
esac
mapfile -t wanted < <(printf '%s\n' "${packages[@]}" "${optional[@]}" "${full[@]}" | awk -F '\t' -v column="$column" '
	NR == FNR { name[$1] = $column; next }
	{ split(($1 in name) ? name[$1] : $1, found, ","); for (i = 1; i in found; i++) if (found[i] != "-" && !seen[found[i]]++) print found[i] }
' "$(dirname "$0")/../src/kdelta/packages.tsv" -)

installed() { # PACKAGE
	case $family in
	debian) dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed ;;
	fedora) rpm -q --whatprovides "$1" >/dev/null 2>&1 ;;
	arch) pacman -T "$1" >/dev/null 2>&1 ;;
	esac
}

missing=()
for package in "${wanted[@]}"; do
	installed "$package" || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

line="$install ${missing[*]}"
if [ "$family" != debian ]; then
	echo "system packages are missing; please run:  sudo $line" >&2
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

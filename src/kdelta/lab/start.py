# SPDX-License-Identifier: GPL-2.0-or-later
"""How a kernel is started on a machine, as scripts that its own system runs. Pure.

``kexec``: kexec_file_load(2), or kexec_load(2) where the kernel has not the former, then an orderly shutdown into it.
``grub``: an entry for one boot (grub-reboot(8)); the distribution's stays the default. ``systemd-boot``: the same by
the EFI variable LoaderEntryOneShot (bootctl(1), set-oneshot; systemd.io/BOOT_LOADER_INTERFACE). Nothing is left of any
but files: what ends the kernel, reset or power, starts the machine's own system.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable

from kdelta.errors import UserError
from kdelta.lab.describe import Start
from kdelta.model import Hardware

_MARK = "# made by kdelta"
_EFI_DEFAULT = "/sys/firmware/efi/efivars/LoaderEntryDefault-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
_QUOTED = "\"'\\"
Scripts = tuple[list[str], list[str]]  # what makes it ready, and what leaves the machine's own system
# config_directory is gone by the time that an entry is booted (GRUB 2.06, normal/main.c: read_config_file).
_ENTRY = """\
MARK
set kdelta="${config_directory}/kdelta"
if [ -z "${config_directory}" ]; then set kdelta="${prefix}/kdelta"; fi
export kdelta
menuentry kdelta --id kdelta {
  linux "${kdelta}/kernel" WORDS
  initrd "${kdelta}/initramfs"
}
"""


def folder(uid: str) -> str:
    """Where files are kept there between boots, for two weeks."""
    return f"/var/tmp/kdelta-{uid}"


def command_line(console: str, mitigations_off: bool, machine: str, kernel: str, nonce: str) -> str:
    """The kernel's command line there: the words of the machine before the user's, so that the user's win.

    ``nonce`` tells one start from any other; the kernel takes a word with a dot for an option of a module, and does not
    hand it to PID 1 (init/main.c, unknown_bootoption).
    """
    words = [f"console={console} panic=10 quiet loglevel=4 cryptomgr.notests=1 random.trust_cpu=on", machine]
    words += ["mitigations=off"] if mitigations_off else []
    return " ".join([*filter(None, [*words, kernel]), f"kdelta.boot={nonce}"])


def hardware_words(wanted: Hardware) -> list[str]:
    """Words of the command line that set hardware where no system does (Linux 5.9 or later for the governor)."""
    governor = [f"cpufreq.default_governor={wanted.governor}"] if wanted.governor else []
    return [*governor, *(["nosmt"] if wanted.smt is False else [])]


def installed_line(own: str, added: str) -> str:
    """The command line of an installed system under another kernel: its own, and the words ``added``."""
    left_out = ("BOOT_IMAGE=", "initrd=", "kdelta.boot=")
    return " ".join([*(word for word in own.split() if not word.startswith(left_out)), added])


def script(start: Start, there: str, kernel: str, initramfs: tuple[str, ...], cmdline: str, last: str = "") -> str:
    """What starts the file ``kernel`` with ``cmdline``; ``initramfs`` are archives. All lie in the directory ``there``.

    ``last`` is run when nothing can be refused any more, right before the machine goes down.

    Raises:
        UserError: its boot loader cannot pass such a command line on.
    """
    lines = ["set -eu", f"cd {shlex.quote(there)}", f"cat {' '.join(map(shlex.quote, initramfs))} >initramfs"]
    ready, leave = _SCRIPTS[start](kernel, cmdline)
    return "\n".join([*lines, *ready, *filter(None, [last]), *leave])


def by_script(start: Start) -> bool:
    """Whether a script of the machine's own system starts it; else a boot loader is told from here."""
    return start in _SCRIPTS


def reboot(mode: str = "") -> list[str]:
    """What restarts the machine; ``mode``: the argument of reboot(2), which some boot loaders take for an order."""
    argument = f" --reboot-argument={mode}" if mode else ""
    return [
        "sync",
        f"if [ -d /run/systemd/system ]; then systemctl --no-block{argument} reboot; else reboot {mode}; fi",
    ]


def _kexec(kernel: str, cmdline: str) -> Scripts:
    loaded = ["kexec", "--kexec-syscall-auto", "--load", kernel, "--initrd=initramfs", f"--command-line={cmdline}"]
    ready = [
        "command -v kexec >/dev/null || { echo 'kexec is not installed there (kexec-tools)' >&2; exit 1; }",
        shlex.join(loaded),
    ]
    return ready, [
        "if [ -d /run/systemd/system ]; then systemctl --no-block kexec; else",
        "    sync",
        "    (sleep 1; exec kexec --exec) </dev/null >/dev/null 2>&1 &",
        "fi",
    ]


def _grub(kernel: str, cmdline: str) -> Scripts:
    """GRUB forgets the entry as it boots it, in its environment block: on a file system that it cannot write, never."""
    if any(c in cmdline for c in _QUOTED):
        raise UserError(f"GRUB passes no quotes on: {cmdline!r} can be started by kexec alone")
    words = " ".join(shlex.quote(word) for word in cmdline.split())
    entry = _ENTRY.replace("MARK", _MARK).replace("WORDS", words)
    ready = [
        "for grub in /boot/grub /boot/grub2 ''; do [ -f \"$grub/grub.cfg\" ] && break; done",
        "[ -n \"$grub\" ] || { echo 'no grub.cfg in /boot/grub or /boot/grub2' >&2; exit 1; }",
        f'if [ -f "$grub/custom.cfg" ] && ! grep -q \'^{_MARK}\' "$grub/custom.cfg"; then',
        '    echo "$grub/custom.cfg is not kdelta\'s: start this machine by kexec" >&2; exit 1',
        "fi",
        'case "$(grub-probe --target=abstraction "$grub") $(grub-probe --target=fs "$grub")" in',
        "*lvm* | *diskfilter* | *btrfs* | *zfs*)",
        "    echo 'GRUB cannot write to its file system there, so that the entry would stay: use kexec' >&2; exit 1 ;;",
        "esac",
        'mkdir -p "$grub/kdelta"',
        f'cp {shlex.quote(kernel)} "$grub/kdelta/kernel"',
        'mv initramfs "$grub/kdelta/initramfs"',
        f'printf %s {shlex.quote(entry)} >"$grub/custom.cfg"',
        "if command -v grub-reboot >/dev/null; then grub-reboot kdelta; else grub2-reboot kdelta; fi",
    ]
    return ready, reboot()


def _systemd_boot(kernel: str, cmdline: str) -> Scripts:
    """A Type #1 entry (Boot Loader Specification), for one boot; systemd-boot forgets that it is wanted as it boots it.

    Without a default of its own it takes the entry that sorts first, which may be ours (systemd 252, boot.c:
    config_entry_compare).
    """
    entry = f"title kdelta\nlinux /kdelta/kernel\ninitrd /kdelta/initramfs\noptions {' '.join(cmdline.split())}\n"
    ready = [
        "command -v bootctl >/dev/null || { echo 'bootctl is not installed there (systemd-boot)' >&2; exit 1; }",
        "bootctl is-installed >/dev/null 2>&1 || { echo 'systemd-boot is not installed there' >&2; exit 1; }",
        "esp=$(bootctl --print-esp-path) boot=$(bootctl --print-boot-path)",
        '[ -d "$boot" ] || { echo "its boot partition is not mounted at $boot" >&2; exit 1; }',
        """default=$(sed -n 's/^default[[:space:]]*//p' "$esp/loader/loader.conf" 2>/dev/null || true)""",
        f'if [ -z "$default" ] && [ ! -e {_EFI_DEFAULT} ]; then',
        "    echo 'systemd-boot has no default entry there: bootctl set-default ID' >&2; exit 1",
        "fi",
        "case kdelta.conf in",
        '$default) echo "the default entry there ($default) takes in kdelta\'s: name one" >&2; exit 1 ;;',
        "esac",
        'mkdir -p "$boot/kdelta" "$boot/loader/entries"',
        f'cp {shlex.quote(kernel)} "$boot/kdelta/kernel"',
        'mv initramfs "$boot/kdelta/initramfs"',
        f'printf %s {shlex.quote(entry)} >"$boot/loader/entries/kdelta.conf"',
        "bootctl set-oneshot kdelta.conf",
    ]
    return ready, reboot()


_SCRIPTS: dict[Start, Callable[[str, str], Scripts]] = {
    "kexec": _kexec,
    "grub": _grub,
    "systemd-boot": _systemd_boot,
}

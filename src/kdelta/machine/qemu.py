# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU's command line. Pure: GuestSpec -> argv, so that the same guest always gets the same words.

Guests get no network, no host files, no default devices, and QEMU's own seccomp sandbox.
"""

from __future__ import annotations

from kdelta.machine import turns
from kdelta.machine.options import GuestSpec

_SANDBOX = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"
_SANDBOX_FORKS = _SANDBOX.replace("spawn=deny", "spawn=allow")  # plugin/serve.c denies what is no fork of its own
# REP features change what a copy costs: with ERMS/FSRM the kernel patches its copies to "rep movsb", which the
# emulator executes one byte at a time (FEASIBILITY.md). fsrs and fzrm are unknown to QEMU 7.2.
# The "max" CPU grows with QEMU: between 7.2 and 10.0 it gained another family (which decides X86_FEATURE_REP_GOOD, so
# whether Linux before 6.4 clears memory with "rep stosq") and the features below. Exact guests keep to what 7.2 had.
_PINNED = (
    ",family=15,model=107,stepping=1,-rdseed,-sha-ni,-rdpid,-x2apic,-cmp-legacy,-3dnowprefetch,-wbnoinvd,-xsaveerptr"
)
# arm64's "max" cannot be cut down so: with FEAT_MOPS (after 7.2) Linux 7.0 clears memory by one instruction, and
# pidfd_open was slower than on 6.12 in one QEMU and faster in another. A core that exists is the same in each.
ARM_CORE = "neoverse-n1"
_REP_OFF_OLD = ",-erms,-fsrm"
_REP_OFF_NEW = ",-erms,-fsrm,-fsrs,-fzrm"
_NAMES = {"x86_64": "qemu-system-x86_64", "arm64": "qemu-system-aarch64"}

# Boot options shared by all guests: a panic ends the guest at once (-no-reboot), warnings reach the console (a WARN is
# one, and its trace; good boots of Debian's kernels have three such lines), crypto self-tests cost millions of
# instructions, and an emulated TSC must not be declared unstable by a watchdog that the host delayed.
_APPEND = "panic=-1 loglevel=5 cryptomgr.notests=1 random.trust_cpu=on"
_APPEND_X86 = "console=ttyS0 8250.nr_uarts=4 tsc=reliable no_timer_check"
_APPEND_ARM = "console=ttyAMA0"
_APPEND_EXACT = "nokaslr norandmaps randomize_kstack_offset=off"
# On one CPU Linux patches every LOCK prefix out (arch/x86/kernel/alternative.c), so that atomic operations would count
# as none. 7.3 has neither the patching nor the option. arm64 patches by CPU feature only, so its guests execute the
# LSE atomics that its CPU has, whatever the number of CPUs.
_APPEND_EXACT_X86 = "noreplace-smp"
_APPEND_LINES = "slab_nomerge"  # else a cache has the name of another whose objects are as large (mm/slab_common.c)


def binary_name(arch: str) -> str:
    """The program that emulates ``arch``."""
    return _NAMES[arch]


def _escape(path: object) -> str:
    """A path inside a QEMU option list: commas are doubled."""
    return str(path).replace(",", ",,")


def append_line(guest: GuestSpec) -> str:
    """The kernel command line: ours first, so that the user's own words win."""
    words = [_APPEND, _APPEND_X86 if guest.arch == "x86_64" else _APPEND_ARM]
    if guest.mode == "exact":
        words.append(_APPEND_EXACT)
        if guest.arch == "x86_64":
            words.append(_APPEND_EXACT_X86)
        if guest.options.smp > 1:
            words.append(_APPEND_LINES)
    if guest.mitigations == "off":
        words.append("mitigations=off")
    if guest.kernel.cmdline:
        words.append(guest.kernel.cmdline)
    return " ".join(words)


def _cpu(guest: GuestSpec) -> str:
    if guest.accel == "kvm":
        return "host"
    if guest.arch == "arm64":
        return "max,pauth-impdef=on" if guest.mode == "timed" else ARM_CORE
    if guest.mode == "timed":
        return "max"
    if guest.options.rep_features:
        return "max" + _PINNED
    return "max" + _PINNED + (_REP_OFF_NEW if guest.qemu_version >= (9, 0) else _REP_OFF_OLD)


def _machine(guest: GuestSpec) -> list[str]:
    board = "pc" if guest.arch == "x86_64" else "virt,gic-version=3"
    accel = "kvm" if guest.accel == "kvm" else "tcg"
    if guest.mode == "timed" and guest.accel == "tcg":
        accel += ",thread=multi" if guest.options.smp > 1 else ",thread=single"
    if guest.snapshot_save or guest.restored:
        board += ",memory-backend=ram"
    size = ["-smp", str(guest.options.smp), "-m", f"{guest.options.memory_mib}M"]
    return ["-M", board, "-accel", accel, "-cpu", _cpu(guest), *size]


def _exact(guest: GuestSpec) -> list[str]:
    shift = guest.boot_shift if guest.snapshot_save else 0
    words = [
        "-icount",
        f"shift={shift},sleep=off",
        "-seed",
        str(guest.seed),
        "-rtc",
        "base=2026-01-01T00:00:00,clock=vm",
    ]
    if guest.plugin is not None and guest.snapshot_save:
        words += ["-plugin", f"{_escape(guest.plugin)},counted=off"]
    elif guest.plugin is not None:
        lazy = "" if guest.counters_from_start else "lazy=on,"
        plugin = f"{_escape(guest.plugin)},{lazy}out={_escape(guest.path('counts'))}"
        if guest.orders is not None:
            plugin += f",serve={guest.orders}"
        if guest.order is not None:
            plugin += f",order={_escape(guest.order)}"
        if guest.entries is not None:
            plugin += f",entries={_escape(guest.entries)}"
            if guest.functions is not None:
                plugin += f",functions={_escape(guest.functions)}"
        if guest.hold_sites is not None:
            plugin += f",sites={_escape(guest.hold_sites)},holds={_escape(guest.path('holds'))}"
        if guest.options.smp > 1:
            plugin += f",lines={_escape(guest.path('lines'))}"
            if guest.kernel_facts is not None:
                plugin += f",kernel={_escape(guest.kernel_facts)}"
            if guest.restored:
                plugin += f",period={turns.period_ns(guest.options.turn_ns, guest.options.smp)}"
        words += ["-plugin", plugin]
    if guest.arch == "x86_64":
        words += ["-device", "ib700", "-action", "watchdog=pause", "-device", "isa-debug-exit"]
    if guest.snapshot_save or guest.restored:
        share = "on" if guest.snapshot_save else "off"
        ram = f"memory-backend-file,id=ram,size={guest.options.memory_mib}M,mem-path={_escape(guest.path('ram'))}"
        words += ["-object", f"{ram},share={share}"]
        words += ["-qmp", "unix:qmp.sock,server=on,wait=off"]  # where it starts: see links.py
    if guest.restored:
        words += ["-incoming", "defer"]
        if guest.options.smp > 1:
            words += ["-qtest", "unix:qtest.sock,server=on,wait=off", "-qtest-log", "none"]
    if guest.jobs_in_fw_cfg:
        words += ["-fw_cfg", f"name=opt/kdelta/jobs,file={_escape(guest.path('jobs'))}"]
    return words


def _ports(guest: GuestSpec) -> list[str]:
    words = ["-chardev", f"file,id=console,path={_escape(guest.path('console'))}", "-serial", "chardev:console"]
    words += ["-chardev", f"file,id=records,path={_escape(guest.path('stream'))}"]
    if guest.snapshot_save or guest.restored:  # no driver, no interrupts: see guest/init_snapshot.c
        words += ["-device", "isa-debugcon,iobase=0xe9,chardev=records"]
    elif guest.port == "virtio":
        words += ["-device", "virtio-serial-pci", "-device", "virtserialport,chardev=records,name=kdelta"]
    elif guest.arch == "x86_64":
        words += ["-serial", "chardev:records"]
    else:  # the virt board has one UART; PCI's 8250 becomes ttyS0
        words += ["-device", "pci-serial,chardev=records"]
    return words


def booted(guest: GuestSpec) -> str:
    """The path of the image that QEMU is given."""
    # The uncompressed image enters through PVH and saves the emulated decompression (CONFIG_PVH, Linux 4.21).
    if guest.arch == "x86_64" and guest.kernel.vmlinux_path and guest.kernel.config.get("PVH") == "y":
        return guest.kernel.vmlinux_path
    return guest.kernel.image_path


def argv(guest: GuestSpec) -> list[str]:
    """The whole command line for ``guest``."""
    words = [str(guest.qemu), "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-nic", "none"]
    words += ["-sandbox", _SANDBOX if guest.orders is None else _SANDBOX_FORKS, *_machine(guest)]
    if guest.mode == "exact":
        words += _exact(guest)
    if not guest.restored:  # what is restored has been booted
        words += ["-kernel", booted(guest), "-initrd", str(guest.path("initramfs")), "-append", append_line(guest)]
    return words + _ports(guest)

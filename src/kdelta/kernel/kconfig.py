# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernel configuration: read a .config, keep the facts that cases and machines need, say what each one is for. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct

_SET = re.compile(r'^CONFIG_([A-Za-z0-9_]+)=(?:"(.*)"|(\S+))\s*$')
_UNSET = re.compile(r"^# CONFIG_([A-Za-z0-9_]+) is not set\s*$")
_OF_TOOLS = re.compile(
    r"CONFIG_(\w+_VERSION|CC_VERSION_TEXT|RUSTC_VERSION_TEXT|LOCALVERSION|LOCALVERSION_AUTO|BUILD_SALT"
    r"|(AS|CC|LD|RUSTC|TOOLS|TOOLCHAIN)_(HAS|CAN|IS)\w*):"
)
_FOLLOWS = re.compile(r"CONFIG_(ARCH|HAVE|GENERIC|NEED)_")  # from others, by convention


class Fact(Struct, frozen=True):
    """An option that something depends on. ``symbol`` is a function that only a kernel with the option has.

    ``moves``: it changes figures too, whatever else it is for. ``formerly``: its name in older releases; those that
    know neither have no such option, and may have all the same what it is for.
    """

    option: str
    needed_for: str
    symbol: str = ""
    moves: bool = False
    formerly: str = ""


# In the order in which people read them: booting, measuring, explaining, and what changes the figures themselves.
FACTS: tuple[Fact, ...] = (
    Fact("BLK_DEV_INITRD", "booting any guest", "populate_rootfs"),
    Fact("BINFMT_ELF", "booting any guest", "load_elf_binary"),
    Fact("DEVTMPFS", "booting any guest", "devtmpfs_init"),
    Fact("SERIAL_8250", "records (second UART)", "serial8250_init"),
    Fact("SERIAL_8250_CONSOLE", "the console log", "univ8250_console_init"),
    Fact("SERIAL_AMBA_PL011", "the console log on arm64", "pl011_init"),
    Fact("VIRTIO_PCI", "records (virtio port)", "virtio_pci_probe"),
    Fact("VIRTIO_MMIO", "microvm machines", "virtio_mmio_probe"),
    Fact("VIRTIO_CONSOLE", "records (virtio port)", "virtcons_probe"),
    Fact("PVH", "booting vmlinux directly", "xen_prepare_pvh"),
    Fact("DEVMEM", "snapshots on arm64", "write_mem"),
    Fact("X86_IOPL_IOPERM", "snapshots on x86-64", "ksys_ioperm"),
    Fact("KALLSYMS", "names of functions (because)", "kallsyms_lookup"),
    Fact("KALLSYMS_ALL", "names of data"),
    Fact("ANON_VMA_NAME", "case fork_vmas, named", "anon_vma_name_alloc"),
    Fact("BLK_DEV_RAM", "case files, on all but tmpfs", "brd_init"),
    Fact("EXT4_FS", "case files, on ext4", "ext4_alloc_inode"),
    Fact("XFS_FS", "case files, on xfs", "xfs_trans_commit"),
    Fact("BTRFS_FS", "case files, on btrfs", "btrfs_alloc_path"),
    Fact("F2FS_FS", "case files, on f2fs", "f2fs_write_checkpoint"),
    Fact("MEMCG", "runs in a memory cgroup", "mem_cgroup_css_alloc", moves=True),
    Fact("CGROUP_PIDS", "leak check with pids.max", "pids_css_alloc"),
    Fact("SLUB_DEBUG", "kernel memory per object", "object_err"),
    Fact("FTRACE", "traces", "ftrace_init"),
    Fact("FUNCTION_TRACER", "traces", "function_trace_call", moves=True),  # a nop at the start of each function
    Fact("KPROBE_EVENTS", "traces: write sizes", "kprobe_dispatcher"),
    Fact("FPROBE_EVENTS", "traces: write sizes", "fentry_dispatcher"),
    Fact("HIST_TRIGGERS", "traces: histograms", "event_hist_trigger"),
    Fact("SYNTH_EVENTS", "traces: lock wait", "synth_event_create"),
    Fact("LOCK_STAT", "lock statistics", "lock_stat_open"),
    Fact("DEBUG_INFO_BTF", "traces: arguments by name", "btf_vmlinux_init"),
    Fact("DEBUG_FS", "traces", "debugfs_init"),
    Fact("PREEMPT_NONE", "figures: preemption"),
    Fact("PREEMPT_VOLUNTARY", "figures: preemption"),
    Fact("PREEMPT_LAZY", "figures: preemption"),
    Fact("PREEMPT", "figures: preemption"),
    Fact("PREEMPT_DYNAMIC", "figures: preemption", "preempt_model_full"),
    Fact("PREEMPT_RT", "figures: preemption"),
    Fact("HZ", "figures: timer ticks"),
    Fact("NO_HZ_FULL", "figures: timer ticks"),
    Fact("KFENCE", "figures: sampled allocations", "kfence_init"),
    Fact("KASAN", "figures: a debug kernel", "kasan_report"),
    Fact("LOCKDEP", "figures: a debug kernel", "lockdep_init"),
    Fact("PROVE_LOCKING", "figures: a debug kernel"),
    Fact("DEBUG_VM", "figures: a debug kernel"),
    Fact("KCSAN", "figures: a debug kernel", "kcsan_init"),
    Fact("KCOV", "figures: a debug kernel", "__sanitizer_cov_trace_pc"),
    Fact("PROFILE_ALL_BRANCHES", "figures: a debug kernel", "ftrace_likely_update"),
    Fact("DEBUG_OBJECTS", "figures: a debug kernel", "debug_object_activate"),
    Fact("DEBUG_PREEMPT", "figures: a debug kernel"),
    Fact("DEBUG_PAGEALLOC_ENABLE_DEFAULT", "figures: a debug kernel"),
    Fact("DEBUG_SPINLOCK", "figures: a debug kernel", "do_raw_spin_lock"),
    Fact("SLUB_DEBUG_ON", "figures: a debug kernel"),
    Fact("UBSAN", "figures: checks in the code"),
    Fact("SMP", "figures: one CPU or several"),
    Fact("HIGH_RES_TIMERS", "figures: timer ticks"),
    Fact("INIT_ON_ALLOC_DEFAULT_ON", "figures: zeroed allocations"),
    Fact("INIT_ON_FREE_DEFAULT_ON", "figures: zeroed allocations"),
    Fact("CPU_MITIGATIONS", "figures: mitigations", formerly="SPECULATION_MITIGATIONS"),  # until 6.9
    Fact("STACKPROTECTOR", "figures: checks in the code"),
    Fact("HARDENED_USERCOPY", "figures: checks in the code"),
    Fact("SLAB_FREELIST_HARDENED", "figures: checks in the code"),
    Fact("SECURITY", "figures: hooks of security modules"),
    Fact("UNWINDER_FRAME_POINTER", "figures: frame pointers"),
    Fact("SLUB_TINY", "figures: slab without caches"),
    Fact("TRANSPARENT_HUGEPAGE", "figures: huge pages", "do_huge_pmd_anonymous_page"),
    Fact("RANDOM_KMALLOC_CACHES", "figures: slab placement"),
    Fact("RANDOMIZE_KSTACK_OFFSET_DEFAULT", "figures: stack placement"),
    Fact("CC_OPTIMIZE_FOR_SIZE", "figures: the compiler's aim"),
    Fact("LTO_CLANG", "figures: the compiler's aim"),
    Fact("CFI", "figures: checks in the code", formerly="CFI_CLANG"),  # until 6.18
    Fact("CC_VERSION_TEXT", "figures: the compiler"),
)
_FIGURES = [fact for fact in FACTS if fact.needed_for.startswith("figures")]
_FIGURES += [fact for fact in FACTS if fact.moves]
_MOVING = {fact.option: at for at, fact in enumerate(_FIGURES)}
# What programs, the C library and cases ask for without a thought: one that fails without says seldom why.
_EXPECTED = (
    "PROC_FS", "SYSFS", "FUTEX", "TMPFS", "SHMEM", "MULTIUSER", "UNIX", "EPOLL", "EVENTFD", "SIGNALFD", "TIMERFD",
    "POSIX_TIMERS", "FILE_LOCKING", "SYSVIPC", "AIO", "ADVISE_SYSCALLS", "BINFMT_SCRIPT", "PRINTK",
)  # fmt: skip


def parse(text: str) -> dict[str, str]:
    """Options of a .config, without ``CONFIG_``: ``y``, ``m``, ``n`` ("is not set"), or the value; no other lines."""
    options: dict[str, str] = {}
    for line in text.splitlines():
        if match := _SET.match(line):
            options[match[1]] = match[2] if match[2] is not None else match[3]
        elif match := _UNSET.match(line):
            options[match[1]] = "n"
    return options


def facts(text: str) -> dict[str, str]:
    """The facts of a complete .config: what it does not mention cannot be set there, so it is ``n``."""
    return facts_of(parse(text))


def facts_of(options: Mapping[str, str]) -> dict[str, str]:
    """The facts of all options of a complete .config; {} of none."""
    if not options:
        return {}
    found = ((fact, options.get(fact.option, options.get(fact.formerly, "n"))) for fact in FACTS)
    return {
        fact.option: value
        for fact, value in found
        if not fact.formerly or fact.option in options or fact.formerly in options
    }


def expected_off(options: Mapping[str, str]) -> tuple[str, ...]:
    """The options that are off in a complete .config and that programs and cases take for granted; () without one."""
    return tuple(name for name in _EXPECTED if options.get("MMU") == "y" and options.get(name, "n") == "n")


def figures_differ(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """The facts that move figures and differ, as ``CONFIG_HZ: 250 -> 1000``; what is unknown of one does not.

    The compiler is no option, and is told apart.
    """
    options = [option for option in _MOVING if option != "CC_VERSION_TEXT"]
    known = [(option, before[option], after[option]) for option in options if option in before and option in after]
    return tuple(f"CONFIG_{option}: {old} -> {new}" for option, old, new in known if old != new)


def that_may_move_figures(lines: Iterable[str]) -> tuple[str, ...]:
    """Lines of ``config_fragment.differences``, those known to move figures first.

    Without what the tools and the name of a build bring by themselves, and without modules that one of them lacks:
    what a guest does not load costs it nothing.
    """
    return ranked(line for line in lines if not (_OF_TOOLS.match(line) or line.endswith((": m -> n", ": n -> m"))))


def ranked(lines: Iterable[str], asked: Collection[str] = ()) -> tuple[str, ...]:
    """Lines of ``config_fragment.differences``: those ``asked`` for, those known to move figures, others.

    Those that tools and other options bring by themselves come last: a line has room for few, and by the alphabet
    PREEMPT_RT stood behind a dozen that follow from it.
    """

    def order(line: str) -> tuple[bool, int]:
        option = line.partition(":")[0].removeprefix("CONFIG_")
        last = bool(_OF_TOOLS.match(line) or _FOLLOWS.match(line))
        return option not in asked, _MOVING.get(option, len(_FIGURES) + last)

    return tuple(sorted(lines, key=order))


def moving_figures(lines: Iterable[str]) -> int:
    """How many of such lines are of options that are known to move figures."""
    return sum(line.partition(":")[0].removeprefix("CONFIG_") in _MOVING for line in lines)


def facts_from_symbols(names: Iterable[str]) -> dict[str, str]:
    """What the functions of an image prove when its config is not to be had: only ``y``; the rest stays unknown."""
    present = {fact.symbol: fact.option for fact in FACTS if fact.symbol}
    found = {present[name] for name in names if name in present}
    return {fact.option: "y" for fact in FACTS if fact.option in found}

# SPDX-License-Identifier: GPL-2.0-or-later
"""Which options would have a file compiled, by Makefiles and Kconfig files in the manner of 7.3's."""

from __future__ import annotations

import pytest

from kdelta.kernel import kbuild

FILES = {
    "Kconfig": 'source "fs/Kconfig"\n\nsource "block/Kconfig"\n\nsource "drivers/Kconfig"\n',
    "Kbuild": "obj-y\t\t+= fs/\nobj-$(CONFIG_BLOCK)\t+= block/\n",
    "block/Kconfig": 'menuconfig BLOCK\n\tbool "Enable the block layer" if EXPERT\n\tdefault y\n\n'
    'if BLOCK\nsource "block/Kconfig.iosched"\nendif # BLOCK\n',
    "block/Kconfig.iosched": 'config IOSCHED_BFQ\n\ttristate "BFQ I/O scheduler"\n\tselect BLK_ICQ\n',
    "block/Makefile": "obj-y\t\t:= bdev.o\nobj-$(CONFIG_IOSCHED_BFQ)\t+= bfq.o\nbfq-y := bfq-iosched.o bfq-wf2q.o\n",
    "fs/Kconfig": 'menu "File systems"\n\nif BLOCK\n\nsource "fs/ext4/Kconfig"\n\nendif # BLOCK\n\nendmenu\n',
    "fs/Makefile": "obj-$(CONFIG_EXT4_FS)\t\t+= ext4/\nobj-$(CONFIG_PROC_FS) += proc/\n",
    "fs/proc/Kconfig": 'config PROC_PAGE_MONITOR\n\tdefault y\n\tbool "Enable /proc page monitoring" if EXPERT\n',
    "fs/proc/Makefile": "obj-y += proc.o\nproc-y := \\\n\tbase.o\nproc-$(CONFIG_PROC_PAGE_MONITOR) += page.o\n",
    "fs/ext4/Kconfig": 'config EXT4_FS\n\ttristate "The Extended 4 (ext4) filesystem"\n\tselect JBD2\n\thelp\n'
    "\t  This is the next generation.\n\n\t  depends on what\n\t  you have\n\n"
    'config EXT4_FS_SECURITY\n\tbool "Ext4 Security Labels"\n\tdepends on EXT4_FS\n',
    "fs/ext4/Makefile": "obj-$(CONFIG_EXT4_FS) += ext4.o\n\next4-y\t:= balloc.o \\\n\t\tfsync.o\n"
    "ext4-$(CONFIG_EXT4_FS_SECURITY) += xattr_security.o\n",
    "drivers/Kconfig": 'source "drivers/net/Kconfig"\n',
    "drivers/net/Kconfig": 'menuconfig NETDEVICES\n\tdepends on NET\n\tbool "Network device support"\n\nif NETDEVICES\n'
    'config MII\n\ttristate\n\nconfig DUMMY\n\ttristate "Dummy net driver" if !S390\n'
    "\tdepends on PCI || ISA\n\nendif\n",
    "init/Kconfig": 'config KEXEC\n\tbool "kexec"\n',
    "kernel/Makefile": "obj-$(CONFIG_KEXEC) += kexec.o\nobj-$(CONFIG_KEXEC_CORE) += kexec_core.o\n",
    "arch/x86/kvm/Kconfig": 'menuconfig KVM\n\tbool "KVM"\n',
    "arch/x86/Kbuild": "obj-$(CONFIG_KVM) += kvm/\n",
    "arch/arm64/Kbuild": "obj-$(CONFIG_KVM) += kvm/\n",
    "drivers/soc/Kconfig": 'config SMEM\n\tbool "Memory"\n\tdepends on ARCH_QCOM\n\n'
    'config EITHER\n\tbool "Either"\n\tdepends on ARCH_QCOM || COMPILE_TEST\n',
    "drivers/soc/Makefile": "obj-$(CONFIG_SMEM) += smem.o\nobj-$(CONFIG_EITHER) += either.o\n",
    "drivers/net/Makefile": "obj-$(CONFIG_DUMMY) += dummy.o\nobj-$(CONFIG_MII) += mii.o\n"
    "obj-$(subst m,y,$(CONFIG_KVM)) += kvm.o\n",
}
CONFIG = {"X86": "y", "PCI": "y", "NET": "y", "PROC_FS": "y", "EXPERT": "y", "BLOCK": "n"}


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("fs/ext4/fsync.c", ("BLOCK", "EXT4_FS")),
        ("fs/ext4/ext4.h", ("BLOCK", "EXT4_FS")),
        ("fs/ext4/xattr_security.c", ("BLOCK", "EXT4_FS", "EXT4_FS_SECURITY")),
        ("fs/proc/page.c", ("PROC_PAGE_MONITOR",)),
        ("fs/proc/base.c", ()),
        ("block/bfq-iosched.c", ("BLOCK", "IOSCHED_BFQ")),
        ("block/bdev.c", ("BLOCK",)),  # by the root's Kbuild alone
        ("drivers/net/dummy.c", ("NETDEVICES", "DUMMY")),
        ("drivers/soc/smem.c", ()),
        ("drivers/soc/either.c", ()),
        ("arch/x86/kvm/x86.c", ("KVM",)),
        ("arch/arm64/kvm/arm.c", ()),
        ("drivers/net/mii.c", ()),  # no user may set it
        ("kernel/kexec.c", ("KEXEC",)),
        ("kernel/kexec_core.c", ()),
        ("drivers/net/kvm.c", ()),  # not told plainly
        ("include/linux/x.h", ()),
    ],
)
def test_options_that_compile_a_file(path: str, options: tuple[str, ...]) -> None:
    assert kbuild.missing(FILES.get, path, CONFIG) == options


def test_options_of_several_files_are_told_once() -> None:
    paths = ("fs/ext4/fsync.c", "block/bfq-wf2q.c")
    assert kbuild.missing_of(FILES.get, paths, CONFIG) == ("BLOCK", "EXT4_FS", "IOSCHED_BFQ")
    assert kbuild.missing_of(FILES.get, paths, CONFIG | {"BLOCK": "y", "EXT4_FS": "m"}) == ("IOSCHED_BFQ",)


def test_what_an_option_needs_is_told_of_the_file_that_declares_it() -> None:
    files = sorted(name for name in FILES if "Kconfig" in name)
    assert kbuild.needed(FILES.get, files, "EXT4_FS_SECURITY", CONFIG) == ("BLOCK", "EXT4_FS")
    assert kbuild.needed(FILES.get, files, "MII", CONFIG) == kbuild.needed(FILES.get, files, "GONE", CONFIG) == ()


SELECTED = {
    **FILES,
    "fs/Kconfig": 'if BLOCK\nsource "fs/ext4/Kconfig"\nsource "fs/old/Kconfig"\nsource "fs/jbd2/Kconfig"\nendif\n'
    "config FS_IOMAP\n\tbool\n",
    "fs/Makefile": FILES["fs/Makefile"] + "obj-$(CONFIG_JBD2) += jbd2/\nobj-$(CONFIG_FS_IOMAP) += iomap/\n",
    "fs/jbd2/Kconfig": "config JBD2\n\ttristate\n\tselect CRC32\n",
    "fs/jbd2/Makefile": "obj-$(CONFIG_JBD2) += jbd2.o\njbd2-objs := commit.o\n",
    "fs/iomap/Makefile": "obj-$(CONFIG_FS_IOMAP) += iomap.o\niomap-y += iter.o\n",
    "fs/ext4/Kconfig": FILES["fs/ext4/Kconfig"].replace("JBD2", "JBD2\n\tselect FS_IOMAP if BLOCK"),
    "fs/old/Kconfig": 'config OLD_FS\n\tbool "Old"\n\tselect FS_IOMAP\n',
}


def test_what_others_select_is_compiled_by_them() -> None:
    """Of a patch to jbd2 was said that it is not built, and not by what it would be."""
    assert kbuild.missing(SELECTED.get, "fs/jbd2/commit.c", CONFIG) == ("BLOCK", "EXT4_FS")
    assert kbuild.missing(SELECTED.get, "fs/iomap/iter.c", CONFIG) == ()  # by which of two is not ours to say
    assert kbuild.missing(SELECTED.get, "fs/iomap/iter.c", CONFIG, ["EXT4_FS"]) == ("BLOCK", "EXT4_FS")
    both = ("BLOCK", "OLD_FS", "EXT4_FS")
    assert kbuild.missing(SELECTED.get, "fs/iomap/iter.c", CONFIG, ["OLD_FS", "EXT4_FS"]) == both


ELSEWHERE = {
    **FILES,
    "Kconfig": 'source "init/Kconfig"\nsource "fs/Kconfig"\n',
    "init/Kconfig": 'source "block/Kconfig"\n',
    "block/Kconfig": FILES["block/Kconfig"].replace("if BLOCK\n", 'if BLOCK\nconfig ZONED\n\tbool "Zoned"\n', 1),
    "fs/Kconfig": FILES["fs/Kconfig"] + "config MBCACHE\n\ttristate\n\tdefault y if EXT4_FS=y\n"
    'source "fs/verity/Kconfig"\n',
    "fs/verity/Kconfig": 'config VERITY\n\tbool "Verity"\n',
    "fs/Makefile": FILES["fs/Makefile"] + "obj-$(CONFIG_MBCACHE) += mbcache.o\n",
    "fs/ext4/Makefile": FILES["fs/ext4/Makefile"] + "ext4-$(CONFIG_VERITY) += verity.o\n"
    "ext4-$(CONFIG_ZONED) += zoned.o\next4-$(CONFIG_NOWHERE) += nowhere.o\n",
    "arch/x86/kvm/Kconfig": FILES["arch/x86/kvm/Kconfig"] + 'config KVM_INTEL\n\ttristate "Intel"\n\tdepends on KVM\n',
    "arch/x86/kvm/Makefile": "obj-$(CONFIG_KVM_INTEL) += kvm-intel.o\nkvm-intel-y += vmx/vmx.o\n",
}


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("fs/ext4/verity.c", ("BLOCK", "EXT4_FS", "VERITY")),
        ("fs/ext4/zoned.c", ("BLOCK", "EXT4_FS", "ZONED")),
        ("fs/ext4/nowhere.c", ()),
        ("arch/x86/kvm/vmx/vmx.c", ("KVM", "KVM_INTEL")),
    ],
)
def test_an_option_of_another_directory_is_named_with_the_others(path: str, options: tuple[str, ...]) -> None:
    """Typed as told, fs/ext4/verity.c was not built: FS_VERITY is of fs/verity, and was left out of the options."""
    assert kbuild.missing(ELSEWHERE.get, path, CONFIG) == options


def test_what_another_option_sets_by_default_is_compiled_by_that() -> None:
    assert kbuild.missing(ELSEWHERE.get, "fs/mbcache.c", CONFIG, ["EXT4_FS"]) == ("BLOCK", "EXT4_FS")

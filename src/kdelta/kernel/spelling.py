# SPDX-License-Identifier: GPL-2.0-or-later
"""One notion of a function for all of kdelta: the name that a person wrote, of which compilers make several. Pure."""

from __future__ import annotations

import re

# What compilers and the kernel's macros append.
_SUFFIX = re.compile(
    r"(\.(part|isra|constprop|cold|lto_priv|localalias|llvm|ipa_sra|__uniq|cfi|cfi_jt)(\.\d+)*|\.\d+|_noprof)+$"
)
_PREFIX = re.compile(r"^(?:_+|do_|ksys_|x64_sys_|arm64_sys_|ia32_sys_|se_sys_|x64_compat_sys_|ia32_compat_sys_)+")


def fold(name: str) -> str:
    """The name as in the source: ``__slab_free.isra.0.cold`` -> ``__slab_free``, ``kmalloc_noprof`` -> ``kmalloc``.

    Compilers split and clone functions differently in each build; unfolded, a difference would show as gone and new.
    """
    folded = _SUFFIX.sub("", name) if "." in name or name.endswith("_noprof") else name
    return folded or name


def stem(name: str) -> str:
    """What a function shares with those that only wrap it: ``__x64_sys_read``, ``ksys_read`` -> ``read``."""
    folded = fold(name)
    return _PREFIX.sub("", folded) or folded

# SPDX-License-Identifier: GPL-2.0-or-later
"""One notion of a function: every part of kdelta that names one folds it the same way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.attribution import code, disassembly, holds, profiles, traces
from kdelta.kernel import calls, spelling
from kdelta.kernel.spelling import fold, stem
from kdelta.results import claim_share

PARTS = [
    ".part.0",
    ".isra.0",
    ".constprop.0",
    ".cold",
    ".cold.12",
    ".lto_priv.3",
    ".llvm.1234567890123456789",
    ".localalias",
    ".__uniq.77",
    ".cfi_jt",
    ".7",
    "_noprof",
    "",
]


@pytest.mark.parametrize(
    "name", ["pipe_write", "__slab_free", "kmalloc", "x", "f2fs_sync", "cold_start", "part_stat_read"]
)
def test_what_compilers_append_is_no_other_function(name: str) -> None:
    spelt = [name + first + second for first in PARTS for second in PARTS]
    assert {fold(one) for one in spelt} == {name}


@pytest.mark.parametrize(
    "name",
    ["do_cold", "is_part", "__x64_sys_read", "tcp.unknown", ".cold", "_noprof", ".0", "", "a.b.c", "trace_noprof_x"],
)
def test_a_name_that_only_looks_like_a_part_stays(name: str) -> None:
    assert fold(name) == name


@given(st.text(st.sampled_from("ab_.0cold1isrnp"), max_size=30))
def test_folding_is_done_once_and_never_leaves_nothing(name: str) -> None:
    assert fold(fold(name)) == fold(name)
    assert bool(fold(name)) == bool(name) and name.startswith(fold(name))


@pytest.mark.parametrize(
    ("name", "shared"),
    [
        ("__x64_sys_read", "read"),
        ("ksys_read", "read"),
        ("do_sys_openat2", "sys_openat2"),
        ("__do_sys_pidfd_open.isra.0", "sys_pidfd_open"),
        ("__arm64_sys_clone3", "clone3"),
        ("_", "_"),
        ("do_", "do_"),
        ("vfs_read", "vfs_read"),
    ],
)
def test_wrappers_share_a_stem_with_what_they_wrap(name: str, shared: str) -> None:
    assert stem(name) == shared


def test_all_that_name_functions_fold_them_alike() -> None:
    for module, name in (
        (code, "fold"),
        (disassembly, "fold"),
        (profiles, "source_name"),
        (traces, "fold"),
        (holds, "fold"),
        (calls, "fold"),
        (claim_share, "fold"),
    ):
        assert vars(module)[name] is spelling.fold, module.__name__

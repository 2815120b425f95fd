# SPDX-License-Identifier: GPL-2.0-or-later
"""The real thing: Debian's 6.12 built, patched from a mangled mail, compared. Minutes; uses the user's own cache."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from kdelta.attribution.code import compare, identical_code
from kdelta.attribution.disassembly import Image
from kdelta.errors import HostError, UserError
from kdelta.kernel.source import built_facts, resolve_source
from kdelta.kernel.sources import parse_kernel
from kdelta.model import Kernel

pytestmark = pytest.mark.full
DATA = Path(__file__).parents[2] / "data" / "mail"


@pytest.fixture(scope="module")
def base() -> Kernel:
    return resolve_source(parse_kernel("src:debian:6.12"))


def built(patch: str) -> Kernel:
    return resolve_source(parse_kernel(f"src:debian:6.12+{DATA / patch}"))


def image(kernel: Kernel) -> bytes:
    return Path(kernel.vmlinux_path or kernel.image_path).read_bytes()


def test_every_option_of_the_guest_was_had(base: Kernel) -> None:
    assert built_facts(parse_kernel("src:debian:6.12")).notes == ()
    assert {base.config[name] for name in ("ANON_VMA_NAME", "MEMCG", "KALLSYMS", "PVH", "HIST_TRIGGERS")} == {"y"}


def test_a_quoted_mail_with_collapsed_tabs_changes_one_function_within_a_minute(base: Kernel) -> None:
    started = time.monotonic()
    patched = built("pipe-loop-quoted.eml")
    assert time.monotonic() - started < 60
    made = compare(Image(image(base)), Image(image(patched)))
    assert [one.name for one in made.functions] == ["pipe_write"]
    assert made.functions[0].instructions_after - made.functions[0].instructions_before == 4
    assert patched.image_sha256 == built("pipe-loop.patch").image_sha256


def test_a_patch_of_comments_leaves_the_code_identical(base: Kernel) -> None:
    assert identical_code(image(base), image(built("pipe-comment.patch")))


def test_a_patch_that_does_not_compile_and_one_that_is_not_there_have_clear_answers(base: Kernel) -> None:
    with pytest.raises(HostError, match=r"the patch does not compile: .*fs/pipe\.c:452:.*totl_len"):
        built("pipe-broken.patch")
    with pytest.raises(UserError, match="cannot be taken out, it is not in this tree"):
        resolve_source(parse_kernel(f"src:debian:6.12-{DATA / 'pipe-loop.patch'}"))

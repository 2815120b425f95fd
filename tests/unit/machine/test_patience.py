# SPDX-License-Identifier: GPL-2.0-or-later
"""How long a guest of counts is waited for: never less because the host is busy, or because it is slow alone."""

from __future__ import annotations

from kdelta.machine.patience import Patience, Waited


def of(all_of: Patience, kernel: str, jobs: bytes = b"pipe", *, whole: bool = False) -> Waited:
    return all_of.of(kernel, jobs, 240.0, whole=whole)


def after_a_hang(took_s: float = 1.0) -> Patience:
    """A baseline that ran the case, and a patched kernel that hung in another."""
    known = Patience()
    of(known, "baseline").took(took_s)
    assert of(known, "patched", b"poll").hung(240.1, 230.0) == "not at its end after 240 s (--limit)"
    return known


def test_a_kernel_that_hung_is_given_up_sooner_in_its_other_cases() -> None:
    waited = of(after_a_hang(), "patched")
    assert not waited.is_enough(59.0)
    assert waited.is_enough(61.0)
    assert waited.hung(70.0, 61.2) == (
        "not at its end after 61 s of CPU time, more than 32 times what another kernel took; this one did not end "
        "another case within 240 s (--limit 240: to wait so long for each)"
    )


def test_what_is_dear_on_another_kernel_too_is_waited_for() -> None:
    waited = of(after_a_hang(took_s=5.0), "patched")
    assert not waited.is_enough(159.0)
    assert waited.is_enough(161.0)


def test_all_others_have_the_whole_limit() -> None:
    known = after_a_hang()
    assert not of(known, "baseline").is_enough(1e9), "it never hung"
    assert not of(known, "patched", b"fork").is_enough(1e9), "nobody else ran that"
    assert not of(known, "patched", whole=True).is_enough(1e9), "the user gave a limit"
    assert not of(known, "patched").seeded().is_enough(1e9), "what a rehearsal takes says nothing of the run"
    fresh = Patience()
    of(fresh, "baseline").took(1.0)
    assert not of(fresh, "patched").is_enough(1e9), "it may be slow"


def test_one_that_was_given_up_sooner_is_no_proof_against_others() -> None:
    known = after_a_hang()
    of(known, "patched").hung(70.0, 61.0)
    assert not of(known, "third").is_enough(1e9)
    of(known, "third", b"poll").took(3.0)
    assert not of(known, "patched", b"poll").is_enough(95.0), "the most that any other took"
    assert of(known, "patched", b"poll").is_enough(97.0)

# SPDX-License-Identifier: GPL-2.0-or-later
"""The one cause that a headline names."""

from __future__ import annotations

from msgspec.structs import replace

from kdelta.model import Because
from kdelta.report.cause import at_same_calls, cause
from kdelta.verdict.warnings import OtherCalls

# 5000 operations of io_uring, 6.12 to 7.0: do_syscall_64() holds the exit of system calls, and costs less with it.
INLINED = Because(
    gone=("syscall_exit_to_user_mode", "arch_exit_to_user_mode_prepare"),
    gone_delta=-196343.0,
    changed=(("do_syscall_64", 135533.0), ("io_submit_sqes", 90626.0)),
    taken=(("do_syscall_64", -266317.0),),
    gone_kept=100168.0,
)
LITTLE = replace(INLINED, taken=(("do_syscall_64", -26646.0),), gone_kept=26646.0)


def test_what_holds_now_what_it_called_is_no_cause() -> None:
    assert cause(INLINED, 6.06, 296512.0) == "of io_submit_sqes (+90626 of +296512)"
    assert cause(LITTLE, 6.06, 296512.0) == "of do_syscall_64 (+135533 of +296512)"


def test_what_lives_on_elsewhere_is_no_cause() -> None:
    assert cause(INLINED, -6.06, 296512.0) == ""
    assert cause(LITTLE, -6.06, 196343.0).endswith("are gone (-196343)")


def test_what_is_new_in_name_alone_is_no_cause() -> None:
    """ptrace(2) from 6.12 to 7.0: update_curr() was divided, and update_se() with all else "new" explained a rise."""
    divided = Because(new=("update_se",), new_delta=1412668.0, changed=(("clock", 510214.0),), new_kept=822725.0)
    assert cause(divided, 14.02, 2524640.0) == "of clock (+510214 of +2524640)"
    assert cause(replace(divided, new_kept=0.0), 14.02, 2524640.0) == "update_se is new (+1412668 of +2524640)"


def test_a_tenth_is_no_answer() -> None:
    """A second of sleep: "+20.92 %, because of chacha_permute (+11538 of +119457)"."""
    assert cause(Because(changed=(("chacha_permute", 11538.0),)), 20.9, 119457.0) == ""
    assert cause(Because(changed=(("chacha_permute", 21538.0),)), 20.9, 119457.0) != ""


def test_what_a_change_is_at_as_many_calls_is_a_range_where_their_prices_are_far_apart() -> None:
    other = OtherCalls(28.72, 1.34, (("read", 1722.0, 2189.0),), 0, "kernel")
    assert (at_same_calls(()), at_same_calls((other,))) == ("", "+1.34 %")
    assert at_same_calls((replace(other, then_percent=0.5),)) == "+0.50 % to +1.34 %"

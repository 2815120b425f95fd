# SPDX-License-Identifier: GPL-2.0-or-later
"""CASE, CASE_N and OPS read from C source, and what is refused there."""

from __future__ import annotations

import contextlib
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.errors import UserError
from kdelta.spec.sources import cases_of, counts_in_inner_loop, description_of, kind_of, without_comments

SOURCE = r"""
/* CASE(commented, "out") */
#include "case.h"
// CASE(out, "too")
CASE(eventfd, "eventfd(2): \"add\" /* no comment */ "
 "and read")
{
 x = "CASE(in_a_string, 1)";
}

OPS(eventfd, 8)
CASE_N(poll, "poll(2) of N pipes, NOT of n", 10, 1000)
{
}
OPS(poll, 1000 / N)
  CASE(indented, "is no case");
#ifdef SYS_something
static int fd;
#endif
CASE_N(plain, "plain", 0, 3)
"""


def test_cases_are_read_in_order_one_for_each_number() -> None:
    found = cases_of(SOURCE, "a.c")
    assert [(c.name, c.number, c.exact_ops) for c in found] == [
        ("eventfd", None, 8),
        ("poll-10", 10, 64),
        ("poll-1000", 1000, 1),
        ("plain-0", 0, 64),
        ("plain-3", 3, 64),
    ]
    assert found[0].title == 'eventfd(2): "add" /* no comment */ and read'
    assert found[1].title == "poll(2) of 10 pipes, NOT of n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('CASE(Upper, "x")', "not of the form"),
        ("CASE(one)", "not of the form"),
        ("CASE(one, TITLE)", "not of the form"),
        ('CASE(one, "x\\n")', "not of the form"),
        ('CASE(one, "x", 1)', "is CASE_N"),
        ('CASE(one, "x") {}\nSETUP(other) {}', "SETUP(other) {}: no case of that name"),
        ('CASE(one, "x") {}\nAFTER(One) {}', "no case of that name"),
        ('CASE_N(one, "x")', "one number or more"),
        ('CASE_N(one, "x", 0)', "one number or more"),
        ('CASE_N(one, "x", 1, 1)', "each once"),
        ('CASE_N(one, "x", 0x10)', "not of the form"),
        ('CASE_N(one, "x", 9999999999)', "at most 4294967296"),
        ('CASE(one, "x")\nCASE(one, "y")', "a second CASE"),
        ('CASE(one, "x")\nOPS(one, 8)\nOPS(one, 9)', "a second OPS"),
        ('CASE(one, "x")\nOPS(one, 0)', "not of the form"),
        ('CASE(one, "x")\nOPS(one, 2000000)', "at most 1000000"),
        ('CASE(one, "x")\nOPS(two, 8)', "no case of that name"),
        ('CASE(one, "x")\nOPS(one, 8 / N)', "divides by N"),
        ('CASE_N(one, "x", 0, 1)\nOPS(one, 8 / N)', "divides by N"),
        ('#if 1\nCASE(one, "x")\n#endif', "inside of #if"),
        ('#if 1\n#ifdef X\n#endif\nCASE(one, "x")', "inside of #if"),
    ],
)
def test_what_the_compiler_might_see_otherwise_is_refused_with_file_and_line(text: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        cases_of("\n\n" + text, "dir/a.c")
    assert str(error.value).startswith("dir/a.c:")
    assert int(str(error.value).split(":")[1]) >= 3
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_is_told_by_what_it_holds() -> None:
    wis = 'char *testcase_description = "x \\"y\\"";\nvoid testcase(unsigned long long *i, unsigned long nr) {}\n'
    assert kind_of(SOURCE) == "cases"
    assert kind_of(wis) == "testcase"
    assert description_of(wis) == 'x "y"'
    assert kind_of('#include "workload.h"\nWORKLOAD(x);\n') == "workload"
    assert kind_of("/*\nCASE(a, 1)\nWORKLOAD(x);\n*/ int main(void) { return 0; }") == ""


@given(st.text(alphabet='CASE_NOPS(,)" \\\n/*#ifend01aN', max_size=200))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    assert without_comments(text).count("\n") == text.count("\n")
    try:
        cases_of(text, "a.c")
    except UserError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize("piece", ["/*", '"\\', 'CASE(a, "x" ', "CASE(\n", "#if\n", "OPS(a,\n", 'CASE(a, "b", 1', "'"])
def test_reading_is_linear_in_the_text(piece: str) -> None:
    def cost(n: int) -> float:
        text, start = piece * n, time.process_time()
        kind_of(text)
        with contextlib.suppress(UserError):
            cases_of(text, "a.c")
        return time.process_time() - start

    cost(1000)
    assert cost(80_000) < 40 * (cost(8000) + 0.01)  # 10 where linear, 100 where quadratic


@pytest.mark.parametrize(
    ("body", "inner"),
    [
        ("while (1) { open(f); close(f); (*iterations)++; }", False),
        ("while (1) { for (i = 0; i < n; i += page) { c[i] = 0; (*iterations)++; } munmap(c); }", True),
        ("for (;;) { for (i = 0; i < n; i++) c[i] = 0; (*iterations)++; }", False),
        ("for (;;) { for (i = 0; i < f(n); i++) *iterations += 1; }", True),
        ("while (1) { do { ret = read(fd); } while (ret != 1 && errno == EINTR); ++*iterations; }", False),
        ("while (1) { if (x) { (*iterations)++; } }", False),
        ("while (1) { while (y) { if (x) { (*iterations)++; } } }", True),
        ("for (i = 0; i < 3; i++) { /* { */ } while (1) { ++(*iterations); }", False),
        ('while (1) { for (i = 0; i < n; i++) { puts("}"); (*iterations)++; } }', True),
        ("while (1) { putchar('{'); for (i = 0; i < n; i++) { x(); } (*iterations)++; }", False),
        ("} } (*iterations)++ for (", False),
    ],
)
def test_a_testcase_that_counts_in_an_inner_loop_is_known(body: str, inner: bool) -> None:
    text = f"#include <stdio.h>\nvoid testcase(unsigned long long *iterations, unsigned long nr)\n{{\n{body}\n}}\n"
    assert counts_in_inner_loop(text) is inner


@pytest.mark.parametrize(
    ("body", "alike"),
    [
        ("while (1) { f(fd); at += 8; if (at >= SIZE) { ftruncate(fd, 0); at = 0; } (*iterations)++; }", False),
        ("while (1) { if (read(fd) == 0) lseek(fd, 0, SEEK_SET); (*iterations)++; }", False),
        ("while (1) { if (read(fd) == 0) at = 0; f(fd); (*iterations)++; }", True),
        ("while (1) { int n = f(fd); if (errno != EINTR) assert(n == 0); (*iterations)++; }", True),
        ("while (1) { if (x) at = 0; else { f(fd); } (*iterations)++; }", False),
        ("if (getrlimit(r)) { setrlimit(r); } while (1) { f(fd); (*iterations)++; }", True),
    ],
)
def test_a_testcase_that_makes_a_call_in_some_iterations_alone_is_known(body: str, alike: bool) -> None:
    """fallocate1.c truncates once in 128 operations: of 275 there were three on 6.1, and of 268 two on 6.12."""
    text = f"void testcase(unsigned long long *iterations, unsigned long nr)\n{{\n{body}\n}}\n"
    assert counts_in_inner_loop(text) is not alike


def test_the_counter_of_a_testcase_has_the_name_that_the_testcase_gives_it() -> None:
    """tlb_flush1.c to tlb_flush3.c call it iteration."""
    loop = "while (1) { for (i = 0; i < n; i++) { touch(p + i); (*iteration)++; } munmap(p); }"
    assert counts_in_inner_loop(f"void testcase(unsigned long *iteration, unsigned long nr)\n{{\n{loop}\n}}\n")


def test_white_space_behind_a_counter_is_looked_through_once() -> None:
    assert not counts_in_inner_loop(
        "void testcase(long *iterations, long nr) { while (1) *iterations" + " " * 200_000 + "}"
    )


def test_parentheses_without_end_are_looked_through_once() -> None:
    assert not counts_in_inner_loop("testcase()" + "for (" * 200_000)


def test_no_group_is_possessive_anywhere() -> None:
    """Debian 12's Python 3.11.2 lets such a group end too early: comments were read as code there (gh-106052)."""
    sources = (Path(__file__).resolve().parents[3] / "src").rglob("*.py")
    possessive = re.compile(r"\)(?:[*+?]|\{[\d,]+\})\+|\(\?>")
    assert [path.name for path in sources if possessive.search(path.read_text("utf-8"))] == []

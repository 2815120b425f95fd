# SPDX-License-Identifier: GPL-2.0-or-later
"""Definitions of functions in C and assembly, by the names of their symbols."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.kernel import definitions

HEADER = """\
#ifdef CONFIG_MEMCG
static inline bool lru_add(struct lruvec *lruvec,
			struct folio *folio)
{
	int seq;	/* of the { generation */

	seq = folio_seq(folio);
	return seq;
}
#else
static inline bool lru_add(struct lruvec *lruvec, struct folio *folio)
{
	return false;
}
static inline void lru_del(struct folio *folio) { }
#endif
bool lru_gone(struct folio *folio);
#define lru_made(folio) do { } while (0)
"""
ASSEMBLY = """\
SYM_TYPED_FUNC_START(__memset)
	ALTERNATIVE "jmp memset_orig", "", X86_FEATURE_FSRS
	RET
SYM_FUNC_END(__memset)
EXPORT_SYMBOL(__memset)

SYM_FUNC_START_LOCAL(memset_orig)
	movq %rdi,%r10
	RET
SYM_FUNC_END(memset_orig)
"""


@pytest.mark.parametrize(
    ("name", "lines"),
    [("lru_add", [(2, 9), (11, 14)]), ("lru_del", [(15, 15)]), ("lru_gone", []), ("lru_made", []), ("folio_seq", [])],
)
def test_a_header_defines_what_has_a_body_in_it(name: str, lines: list[tuple[int, int]]) -> None:
    found = definitions.of(name, "include/lru.h", HEADER)
    assert [(one.first, one.first + one.text.count("\n")) for one in found] == lines
    assert (name in definitions.names("include/lru.h", HEADER)) == bool(lines)


def test_of_a_body_and_its_stub_the_body_runs() -> None:
    found = definitions.only(definitions.of("lru_add", "include/lru.h", HEADER))
    assert found is not None and found.first == 2
    assert definitions.only([found, found]) is None  # two bodies: which one is not certain
    assert definitions.only(definitions.of("lru_del", "include/lru.h", HEADER)) is not None


def test_assembly_is_known_by_its_annotations() -> None:
    assert definitions.names("arch/x86/lib/memset_64.S", ASSEMBLY) == {"__memset", "memset_orig"}
    (found,) = definitions.of("memset_orig", "arch/x86/lib/memset_64.S", ASSEMBLY)
    assert found.first == 7 and found.text.endswith("SYM_FUNC_END(memset_orig)")


def test_a_system_call_is_known_by_its_symbols() -> None:
    text = "SYSCALL_DEFINE1(dup, unsigned int, fildes)\n{\n\treturn 0;\n}\n"
    assert len(definitions.of("__x64_sys_dup", "fs/file.c", text)) == 1
    assert definitions.of("dup", "fs/file.c", text) == []


def test_comments_are_no_code_and_texts_are_no_comments() -> None:
    text = 'int f(void) /* one\n two */\n{\n\tsay("/* kept */ // too"); // gone\n\n\treturn \'"\';\n}\n'
    assert definitions.code(text) == ["int f(void)", "{", '\tsay("/* kept */ // too");', "\treturn '\"';", "}"]


@pytest.mark.parametrize(("symbol", "name"), [("f.isra.0", "f"), ("f.constprop.0.cold", "f"), ("f", "f")])
def test_the_compilers_suffixes_are_no_part_of_a_name(symbol: str, name: str) -> None:
    assert definitions.base(symbol) == name


_STATEMENT = st.sampled_from(
    ["a = b;", "if (a)\n\t\treturn b;", "/* { } */", "do {\n\t\ta--;\n\t} while (a);", "", "#ifdef X"]
)
_FUNCTION = st.tuples(st.from_regex(r"f_[a-z]{1,6}", fullmatch=True), st.lists(_STATEMENT, max_size=5).map("\n\t".join))


@given(st.lists(_FUNCTION, max_size=6, unique_by=lambda one: one[0]))
def test_every_function_of_a_file_is_found_with_its_text(functions: list[tuple[str, str]]) -> None:
    texts = {name: f"static int {name}(struct a *a,\n\t\tint b)\n{{\n\t{body}\n}}" for name, body in functions}
    file = "#include <a.h>\n\nstruct a {\n\tint b;\n};\n\n" + "\n\n/* next */\n".join(texts.values()) + "\n"
    assert definitions.names("fs/a.c", file) == set(texts)
    for name, text in texts.items():
        assert [one.text for one in definitions.of(name, "fs/a.c", file)] == [text]


def test_words_are_all_identifiers() -> None:
    assert definitions.words(b"a_1->b = c(0x2); /* d\xff */") == {b"a_1", b"b", b"c", b"0x2", b"d"}

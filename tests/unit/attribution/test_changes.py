# SPDX-License-Identifier: GPL-2.0-or-later
"""What differs between two images made here by the compiler, and whose execution stands for it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kdelta.attribution import changes, code, data
from kdelta.attribution.changes import Change, Changes
from kdelta.attribution.disassembly import Image
from unit.attribution.test_code import Maker

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

SOURCE = """\
struct ops { int (*run)(int); const char *name; };
static __attribute__((noinline)) int first(int a) { return a * 3; }
static __attribute__((noinline)) int second(int a) { return a * 5; }
int weights[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
struct ops table = { first, "a name" };
static inline int helper(int a) { return a + 7; }
__attribute__((noinline)) int weigh(int a) { return weights[a & 7]; }
__attribute__((noinline)) int host(int a) { return helper(a) * second(a); }
__attribute__((noinline)) int call(int a) { return table.run(a); }
int main_loop(int a) { return weigh(a) + call(a) + host(a); }
"""


@pytest.fixture
def make(tmp_path: Path) -> Maker:
    return Maker(tmp_path, "x86_64")


def found(make: Maker, after: str, **calls: tuple[str, ...]) -> Changes:
    old, new = Image(make(SOURCE)), Image(make(after))
    return changes.find(old, new, code.compare(old, new), lambda name: calls.get(name, ()))


def test_a_variable_with_another_value_counts_through_the_functions_that_read_it(make: Maker) -> None:
    after = SOURCE.replace("{ 1, 2, 3", "{ 1, 2, 4")
    assert code.compare(Image(make(SOURCE)), Image(make(after))).identical  # by its code alone it would be no change
    assert found(make, after).changes == (Change(name="weights", kind="data", hosts=("weigh",)),)


def test_a_table_that_leads_to_another_function_differs_one_that_moved_does_not(make: Maker) -> None:
    other = found(make, SOURCE.replace("table = { first", "table = { second"))
    assert [(one.name, one.hosts) for one in other.changes if one.kind == "data"] == [
        ("table", ("call", "first", "second"))
    ]
    moved = SOURCE.replace("struct ops table", "int before[3] = { 1, 2, 3 };\nstruct ops table")
    moved = moved.replace(
        "int main_loop", "__attribute__((noinline)) int more(int a) { return before[a & 1]; }\nint main_loop"
    )
    names = {one.name for one in found(make, moved).changes}
    assert "before" in names and not names & {"table", "weights"}


TABLES = """
static __attribute__((noinline)) int opens(int a) { return a * 11; }
static const struct ops inner = { opens, "inner" };
struct dev { const char *name; const struct ops *ops; };
static const struct dev devices[2] = { { "none", 0 }, { "one", &inner } };
__attribute__((noinline)) int open_dev(int a) { return devices[a & 1].ops->run(a); }
struct ops *registered;
static struct ops kept = { first, "kept" };
__attribute__((section(".init.text"), noinline)) int starts(int a) { registered = &kept; return a; }
"""


def test_a_table_that_only_another_table_holds_counts_through_who_reads_that(make: Maker) -> None:
    old, new = f"{SOURCE}{TABLES}", f"{SOURCE}{TABLES}".replace("inner = { opens", "inner = { second")
    before, after = Image(make(old)), Image(make(new))
    (one,) = changes.find(before, after, code.compare(before, after), lambda _: ()).changes[-1:]
    assert (one.name, one.kind, one.hosts) == ("inner", "data", ("open_dev", "opens", "second"))


def test_data_that_is_registered_at_boot_is_not_said_to_be_used_at_boot_alone(make: Maker) -> None:
    old, new = (
        f"{SOURCE}{TABLES}",
        f"{SOURCE}{TABLES}".replace('kept = { first, "kept" }', "kept = { first, (char *)5 }"),
    )
    before, after = Image(make(old)), Image(make(new))
    (one,) = changes.find(before, after, code.compare(before, after), lambda _: ()).changes
    assert (one.name, one.hosts, one.by_pointer, one.in_no_case) == ("kept", ("starts",), True, False)
    assert one.title == "kept (data, used by pointer alone)"


REGISTERED = """
struct hooks { int level; int (*flush)(int); int (*run)(int); };
static __attribute__((noinline)) int third(int a) { return a * 13; }
static struct hooks hooks = { 1, 0, first };
static int plain[4] = { 3, 4, 5, 6 };
struct hooks *current_hooks;
__attribute__((noinline)) void set_up(void) { current_hooks = &hooks; }
__attribute__((noinline)) int reads(int a) { return plain[a & 3]; }
int use(int a) { return third(a) + reads(a); }
"""


@pytest.mark.parametrize(
    ("old", "new", "handed_on"),
    [
        ("{ 1, 0, first }", "{ 2, 0, first }", True),  # set_up alone names it, and who has the pointer reads it
        ("{ 1, 0, first }", "{ 1, third, first }", True),
        ("{ 1, 0, first }", "{ 1, 0, 0 }", True),
        ("{ 1, 0, first }", "{ 1, 0, second }", False),  # who used it called first
        ("{ 3, 4, 5", "{ 3, 9, 5", False),  # read in place
    ],
)
def test_data_that_is_handed_on_by_pointer_is_told_unless_other_functions_alone_stand_in_it(
    make: Maker, old: str, new: str, handed_on: bool
) -> None:
    text = f"{SOURCE}{REGISTERED}"
    before, after = Image(make(text)), Image(make(text.replace(old, new)))
    (one,) = changes.find(before, after, code.compare(before, after), lambda _: ()).changes
    assert (one.kind, one.handed_on) == ("data", handed_on) and one.hosts
    assert one.title == f"{one.name} ({'data, used by pointer' if handed_on else 'data'})"


def test_a_new_function_that_only_a_table_leads_to_is_not_said_to_be_executed_by_nobody(make: Maker) -> None:
    text = f"{SOURCE}{REGISTERED}"
    fresh = "static int fresh(int a) { return a ^ 99; }\nstatic struct hooks hooks = { 1, fresh, first }"
    before, after = Image(make(text)), Image(make(text.replace("static struct hooks hooks = { 1, 0, first }", fresh)))
    one, table = changes.find(before, after, code.compare(before, after), lambda _: ()).changes
    assert (one.name, one.handed_on, one.in_no_case, one.by_pointer) == ("fresh", True, False, False)
    assert (one.title, table.title) == ("fresh (new, used by pointer alone)", "hooks (data, used by pointer)")


LATER = """
void (*volatile queued)(int);
int calls[2];
static __attribute__((noinline)) void later(int a) { calls[a & 1]++; }
static __attribute__((noinline)) int twice(int a) { return a * 17; }
"""


@pytest.mark.parametrize("body", ["queued = later; return a;", "return twice(a) + twice(a + 1) + (queued != later);"])
def test_a_new_function_whose_address_is_taken_in_code_may_run_later(make: Maker, body: str) -> None:
    old = "__attribute__((noinline)) int asks(int a) { return a; }"
    new = f"{LATER}__attribute__((noinline)) int asks(int a) {{ {body} }}"
    before, after = Image(make(f"{SOURCE}{old}")), Image(make(f"{SOURCE}{new}"))
    graph = {"twice": ("asks",)}
    found = changes.find(before, after, code.compare(before, after), lambda name: graph.get(name, ()))
    by_name = {one.name: one for one in found.changes}
    one = by_name["later"]
    assert (one.hosts, one.taken_in, one.in_no_case) == ((), ("asks",), False)
    told = "later (new, its address is taken in asks: it may run later, outside of what is counted)"
    assert one.title == told
    assert all(other.taken_in == () for name, other in by_name.items() if name != "later")
    assert data.taken_in(after, ["twice", "weigh"]) == {}, "who calls it takes no address"


def test_a_new_function_of_the_start_is_boot_only_whoever_takes_its_address(make: Maker) -> None:
    starts = LATER.replace("static __attr", '__attribute__((section(".init.text"))) static __attr', 1)
    asks = "__attribute__((noinline)) int asks(int a) { return a; }"
    taken = asks.replace("return", "queued = later; return")
    before, after = Image(make(f"{SOURCE}{asks}")), Image(make(f"{SOURCE}{starts}{taken}"))
    found = changes.find(before, after, code.compare(before, after), lambda _: ())
    one = next(one for one in found.changes if one.name == "later")
    assert (one.title, one.in_no_case) == ("later (new, boot only)", True)


TEXTS = """
static __attribute__((noinline)) int prints(const char *text, int a) { return text[a & 1]; }
__attribute__((noinline)) int shows(int a) { return prints(" ", a) + a; }
__attribute__((noinline)) int warns(int a) { return prints("a warning", a) * a; }
const char *const states[2] = { "running", "idle" };
__attribute__((noinline)) int state(int a) { return states[a & 1][0]; }
__attribute__((noinline)) int keeps(const char **to) { *to = "kept"; return 1; }
"""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('" "', '"     "', [("shows (text)", ("shows",))]),  # /proc/PID/stat with wider columns: +15 % instructions
        ('"a warning"', '"a Warning"', [("warns (text)", ("warns",))]),  # nothing moves
        ('"kept"', '"kept on"', [("keeps (text)", ("keeps",))]),
        ('"idle"', '"asleep"', [("states (data)", ("state",))]),
        ('"running"', '"running", 0', [("states (data)", ("state",))]),
    ],
)
def test_a_text_that_differs_is_a_change_of_what_leads_to_it(
    make: Maker, old: str, new: str, told: list[tuple[str, tuple[str, ...]]]
) -> None:
    text = f"{SOURCE}{TEXTS}"
    before, after = Image(make(text)), Image(make(text.replace("states[2]", "states[]").replace(old, new)))
    found = changes.find(before, after, code.compare(before, after), lambda _: ())
    assert [(one.title, one.hosts) for one in found.changes if one.name != "main_loop"] == told
    assert not found.nothing and not any(one.in_no_case for one in found.changes)


def test_texts_that_only_moved_are_no_change(make: Maker) -> None:
    text = f"{SOURCE}{TEXTS}"
    more = '__attribute__((noinline)) int more(int a) { return prints("a text that is before all others", a); }'
    before, after = (
        Image(make(text)),
        Image(
            make(text.replace("__attribute__((noinline)) int shows", more + "\n__attribute__((noinline)) int shows"))
        ),
    )
    assert [one.name for one in changes.find(before, after, code.compare(before, after), lambda _: ()).changes] == [
        "more"
    ]


CACHES = """
void *objects;
static const long sizes[2] = { 128, 256 };
int users_of_all = 1;
__attribute__((noinline)) void *makes(long size) { return (void *)size; }
__attribute__((noinline)) void *takes(void) { return objects; }
__attribute__((noinline)) long size_of(int a) { return sizes[a & 1]; }
__attribute__((section(".init.text"), noinline)) int starts(void)
{
    static volatile int twice[8];
    objects = makes(128);
    users_of_all = 2;
    twice[4] = 3;
    return 0;
}
__attribute__((noinline)) int counts(void) { static volatile int twice[8]; return ++twice[4]; }
#define USE(n) __attribute__((noinline)) int use##n(int a) { return users_of_all * (a + n); }
USE(1) USE(2) USE(3) USE(4) USE(5) USE(6) USE(7) USE(8) USE(9) USE(10) USE(11) USE(12) USE(13) USE(14) USE(15) USE(16)
"""


def test_what_runs_at_boot_alone_counts_through_those_who_use_what_it_may_set(make: Maker) -> None:
    """A slab cache whose objects grow: only kmem_cache_create() in an __init function differs."""
    old = f"{SOURCE}{CACHES}"
    before, after = Image(make(old)), Image(make(old.replace("makes(128)", "makes(256)")))
    (one,) = changes.find(before, after, code.compare(before, after), lambda _: ()).changes
    assert (one.name, one.hosts, one.sets) == ("starts", ("starts", "takes"), ("objects",))  # users_of_all has 17
    assert (one.boot_only, one.in_no_case) == (True, False)
    assert one.title == "starts (boot only, may set objects)"


def test_what_runs_at_boot_alone_and_sets_nothing_that_others_use_is_in_no_case(make: Maker) -> None:
    old = f"{SOURCE}{CACHES}".replace("{ return objects; }", "{ return 0; }")
    before, after = Image(make(old)), Image(make(old.replace("makes(128)", "makes(256)")))
    (one,) = changes.find(before, after, code.compare(before, after), lambda _: ()).changes
    assert (one.hosts, one.sets, one.in_no_case, one.title) == (("starts",), (), True, "starts (boot only)")


MOVING = r"""
struct __attribute__((packed)) row { unsigned char kind; const char *name; };
struct row rows[3] = { { 1, "length" }, { 2, "pointer" }, { 3, "node" } };
int _rs = 5;
asm(".pushsection __bug_table,\"aw\"\n1: .byte 65, AREA, 65, 0\n.popsection\n.set AREA, 66\n"
    ".pushsection .text\nwarns: lea 1b(%rip), %rdi\nret\n.size warns, . - warns\n"
    ".type warns, @function\nrounds: movq $_edata+0xfff, %rax\nret\n.size rounds, . - rounds\n"
    ".type rounds, @function\n.popsection");
__attribute__((noinline)) const char *names(int a) { return rows[a & 1].name; }
__attribute__((noinline)) int limited(void) { static volatile int a_rs; return a_rs + *(volatile int *)&_rs; }
__attribute__((noinline)) int other_rs_reader(void) { static volatile int other_rs; return ++other_rs; }
"""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("int _rs", 'const char *added = "a text that moves others"; int _rs', ["added (data, used by pointer alone)"]),
        ('"node"', '"length"', ["rows (data)"]),
        ("{ 2, ", "{ 4, ", ["rows (data)"]),
        ("AREA, 66", "AREA, 67", []),  # an entry of __bug_table, as each WARN() leads to: no text
        ("_rs = 5", "_rs = 6", ["_rs (data)"]),
    ],
)
def test_what_only_moves_is_no_change_in_packed_tables_nor_in_those_of_distances(
    make: Maker, old: str, new: str, told: list[str]
) -> None:
    """A patch that added a string to 7.3 changed 81 functions and variables: 57 tables of ACPI, some 15 "(text)"."""
    text = f"{SOURCE}{MOVING}"
    before, after = Image(make(text)), Image(make(text.replace(old, new)))
    found = changes.find(before, after, code.compare(before, after), lambda _: ()).changes
    assert [one.title for one in found] == told
    if told == ["_rs (data)"]:
        assert found[0].hosts == ("limited",)  # not whose code has another name that ends so


AT_BOOT = """
static volatile __attribute__((section(".init.data"))) int entries = 64;
static const __attribute__((section(".init.rodata"))) char *const words[2] = { "off", "auto" };
int mask;
__attribute__((section(".init.text"), noinline)) void sizes(void) { mask = entries - 1 + words[entries & 1][0]; }
__attribute__((noinline)) int hashes(int a) { return a & mask; }
"""


@pytest.mark.parametrize(
    ("old", "new", "name"), [("entries = 64", "entries = 256", "entries"), ('"auto"', '"nosmt"', "words")]
)
def test_data_that_the_kernels_start_alone_reads_is_no_identical_data(
    make: Maker, old: str, new: str, name: str
) -> None:
    """Of dhash_entries, and of a row of cpu_vuln_blacklist: "machine code and data are identical"."""
    text = f"{SOURCE}{AT_BOOT}"
    more = "int more(int a) { return a * 17; }"
    before, moved, after = (Image(make(one)) for one in (text, f"{more}{text}", f"{more}{text}".replace(old, new)))
    assert [one.name for one in changes.find(before, moved, code.compare(before, moved), lambda _: ()).changes] == [
        "more"
    ]
    (one,) = changes.find(moved, after, code.compare(moved, after), lambda _: ()).changes
    assert (one.name, one.hosts, one.sets) == (name, ("hashes", "sizes"), ("mask",))
    assert one.title == f"{name} (data, boot only, may set mask)" and not one.in_no_case and not one.by_pointer


BRANCHES = """
extern char __start___jump_table[], __stop___jump_table[];
char *bounds[] = { __start___jump_table, __stop___jump_table };
int other_key[4] = { 1, 2, 3, 4 };
int key[4] = { 1, 1 };
#define BRANCH(key) asm volatile("1: nopl 0(%%rax,%%rax,1)\\n.pushsection __jump_table, \\"aw\\"\\n.balign 8\\n" \
    ".long 1b - ., 1b - .\\n.quad %c0 + 1 - .\\n.popsection" :: "i"(key))
__attribute__((noinline)) int likely(int a) { BRANCH(other_key); return a + 2; }
__attribute__((noinline)) int asks(int a) { BRANCH(key); return a + 3; }
__attribute__((noinline)) void *sets(void) { return key; }
"""


@pytest.mark.parametrize("value", ["{ 0, 1 }", "{ 0, 0 }"])  # with zeros alone it stands in .bss
def test_a_static_key_counts_through_the_functions_that_branch_by_it(make: Maker, value: str) -> None:
    """Their code has no address of it: __jump_table says which key each branch asks."""
    old = f"{SOURCE}{BRANCHES}"
    before, after = Image(make(old)), Image(make(old.replace("{ 1, 1 }", value)))
    for pair in ((before, after), (after, before)):
        (one,) = changes.find(*pair, code.compare(*pair), lambda _: ()).changes
        assert (one.name, one.kind, one.hosts) == ("key", "data", ("asks", "sets"))


def test_an_inlined_function_is_its_hosts_change(make: Maker) -> None:
    assert found(make, SOURCE.replace("a + 7", "a * 9 + 1")).changes == (
        Change(name="host", kind="code", hosts=("host",)),
    )


def test_a_new_function_counts_through_those_that_call_it_also_through_other_new_ones(make: Maker) -> None:
    fresh = "__attribute__((noinline)) int fresh(int a) { return a ^ 9; }\n"
    after = SOURCE.replace("int main_loop", fresh + "int main_loop")
    one = found(make, after, fresh=("between",), between=("host", "fresh")).changes
    assert one == (Change(name="fresh", kind="new", hosts=("host",)),)
    assert found(make, after).changes[0].hosts == ()  # nobody is known to call it: nothing stands for it


def test_nothing_differs_where_only_places_do(make: Maker) -> None:
    first, second = (line for line in SOURCE.splitlines(True) if "int weights" in line or "struct ops table" in line)
    same = found(make, SOURCE.replace(f"{first}{second}", f"{second}{first}"))
    assert same.nothing and not same.whole
    assert data.readers(Image(make(SOURCE)), ["weights", "table", "absent"]) == {
        "weights": ("weigh",),
        "table": ("call",),
        "absent": (),
    }


def test_so_many_functions_that_a_header_is_the_cause(make: Maker) -> None:
    many = "".join(f"__attribute__((noinline)) int f{i}(int a) {{ return a * LEVEL + {i}; }}\n" for i in range(250))
    old, new = (Image(make(f"#define LEVEL {level}\n{many}{SOURCE}")) for level in (3, 100))
    assert changes.find(old, new, code.compare(old, new), lambda _: ()).whole


ONCE = "{ static char __already_done = 1; if (__already_done) { __already_done = 0; sink(%d); } }"


def test_of_namesakes_a_new_one_counts_through_its_own_function_alone(make: Maker) -> None:
    warned = "int sink(int); " + SOURCE + "__attribute__((noinline)) int sink(int a) { return a; }\n"
    for number, name in enumerate(("weigh", "call")):
        warned = warned.replace(f"int {name}(int a) {{", f"int {name}(int a) {{ {ONCE % number}")
    more = warned.replace("int host(int a) {", f"int host(int a) {{ {ONCE % 2}")
    for old, new in ((warned, more), (more, warned)):
        before, after = Image(make(old)), Image(make(new))
        one = changes.find(before, after, code.compare(before, after), lambda _: ()).changes[-1]
        assert (one.name, one.kind, one.hosts) == ("__already_done", "data", ("host",))
    other = Image(make(more.replace("__already_done = 1", "__already_done = 2", 1)))
    one = changes.find(Image(make(warned)), other, code.compare(Image(make(warned)), other), lambda _: ()).changes[-1]
    assert one.hosts == ("host", "weigh")


@pytest.mark.parametrize("other", ['{ "third", "4th" }', '{ "third", "fourth", "fifth", "sixth" }'])
def test_of_namesakes_that_lead_elsewhere_the_one_that_differs_counts_alone(make: Maker, other: str) -> None:
    """Of the 58 tables of a switch one was gone: bpf(2) and mkdir(2) were measured for a patch of flock(2)."""
    text = SOURCE + "".join(
        f"__attribute__((noinline)) int says{number}(int a)\n"
        f'{{ static const char *const words[] = {{ "{one}", "{two}" }}; return words[a & 1][0]; }}\n'
        for number, (one, two) in enumerate((("first", "second"), ("third", "fourth")))
    )
    before, after = Image(make(text)), Image(make(text.replace('{ "third", "fourth" }', other)))
    (one,) = changes.find(before, after, code.compare(before, after), lambda _: ()).changes
    assert (one.name, one.kind, one.hosts) == ("words", "data", ("says1",))


def test_a_variable_that_a_new_function_alone_reads_counts_through_who_calls_that(make: Maker) -> None:
    fresh = "static int mine[2] = { 3, 4 };\n__attribute__((noinline)) int fresh(int a) { return mine[a & 1]++; }\n"
    after = SOURCE.replace("int main_loop(int a) { return", f"{fresh}int main_loop(int a) {{ return fresh(a) +")
    mine = found(make, after, fresh=("main_loop",)).changes[-1]
    assert (mine.title, mine.hosts, mine.by_pointer) == ("mine (data)", ("main_loop",), False)

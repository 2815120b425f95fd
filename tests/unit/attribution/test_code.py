# SPDX-License-Identifier: GPL-2.0-or-later
"""Machine code of two images, made here by the compiler."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from kdelta.attribution import changes
from kdelta.attribution.code import CodeDiff, changed_places, compare, function_diff, identical_code, left_out, summary
from kdelta.attribution.disassembly import Image
from kdelta.errors import UserError

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

ARM = pytest.param(
    "arm64", marks=pytest.mark.skipif(shutil.which("aarch64-linux-gnu-gcc") is None, reason="needs a cross gcc")
)
SOURCE = """\
extern int table[64];
int table[64];
const char *text = "hello world";
__attribute__((noinline)) int pad(int a) { return a * 3; }
__attribute__((noinline)) int callee(int a) { return table[a & 63] + 1; }
static __attribute__((noinline)) int small(int a) { return a + table[1]; }
__attribute__((noinline)) const char *name(int a) { return a ? "first string" : "second string"; }
__attribute__((noinline)) int caller(int a)
{
	int i, sum = 0;
	for (i = 0; i < a; i++)
		sum += callee(i);
	return sum + small(a);
}
int main_loop(int a) { return caller(a) + pad(a) + *name(a); }
"""


class Maker:
    def __init__(self, folder: Path, arch: str) -> None:
        self.folder, self.prefix, self.count = folder, "aarch64-linux-gnu-" if arch == "arm64" else "", 0
        self.flags = [] if arch == "arm64" else ["-mcmodel=kernel", "-mno-red-zone"]

    def __call__(self, source: str, *flags: str) -> bytes:
        self.count += 1
        out = self.folder / f"image{self.count}"
        (self.folder / "a.c").write_text(source)
        base = [
            f"{self.prefix}gcc",
            "-O2",
            "-ffreestanding",
            "-fno-pie",
            "-fno-asynchronous-unwind-tables",
            "-nostdlib",
            "-fno-ipa-ra",
        ]
        link = [
            "-static",
            "-no-pie",
            "-Wl,-e,main_loop",
            "-Wl,-Ttext-segment=0xffffffff81000000",
            "-Wl,--build-id=sha1",
        ]
        if self.prefix:
            link[3] = "-Wl,-Ttext-segment=0xffff800080000000"
        argv = [*base, *self.flags, *link, *flags, "-o", str(out), str(self.folder / "a.c")]
        subprocess.run(argv, check=True)
        return out.read_bytes()


@pytest.fixture(params=["x86_64", ARM])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Maker:
    return Maker(tmp_path, request.param)


@pytest.fixture
def make_x86(tmp_path: Path) -> Maker:
    return Maker(tmp_path, "x86_64")


def diff(before: bytes, after: bytes) -> CodeDiff:
    return compare(Image(before), Image(after))


def names(made: CodeDiff) -> set[str]:
    return {one.name for one in made.functions}


def test_comments_and_build_ids_do_not_count(make: Maker) -> None:
    before, after = make(SOURCE), make("/* a comment */\n\n" + SOURCE, "-Wl,--build-id=0x1234")
    assert before != after
    assert identical_code(before, after)


def test_only_the_function_that_changed_is_found_although_all_others_moved(make: Maker) -> None:
    bigger = SOURCE.replace("return a * 3;", "int i; for (i = 0; i < 9; i++) a += table[a & 63] * i; return a;")
    made = diff(make(SOURCE), make(bigger))
    assert names(made) == {"pad"}
    assert made.functions[0].delta > 0
    assert not made.identical


def test_data_and_strings_that_moved_are_not_a_change(make: Maker) -> None:
    more = 'int more[999] = {1};\nconst char *extra(void) { return "a text before all others"; }\n'
    made = diff(make(SOURCE), make(more + SOURCE))
    assert names(made) == {"extra"}


def test_a_changed_string_is_data_not_code(make: Maker) -> None:
    assert identical_code(make(SOURCE), make(SOURCE.replace("second string", "the 2nd string")))


def test_a_changed_constant_of_the_same_length_is_a_change(make: Maker) -> None:
    assert names(diff(make(SOURCE), make(SOURCE.replace("& 63] + 1", "& 63] + 2")))) == {"callee"}


def test_a_call_to_another_function_is_a_change(make: Maker) -> None:
    made = diff(make(SOURCE), make(SOURCE.replace("caller(a) + pad(a)", "caller(a) + callee(a)")))
    (one,) = made.functions
    assert (one.name, one.calls_gone, one.calls_new) == ("main_loop", ("pad",), ("callee",))


def test_a_function_that_was_inlined_is_said_to_be_gone_into_its_caller(make: Maker) -> None:
    made = diff(
        make(SOURCE), make(SOURCE.replace("static __attribute__((noinline)) int small", "static inline int small"))
    )
    notes = {one.name: one.note for one in made.functions}
    assert notes["small"] == "gone; inlined into caller?"
    assert "add/remove: 0/1 grow/shrink: " in summary(made)


def test_a_rep_stos_that_a_struct_initialiser_brought_is_named(make_x86: Maker) -> None:
    lean = "struct big { long a[40]; }; void use(struct big *); struct big keep;\n__attribute__((noinline)) void use(struct big *b) { keep.a[3] = b->a[3]; }\n"  # noqa: E501
    before = make_x86(
        SOURCE + lean + "void write_it(void) { struct big b; b.a[3] = 1; use(&b); }\n", "-mgeneral-regs-only"
    )
    after = make_x86(
        SOURCE + lean + "void write_it(void) { struct big b = { }; b.a[3] = 1; use(&b); }\n",
        "-mgeneral-regs-only",
        "-mmemset-strategy=rep_8byte:-1:noalign",
    )
    made = diff(before, after)
    one = next(one for one in made.functions if one.name == "write_it")
    assert one.rep_before == ()
    assert one.rep_after == ("rep stosq",)
    assert "rep stosq introduced" in summary(made)
    assert "+\trep stosq" in function_diff(Image(before), Image(after), "write_it")


def test_the_listing_names_calls_data_and_labels(make_x86: Maker) -> None:
    image = Image(make_x86(SOURCE))
    text = "\n".join(image.listing(image.functions["caller"]))
    assert "call" in text and "\tcallq callee" in text
    assert "L1:" in text
    listing = "\n".join(image.listing(image.functions["name"]))
    assert "'first string'" in listing
    assert "0xffffffff81" not in text + listing


def test_the_difference_of_a_function_is_shown_with_its_sizes(make: Maker) -> None:
    before, after = Image(make(SOURCE)), Image(make(SOURCE.replace("& 63] + 1", "& 63] + 2")))
    text = function_diff(before, after, "callee")
    assert text.startswith(f"--- callee ({before.functions['callee'].size} bytes)\n+++ callee (")
    assert function_diff(before, after, "caller") == ""


def test_an_unknown_function_is_refused_with_the_nearest(make_x86: Maker) -> None:
    image = Image(make_x86(SOURCE))
    with pytest.raises(UserError, match="in neither kernel; nearest: caller"):
        function_diff(image, image, "callerr")


def test_a_stripped_image_is_refused(make_x86: Maker) -> None:
    with pytest.raises(UserError, match="symbols"):
        Image(make_x86(SOURCE, "-s"))


def test_garbage_is_refused() -> None:
    for data in (b"", b"\x7fELF", b"\x7fELF\x02\x01" + b"\xff" * 200):
        with pytest.raises(UserError):
            Image(data)


def test_images_of_two_architectures_are_not_compared(tmp_path: Path) -> None:
    if shutil.which("aarch64-linux-gnu-gcc") is None:
        pytest.skip("needs a cross gcc")
    with pytest.raises(UserError, match="cannot be compared"):
        diff(Maker(tmp_path, "x86_64")(SOURCE), Maker(tmp_path, "arm64")(SOURCE))


def test_the_totals_add_up(make: Maker) -> None:
    made = diff(make(SOURCE), make(SOURCE + "int another(int a) { return a + 41; }\n"))
    assert names(made) == {"another"}
    assert made.total_after - made.total_before == sum(one.delta for one in made.functions)
    assert made.functions[0].note == "new"


SPLIT = (
    SOURCE
    + """
__attribute__((cold, noinline)) void fail(int);
void fail(int a) { table[a & 63] = 7; }
int checked(int a) { if (a > 60) { fail(a); fail(a + 1); } return table[a & 63] * 5; }
"""
)


def parted(make: Maker, name: str, source: str = SPLIT) -> Image:
    """An image in which the compiler's names of ``callee`` and ``small`` are those of parts of ``checked``."""
    out = make.folder / f"image{make.count + 1}"
    make(source)
    rename = ["--redefine-sym", f"callee=checked{name}", "--redefine-sym", "pad=checked.cold"]
    subprocess.run([f"{make.prefix}objcopy", *rename, str(out)], check=True)
    return Image(out.read_bytes())


def test_parts_are_one_function_and_their_numbers_say_nothing(make: Maker) -> None:
    before, after = parted(make, ".isra.0"), parted(make, ".isra.3")
    assert compare(before, after).identical
    assert {"checked", "caller"} <= before.sources.keys() and "checked.cold" not in before.sources


@pytest.mark.parametrize("spelt", ["checked", "checked.cold", "checked.isra.0", "checked.part.7"])
def test_a_change_in_a_part_is_one_of_its_function_however_it_is_spelt(make: Maker, spelt: str) -> None:
    before, after = parted(make, ".isra.0"), parted(make, ".isra.0", SPLIT.replace("a * 3", "a * 77"))
    made = compare(before, after)
    assert [one.name for one in made.functions] == ["checked"]
    assert made.functions[0].size_before == sum(part.size for part in before.sources["checked"])
    text = function_diff(before, after, spelt)
    assert text.startswith("--- checked (") and "@@" in text


SYSCALL = """
int __do_sys_getid(void);
__attribute__((noinline)) int __do_sys_getid(void) { return table[3] * 5; }
int __x64_sys_getid(void) __attribute__((alias("__do_sys_getid")));
int __weak_getid(void) __attribute__((weak, alias("__do_sys_getid")));
"""


def test_names_of_one_function_are_one_function_by_the_name_that_it_is_counted_by(make: Maker) -> None:
    old, new = (
        f"{SOURCE}{SYSCALL}",
        f"{SOURCE}{SYSCALL}".replace("table[3] * 5", "table[3] / 5 + a").replace(
            "getid(void) {", "getid(void) { int a = table[9];"
        ),
    )
    before, after = Image(make(old)), Image(make(new))
    diff = compare(before, after)
    assert [one.name for one in diff.functions] == ["__do_sys_getid"]
    assert diff.total_after - diff.total_before == diff.functions[0].delta
    told = [function_diff(before, after, name).splitlines()[2:] for name in ("__x64_sys_getid", "__do_sys_getid")]
    assert told[0] == told[1] != []
    plain = Image(make(SOURCE))
    assert [one.name for one in compare(plain, before).functions] == ["__do_sys_getid"]


def test_an_alias_that_becomes_a_function_of_its_own_differs_from_what_it_was(make: Maker) -> None:
    alone = SYSCALL.replace('(void) __attribute__((alias("__do_sys_getid")))', "(void) { return 4; }")
    before, after = Image(make(f"{SOURCE}{SYSCALL}")), Image(make(f"{SOURCE}{alone}"))
    (one,) = compare(before, after).functions
    assert one.name == "__x64_sys_getid" and one.size_before and one.size_after != one.size_before
    (change,) = changes.find(before, after, compare(before, after), lambda _: ()).changes
    assert (change.kind, change.hosts) == ("code", ("__do_sys_getid",))


SLOW = """
int calls_of, slow_calls;
__attribute__((noinline)) int busy(int a)
{
	calls_of += a;
	if (__builtin_expect(calls_of == 77, 0))
		slow_calls += 5;
	return calls_of;
}
"""


def test_the_places_that_changed_are_those_of_the_slow_path_alone(make_x86: Maker) -> None:
    before, after = (
        Image(make_x86(SOURCE + SLOW)),
        Image(make_x86(SOURCE + SLOW.replace("+= 5", "= a * 9 + slow_calls"))),
    )
    (busy,) = after.sources["busy"]
    places = changed_places(before, after, "busy")
    code = {one.offset: one.text for one in after.instructions(busy)}
    told = [code[offset] for symbol, offset in sorted(places) if symbol == "busy"]
    assert told and not any("calls_of" in text and "slow" not in text for text in told)
    assert changed_places(before, before, "busy") == changed_places(before, after, "pad") == frozenset()


def test_a_jump_that_leads_elsewhere_is_a_place_that_changed(make_x86: Maker) -> None:
    jump = (
        '__attribute__((naked)) int jumps(void) { asm("test %edi, %edi\\n je '
        + "2f"
        + '\\n1: inc %eax\\n2: dec %eax\\n ret"); }'
    )
    before, after = (
        Image(make_x86(f"{SOURCE}{text}"))
        for text in (jump.replace("je 2f", "je 1f\\n je 2f"), jump.replace("je 2f", "je 2f\\n je 2f"))
    )
    assert changed_places(before, after, "jumps") == {("jumps", 2)}


def test_what_a_patch_takes_out_is_the_baselines_alone(make_x86: Maker) -> None:
    pair = '__attribute__((naked)) int takes(void) { asm("test %edi, %edi\\n je 1f\\nFAST1: dec %eax\\n ret"); }'
    fast = "mov $7, %edx\\n imul %edx, %eax\\n jmp 1f\\n nopl 0(%rax)\\n nop\\n "
    before, after = (Image(make_x86(f"{SOURCE}{pair.replace('FAST', one)}")) for one in (fast, ""))
    (code,) = before.sources["takes"]
    told = {one.offset: one.text for one in before.instructions(code)}
    assert sorted(told[offset].split()[0] for _, offset in left_out(before, after, "takes")) == ["imull", "jmp", "movl"]
    assert left_out(after, before, "takes") == left_out(before, before, "takes") == frozenset()


def test_what_only_aligns_the_code_behind_it_is_no_place_that_changed(make_x86: Maker) -> None:
    """Of a faster copy in assembly "8 of 9 changed instructions ran": the ninth was a nop behind a jump."""
    code = "test %edi, %edi\\n je 1f\\n ADD jmp 2f\\n FILL1: ret\\n2: ret"
    text = f'__attribute__((naked)) int copies(void) {{ asm("{code}"); }}'
    old, new = (("", "nop\\n nopw 8(%rax)\\n "), ("inc %eax\\n ", "nopl 0(%rax)\\n "))
    before, after = (Image(make_x86(SOURCE + text.replace("ADD ", a).replace("FILL", f))) for a, f in (old, new))
    assert changed_places(before, after, "copies") == {("copies", 4)}
    runs = Image(make_x86(SOURCE + text.replace("ADD ", "nopl 0(%rax)\\n ").replace("FILL", old[1])))
    assert changed_places(before, runs, "copies") == {("copies", 4)}, "one that is come by runs"

# SPDX-License-Identifier: GPL-2.0-or-later
"""Config requests and the reading of build logs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kdelta.errors import UserError
from kdelta.kernel import build, config_fragment, withheld
from kdelta.kernel.config_fragment import Request
from kdelta.kernel.toolchain import Toolchain
from kdelta.model.progress import Quiet


def test_the_first_error_of_the_compiler_is_the_line_shown() -> None:
    log = [
        "  CC      fs/error.o\n",
        "../fs/pipe.c: In function 'pipe_write':\n",
        "../fs/pipe.c:452:13: error: 'totl_len' undeclared\n",
        "../fs/pipe.c:460:13: error: something later\n",
        "make[3]: *** [../scripts/Makefile.build:229: fs/pipe.o] Error 1\n",
    ]
    assert build.error_line(log) == "../fs/pipe.c:452:13: error: 'totl_len' undeclared"


@pytest.mark.parametrize(
    "line",
    [
        "ld: fs/pipe.o: in function `f': pipe.c:(.text+0x4): undefined reference to `nothing'",
        "make: *** No rule to make target 'vmlinux'.  Stop.",
        "*** Compiler is too old.",
        'lib/Kconfig.debug:2844: can\'t open file "Documentation/Kconfig"',
    ],
)
def test_other_failures_have_their_line_too(line: str) -> None:
    assert build.error_line(["  LD      vmlinux\n", line + "\n", "last words\n"]) == line


def test_a_log_without_an_error_shows_its_last_line() -> None:
    assert build.error_line(["one\n", "Killed\n", "\n"]) == "Killed"


def test_the_environment_of_the_caller_does_not_leak_into_a_build(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KCFLAGS", "ARCH", "MAKEFLAGS", "CROSS_COMPILE", "LOCALVERSION"):
        monkeypatch.setenv(name, "x")
    environment = build.environment(Path("/c"))
    assert not {"KCFLAGS", "ARCH", "MAKEFLAGS", "CROSS_COMPILE", "LOCALVERSION"} & environment.keys()
    assert environment["KBUILD_BUILD_TIMESTAMP"] == "@0"


@pytest.mark.parametrize(
    ("asked", "ours"),
    [("HZ_1000=y", "HZ_250"), ("PREEMPT=y", "PREEMPT_LAZY"), ("DEBUG_INFO_DWARF5=y", "DEBUG_INFO_NONE")],
)
def test_an_option_of_a_choice_that_a_user_asks_for_replaces_ours(asked: str, ours: str) -> None:
    """Of HZ_1000=y and our HZ_250=y Kconfig took the last: the kernel had 250 Hz, a note said "requested y, got n"."""
    name = asked.removesuffix("=y")
    assert config_fragment.request("", (7, 3), "x86_64").options[ours].endswith("y")
    options = config_fragment.request(asked, (7, 3), "x86_64").options
    assert options[name] == "y" and ours not in options
    assert config_fragment.request(f"{name}=n", (7, 3), "x86_64").options[ours].endswith("y")
    assert config_fragment.request(f"{asked} {ours}=n", (7, 3), "x86_64").options[ours] == "n"


@pytest.mark.parametrize("arch", ["x86_64", "arm64"])
@pytest.mark.parametrize("version", [(6, 1), (6, 12), (7, 3)])
def test_the_shipped_fragments_ask_for_what_guests_need(version: tuple[int, int], arch: str) -> None:
    options = config_fragment.request("", version, arch).options  # type: ignore[arg-type]
    needed = {"ANON_VMA_NAME", "MEMCG", "KALLSYMS", "BLK_DEV_INITRD", "VIRTIO_CONSOLE", "HIST_TRIGGERS", "FTRACE"}
    assert {name for name in needed if options.get(name) == "y"} == needed
    assert options["RANDOMIZE_BASE"] == "n"


def test_options_have_the_name_that_their_version_knows() -> None:
    old = config_fragment.request("", (6, 1), "x86_64").options
    new = config_fragment.request("", (6, 12), "x86_64").options
    assert ("RETPOLINE" in old, "MITIGATION_RETPOLINE" in old) == (True, False)
    assert ("RETPOLINE" in new, "MITIGATION_RETPOLINE" in new) == (False, True)


def test_a_users_fragment_wins_over_ours_and_over_the_adjustments(tmp_path: Path) -> None:
    (tmp_path / "my.config").write_text("CONFIG_MEMCG=n\nCONFIG_RETPOLINE=n\n# CONFIG_KSM is not set\n")
    request = config_fragment.request(str(tmp_path / "my.config"), (6, 1), "x86_64")
    assert [request.options[name] for name in ("MEMCG", "RETPOLINE", "KSM")] == ["n", "n", "n"]
    assert request.title == "guest + my.config"


def test_options_written_out_are_a_fragment() -> None:
    request = config_fragment.request("PIPE_SKIP=y CONFIG_MEMCG=n", (6, 12), "x86_64")
    assert (request.options["PIPE_SKIP"], request.options["MEMCG"]) == ("y", "n")
    assert (request.title, request.base) == ("guest + PIPE_SKIP=y CONFIG_MEMCG=n", "")
    for typo in ("pipe=y", "PIPE=", "PIPE=y/n", "PIPE=y,NUMA=y"):
        with pytest.raises(UserError, match="cannot be read"):
            config_fragment.check(typo)


def test_a_whole_config_is_taken_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "config-6.12").write_text("# Automatically generated file; DO NOT EDIT.\nCONFIG_MODULES=y\n")
    request = config_fragment.request(str(tmp_path / "config-6.12"), (6, 12), "x86_64")
    assert "CONFIG_MODULES=y" in request.base
    assert "MODULES" not in request.options


@pytest.mark.parametrize(("of", "whole"), [("# Automatically generated file; DO NOT EDIT.\n", True), ("", False)])
def test_options_behind_a_file_go_over_it(tmp_path: Path, of: str, whole: bool) -> None:
    """A review of a tree with a whole .config said --config SMP=y, which builds kdelta's small guest in its stead."""
    path = tmp_path / "my own.config"
    path.write_text(f"{of}CONFIG_MODULES=y\nCONFIG_SMP=n\n")
    request = config_fragment.request(f"{path} SMP=y CONFIG_NEW=y", (6, 12), "x86_64")
    assert ("CONFIG_SMP=n" in request.base, "MODULES" in request.options) == (whole, not whole)
    assert (request.options["SMP"], request.options["NEW"]) == ("y", "y")
    assert {"SMP", "NEW"} <= config_fragment.asked(f"{path} SMP=y CONFIG_NEW=y") == frozenset(request.named)
    assert (
        "CONFIG_LOST: requested y"
        in config_fragment.unmet(config_fragment.request(f"{path} LOST=y", (6, 12), "x86_64"), "")[0]
    )
    odd = tmp_path / "my own.config SMP=y"  # a name as it may be
    odd.write_text("CONFIG_KSM=y\n")
    assert config_fragment.request(str(odd), (6, 12), "x86_64").named == ("KSM",)
    with pytest.raises(UserError, match=r"config nowhere\.config: cannot be read"):
        config_fragment.check("nowhere.config SMP=y")


@pytest.mark.parametrize("text", ["CONFIG_A = y\n", "A=y\n", "rm -rf /\n", 'CONFIG_A="open\n'])
def test_a_line_that_is_no_option_is_refused_with_its_number(tmp_path: Path, text: str) -> None:
    (tmp_path / "my.config").write_text("# fine\n" + text)
    with pytest.raises(UserError, match=r"my\.config line 2"):
        config_fragment.request(str(tmp_path / "my.config"), (6, 12), "x86_64")


def test_what_came_out_otherwise_is_listed() -> None:
    wanted = Request(options={"A": "y", "B": "n", "C": "64", "D": '""', "E": "n", "F": "y", "G": '"x"'})
    got = 'CONFIG_A=y\nCONFIG_B=y\nCONFIG_C=8\nCONFIG_D=""\nCONFIG_G="x"\n'
    assert config_fragment.unmet(wanted, got) == (
        "CONFIG_B: requested n, got y",
        "CONFIG_C: requested 64, got 8",
        "CONFIG_F: requested y, got n (does not exist, or a dependency is off)",
    )


def test_what_the_user_named_is_listed_first() -> None:
    """A report has room for twelve: with NET=n and its like off, what else was asked for in vain was not in it."""
    wanted = Request(options={"A": "y", "B": "y", "Z": "y"}, named=("Z",))
    lines = config_fragment.unmet(wanted, "CONFIG_NET=n\n")
    assert [line.partition(":")[0] for line in lines] == ["CONFIG_Z", "CONFIG_A", "CONFIG_B"]


def test_a_config_that_no_guest_starts_with_is_refused_before_it_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an initramfs, or PVH, a whole build came first, of some twenty minutes."""
    got = "CONFIG_BINFMT_ELF=y\n# CONFIG_BLK_DEV_INITRD is not set\n"
    assert config_fragment.lacking(got, "x86_64") == ("BLK_DEV_INITRD", "PVH")
    assert config_fragment.lacking(got, "arm64") == ("BLK_DEV_INITRD",)
    tools = Toolchain(arch="x86_64", prefix="", ccache=False, title="gcc", id="x")
    builder = build.Builder(tmp_path / "src", tmp_path / "obj", tools, cache=tmp_path, jobs=1)

    def configure(*_: object) -> tuple[str, ...]:
        builder.obj.mkdir(exist_ok=True)
        (builder.obj / ".config").write_text(got)
        return ()

    monkeypatch.setattr(builder, "configure", configure)
    wanted = Request(options={}, title="my.config")
    with pytest.raises(
        UserError, match=r"t: nothing was built: .* CONFIG_BLK_DEV_INITRD, CONFIG_PVH off in .*my\.config"
    ):
        builder.build(wanted, "t", tmp_path / "log", Quiet())


def test_an_option_that_cannot_be_had_is_told_before_a_build_with_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--config EXT4_FS=y built all of a kernel without BLOCK, and then said that a dependency may be off.

    Of KALLSYMS=n all was built too, with it, before a note said that, and by no word why.
    """
    kconfig = tmp_path / "src/fs/ext4/Kconfig"
    kconfig.parent.mkdir(parents=True)
    kconfig.write_text('config EXT4_FS\n\ttristate "ext4"\n\tdepends on BLOCK\n')
    (tmp_path / "src/Kconfig").write_text(
        'config HZ\n\tint\n\tdefault 250 if HZ_250\n\tdefault 1000 if HZ_1000\nconfig KPROBES\n\tbool "Kprobes"\n'
        '\tselect KALLSYMS\nconfig OFF\n\tbool "Off"\n\tselect KALLSYMS\nconfig TRACING\n\tbool\n\tselect KALLSYMS\n'
        '\tselect SMP if BLOCK\nconfig FTRACE\n\tbool "Tracers"\n\tselect TRACING\n'
    )
    tools = Toolchain(arch="x86_64", prefix="", ccache=False, title="gcc", id="x")
    builder = build.Builder(tmp_path / "src", tmp_path / "obj", tools, cache=tmp_path, jobs=1)
    (tmp_path / "my.config").write_text(
        "CONFIG_EXT4_FS=y\nCONFIG_NOT_THERE=y\nCONFIG_KALLSYMS=n\nCONFIG_HZ=1000\nCONFIG_SMP=n\n"
    )
    wanted = config_fragment.request(str(tmp_path / "my.config"), (7, 3), "x86_64")
    told: list[str] = []

    class Said(Quiet):
        def note(self, text: str) -> None:
            told.append(text)

    def configure(*_: object) -> tuple[str, ...]:
        builder.obj.mkdir(exist_ok=True)
        (builder.obj / ".config").write_text(
            "# CONFIG_BLOCK is not set\nCONFIG_HZ=250\nCONFIG_SMP=y\n"
            "CONFIG_KALLSYMS=y\nCONFIG_KPROBES=y\nCONFIG_TRACING=y\nCONFIG_FTRACE=y\n"
        )
        return ()

    monkeypatch.setattr(builder, "configure", configure)
    with pytest.raises(UserError, match="nothing was built"):
        builder.build(wanted, "t", tmp_path / "log", Said())
    assert [line for line in told if "SANDBOX" not in line.upper()] == [
        "t: CONFIG_EXT4_FS: requested y, got n (it needs BLOCK=y too)",
        "t: CONFIG_HZ: requested 1000, got 250 (set HZ_1000=y instead)",
        "t: CONFIG_KALLSYMS: requested n, got y (KPROBES, FTRACE select it: they have to be n too)",
        "t: CONFIG_NOT_THERE: requested y, got n (no Kconfig file of this source has it)",
        "t: CONFIG_SMP: requested n, got y",
    ]


def test_what_no_user_sets_is_told_with_what_sets_it(tmp_path: Path) -> None:
    """Of LOCKDEP=y and LTO_CLANG_THIN=y it was said alone that they are off."""
    (tmp_path / "Kconfig").write_text(
        'config LOCKDEP\n\tbool\nconfig PROVE_LOCKING\n\tbool "Prove"\n\tselect LOCKDEP\nconfig LOCK_STAT\n'
        '\tbool "Statistics"\n\tselect LOCKDEP\nconfig CC_IS_CLANG\n\tdef_bool n\nconfig HAS_LTO_CLANG\n\tdef_bool y\n'
        '\tdepends on CC_IS_CLANG\nconfig LTO_CLANG_THIN\n\tbool "Thin"\n\tdepends on HAS_LTO_CLANG\n'
        'config LOCK_STATED\n\tbool "More"\n\tdepends on LOCKDEP\nconfig FOUND\n\tbool\nconfig FINDS\n\tbool "x"\n'
        "\tdepends on FOUND\n"
    )
    asked = dict.fromkeys(("LOCKDEP", "LTO_CLANG_THIN", "LOCK_STATED", "FINDS", "FOUND"), "y")
    assert withheld.reasons(tmp_path, "x86_64", asked, {}) == {
        "LOCKDEP": "only PROVE_LOCKING, LOCK_STAT set it",
        "LTO_CLANG_THIN": "it needs clang, and kdelta builds with gcc",
        "LOCK_STATED": "it needs LOCKDEP, which only PROVE_LOCKING, LOCK_STAT set",
        "FINDS": "it needs FOUND, which no user sets",
        "FOUND": "no user sets it",
    }


@pytest.mark.parametrize(
    ("asked", "ours"),
    [
        ("PREEMPT_RT", "PREEMPT_VOLUNTARY"),
        ("HZ_PERIODIC", "NO_HZ_IDLE"),
        ("NO_HZ_FULL", "NO_HZ_IDLE"),
        ("ARM64_16K_PAGES", "ARM64_4K_PAGES"),
        ("ARM64_VA_BITS_39", "ARM64_VA_BITS_48"),
    ],
)
def test_an_option_of_a_choice_takes_the_place_of_ours(asked: str, ours: str) -> None:
    """NO_HZ_FULL=y and PREEMPT_RT=y came out as n: of two options of a choice Kconfig takes that which stands last."""
    assert ours in config_fragment.request("", (6, 12), "arm64").options
    options = config_fragment.request(f"{asked}=y", (6, 12), "arm64").options
    assert asked in options and ours not in options


def test_what_a_whole_config_loses_is_told_where_it_moves_figures(tmp_path: Path) -> None:
    """A .config of clang's lost LTO without a word, one of 7.3 its preemption on 6.12."""
    head = "# Automatically generated file; DO NOT EDIT.\n"
    path = tmp_path / "mine"
    path.write_text(
        f'{head}CONFIG_CC_VERSION_TEXT="clang 19"\nCONFIG_LTO_CLANG=y\nCONFIG_PREEMPT_LAZY=y\nCONFIG_A=y\nCONFIG_B=m\n'
        "CONFIG_C=y\n# CONFIG_HZ is not set\n"
    )
    wanted = config_fragment.request(str(path), (6, 12), "x86_64")
    same = path.read_text()
    assert config_fragment.lost(wanted, same) == ""
    assert config_fragment.lost(wanted, same.replace("CONFIG_A=y\n", "")) == ""
    got = 'CONFIG_CC_VERSION_TEXT="gcc"\nCONFIG_C=y\nCONFIG_PREEMPT_NONE=y\nCONFIG_HZ=250\n'
    assert config_fragment.lost(wanted, got) == (
        "of the config mine came out otherwise, by this source or compiler: CONFIG_PREEMPT_LAZY: y -> n, "
        "CONFIG_LTO_CLANG: y -> n and 1 more"
    )
    assert config_fragment.lost(config_fragment.request("A=y", (6, 12), "x86_64"), got) == ""


def test_a_name_that_may_be_unknown_is_asked_for_but_not_missed() -> None:
    wanted = Request(options={"OLD_NAME": "?y"})
    assert wanted.text == "CONFIG_OLD_NAME=y\n"
    assert config_fragment.unmet(wanted, "CONFIG_A=y\n") == ()


def test_differences_of_two_configs_are_named_both_ways() -> None:
    before = "CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_SAME=y\nCONFIG_N=8\n"
    after = "# CONFIG_A is not set\nCONFIG_B=y\nCONFIG_SAME=y\nCONFIG_N=16\n"
    assert config_fragment.differences(before, after) == (
        "CONFIG_A: y -> n",
        "CONFIG_B: n -> y",
        "CONFIG_N: 8 -> 16",
    )


@pytest.mark.parametrize("word", ["WATCH_QUEUE", "watch_queue=", "CONFIG_watch_queue=y"])
def test_a_word_that_is_no_file_may_be_meant_as_an_option(word: str) -> None:
    with pytest.raises(UserError, match=r"cannot be read .*; an option is written WATCH_QUEUE=y$"):
        config_fragment.check(word)
    with pytest.raises(UserError, match=r"cannot be read \(No such file or directory\)$"):
        config_fragment.check("no/such.config")


@pytest.mark.parametrize("config", ["SMP=n,KALLSYMS=n", "SMP=n FOO", "SMP = n", "# CONFIG_SMP is not set"])
def test_how_options_are_written_is_told(config: str) -> None:
    with pytest.raises(UserError, match=r'cannot be read .*; options are written config="FOO=y BAR=n"$'):
        config_fragment.check(config)


@pytest.mark.parametrize("config", ["SMP=N", "CONFIG_SMP=no", "HZ_250=n SMP=N", "LOCALVERSION=-x"])
def test_a_value_that_kconfig_would_not_take_is_refused(config: str) -> None:
    """Of SMP=N all was built, with SMP."""
    with pytest.raises(UserError, match=r"=(N|no|-x): an option is y, n, m \(small\), a number, or a text in quotes$"):
        config_fragment.check(config)


@pytest.mark.parametrize(("own", "of"), [(True, 1527), (False, None)])
def test_a_build_that_goes_on_says_how_much_of_all_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: bool, of: int | None
) -> None:
    """One that was interrupted at 822 of 1527 began with 0 of 1527 again, and "about 67 min left" were 30.

    Of another config the sum is not known: that of a tiny one was told as our own's, at the end of it 40 min were left.
    """
    tools = Toolchain(arch="arm64", prefix="", ccache=False, title="gcc", id="x")
    builder = build.Builder(tmp_path / "src", tmp_path / "obj", tools, cache=tmp_path, jobs=1)
    for index in range(822):
        (builder.obj / f"fs/.{index}.o.cmd").parent.mkdir(parents=True, exist_ok=True)
        (builder.obj / f"fs/.{index}.o.cmd").touch()
    told: list[tuple[int | None, int | None]] = []

    class Said(Quiet):
        def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
            told.append((done, total))

    def make(_: object, __: Path, on_line: Callable[[str], None]) -> None:
        on_line("  CC      fs/pipe.o\n")
        (builder.obj / "vmlinux").touch()

    monkeypatch.setattr(builder, "make", make)
    assert builder.compile("t", tmp_path / "log", Said(), own=own)[0] == 1
    assert told == [(822, of), (823, of)]


@pytest.mark.parametrize(
    ("line", "own"),
    [
        ("gcc: fatal error: Killed signal terminated program cc1", False),
        ("make[3]: *** [scripts/Makefile.build:249: fs/pipe.o] Killed", False),
        ("cc1: out of memory allocating 65536 bytes after a total of 9 bytes", False),
        ("fs/pipe.c:1:2: error: 'Killed' undeclared", True),
        ("make[3]: *** [scripts/Makefile.build:249: fs/pipe.o] Error 1", True),
    ],
)
def test_no_commit_is_at_fault_where_the_host_is(tmp_path: Path, line: str, own: bool) -> None:
    """A compiler that was killed for want of memory made bisections skip a commit that builds."""
    assert build.error_line(["  CC      fs/pipe.o", line]) == line
    assert build.fault_of_source(build.BuildError(line, tmp_path / "log")) == (line if own else "")

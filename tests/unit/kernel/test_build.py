# SPDX-License-Identifier: GPL-2.0-or-later
"""Config requests and the reading of build logs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kdelta.errors import UserError
from kdelta.kernel import build, config_fragment
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
        builder.obj.mkdir()
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
        builder.obj.mkdir()
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
        "t: CONFIG_NOT_THERE: requested y, got n (does not exist, or a dependency is off)",
        "t: CONFIG_SMP: requested n, got y",
    ]


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

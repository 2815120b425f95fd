# SPDX-License-Identifier: GPL-2.0-or-later
"""The tests of a source are built statically with its own headers; a tiny source really compiles some."""

from __future__ import annotations

import difflib
import shutil
import subprocess
from pathlib import Path

import pytest

from kdelta.errors import HostError, UserError
from kdelta.kernel import selftests, toolchain
from kdelta.kernel.sources import parse_kernel
from kdelta.model.progress import Quiet

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None or shutil.which("make") is None, reason="needs gcc and make"
)

MAKEFILE = """\
VERSION = 6
PATCHLEVEL = 12
headers:
	@mkdir -p $(O)/usr/include/linux
	@cp include/uapi/linux/answer.h $(O)/usr/include/linux/
"""
LIB = """\
TEST_GEN_PROGS := $(patsubst %,$(OUTPUT)/%,$(TEST_GEN_PROGS))
TEST_GEN_FILES := $(patsubst %,$(OUTPUT)/%,$(TEST_GEN_FILES))
all: $(TEST_GEN_PROGS) $(TEST_GEN_FILES)
$(OUTPUT)/%: %.c
	$(CC) $(CFLAGS) $(LDFLAGS) $< -o $@
"""
SUITE = """\
CFLAGS += $(KHDR_INCLUDES)
TEST_GEN_PROGS := good broken
TEST_GEN_FILES := helper
TEST_PROGS := run.sh more.sh
TEST_FILES := table.txt
include ../lib.mk
"""
GOOD = "#include <linux/answer.h>\nint main(void)\n{\n\treturn ANSWER;\n}\n"
FILES = {
    "Makefile": MAKEFILE,
    "fs/pipe.c": "int pipe;\n",
    "include/uapi/linux/answer.h": "#define ANSWER 7\n",
    "tools/testing/selftests/lib.mk": LIB,
    "tools/testing/selftests/pidfd/Makefile": SUITE,
    "tools/testing/selftests/pidfd/good.c": GOOD,
    "tools/testing/selftests/pidfd/broken.c": "int main(void) { return NO_SUCH_THING; }\n",
    "tools/testing/selftests/pidfd/helper.c": "int main(void) { return 0; }\n",
    "tools/testing/selftests/pidfd/table.txt": "1 2 3\n",
    "tools/testing/selftests/hopeless/Makefile": "TEST_GEN_PROGS := bad\ninclude ../lib.mk\n",
    "tools/testing/selftests/hopeless/bad.c": "#error never\n",
}


class Told(Quiet):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        self.lines.append(text)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(toolchain, "missing", lambda arch: [])
    root = tmp_path / "linux"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def patch(tmp_path: Path, path: str, new: str) -> Path:
    old = FILES[path]
    lines = difflib.unified_diff(old.splitlines(True), new.splitlines(True), f"a/{path}", f"b/{path}")
    target = tmp_path / f"{Path(path).stem}.patch"
    target.write_text("".join(lines))
    return target


def exit_of(suite: selftests.Suite, name: str = "good") -> int:
    return subprocess.run([suite.programs[name]], check=False).returncode


def test_a_suite_is_built_statically_with_the_headers_of_its_source(tree: Path) -> None:
    (suite,) = selftests.build_suites(parse_kernel(f"src:{tree}"), ["pidfd"])
    assert exit_of(suite) == 7
    described = subprocess.run(["readelf", "-l", suite.programs["good"]], capture_output=True, text=True, check=True)
    assert "INTERP" not in described.stdout
    assert set(suite.files) == {"helper", "table.txt"}


def test_a_test_that_does_not_build_is_left_out_and_named_with_the_compilers_line(tree: Path) -> None:
    (suite,) = selftests.build_suites(parse_kernel(f"src:{tree}"), ["pidfd"])
    assert set(suite.programs) == {"good"}
    assert any("pidfd:broken does not build here" in note and "NO_SUCH_THING" in note for note in suite.notes)
    assert any("2 shell scripts are not run" in note for note in suite.notes)


def test_a_suite_of_which_nothing_builds_is_an_error_that_names_the_log(tree: Path) -> None:
    with pytest.raises(HostError, match=r"selftests hopeless: none builds: .*never.*; log: ") as error:
        selftests.build_suites(parse_kernel(f"src:{tree}"), ["hopeless"])
    assert Path(str(error.value).rpartition("log: ")[2]).is_file()


def test_patches_of_tests_and_headers_count_and_others_share_the_build(tree: Path, tmp_path: Path) -> None:
    plain = parse_kernel(f"src:{tree}")
    (before,) = selftests.build_suites(plain, ["pidfd"])
    header = patch(tmp_path, "include/uapi/linux/answer.h", "#define ANSWER 9\n")
    (after,) = selftests.build_suites(parse_kernel(f"src:{tree}+{header}"), ["pidfd"])
    assert (exit_of(before), exit_of(after)) == (7, 9)
    other = patch(tmp_path, "fs/pipe.c", "int pipe = 1;\n")
    told = Told()
    (shared,) = selftests.build_suites(parse_kernel(f"src:{tree}+{other}"), ["pidfd"], told)
    assert shared == before
    assert not any("building" in line for line in told.lines)


def test_the_users_tree_is_left_as_it_was(tree: Path) -> None:
    before = {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    selftests.build_suites(parse_kernel(f"src:{tree}"), ["pidfd"])
    assert {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("name", ["../../etc", "-C", "a b", "pidfd/..", "/abs", ""])
def test_a_name_that_is_no_suite_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="selftests"):
        selftests.check_names([name])


def test_an_unknown_suite_is_refused_with_its_folder(tree: Path) -> None:
    with pytest.raises(UserError, match="this source has no tools/testing/selftests/nosuch"):
        selftests.build_suites(parse_kernel(f"src:{tree}"), ["nosuch"])


def test_a_kernel_without_source_has_no_selftests() -> None:
    with pytest.raises(UserError, match="its selftests are in its source"):
        selftests.build_suites(parse_kernel("debian:6.12"), ["pidfd"])


def test_a_library_that_is_missing_is_named_with_its_package(tree: Path) -> None:
    bad = tree / "tools/testing/selftests/hopeless/bad.c"
    bad.write_text('#include "no-such-place/sys/capability.h"\n')
    with pytest.raises(HostError, match=r"apt-get install libcap-dev"):
        selftests.build_suites(parse_kernel(f"src:{tree}"), ["hopeless"])

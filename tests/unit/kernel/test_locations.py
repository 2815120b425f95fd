# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a diff changes which functions: by the text of C files, by patches, and between two commits."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.kernel import changed, locations, source
from kdelta.kernel.products import Built
from kdelta.kernel.sources import parse_kernel
from kdelta.model import Location

C_FILE = """\
#include <linux/fs.h>

static const struct file_operations ops = {
	.read = foo_read,
};

static __printf(1, 2) void say(const char *text, ...)
{
	vprintk(text, args);
}

static long wait_for(struct sock *other, long timeo)
	__releases(&unix_sk(other)->lock)
{
	int sched;

	sched = 1;
	return sched;
}

SYSCALL_DEFINE3(read, unsigned int, fd,
		char __user *, buf, size_t, count)
{
	return ksys_read(fd, buf, count);
}
"""


def diff_of(folder: Path, before: str, after: str, *words: str) -> list[str]:
    """What diff(1) says of two versions of fs/foo.c."""
    for name, text in (("a", before), ("b", after)):
        (folder / name / "fs").mkdir(parents=True, exist_ok=True)
        (folder / name / "fs" / "foo.c").write_text(text)
    done = subprocess.run(
        ["diff", *(words or ["-u"]), "a/fs/foo.c", "b/fs/foo.c"], cwd=folder, capture_output=True, text=True
    )
    return done.stdout.split("\n")


@pytest.mark.parametrize("context", ["-u", "-U0"])
@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("\tsched = 1;\n", "\tsched = 2;\n", [("wait_for", 17)]),
        ("\tint sched;\n\n\tsched = 1;\n", "\tint sched = 1;\n\n", [("wait_for", 15)]),
        ("\tsched = 1;\n", "", [("wait_for", 17)]),  # taken out: the line that is there now
        ("static long wait", "long wait", [("wait_for", 12)]),
        ("vprintk(text", "vprintk(0, text", [("say", 9)]),
        (".read = foo", ".read = bar", [("", 4)]),
        (
            "return ksys_read(",
            "return bad_read(",
            [(f"{prefix}_sys_read", 24) for prefix in ("__do", "__se", "__x64", "__arm64")],
        ),
    ],
)
def test_a_change_is_at_its_first_line_in_the_function(
    context: str, old: str, new: str, found: list[tuple[str, int]], tmp_path: Path
) -> None:
    after = C_FILE.replace(old, new)
    assert after != C_FILE
    told = locations.of(diff_of(tmp_path, C_FILE, after, context), lambda _: after)
    assert [(one.function, one.line) for one in told] == found
    assert {one.path for one in told} == {"fs/foo.c"}


def test_a_line_that_looks_like_a_header_is_none(tmp_path: Path) -> None:
    after = C_FILE.replace("\tsched = 1;\n", "++ b/etc/passwd\n@@ -1 +1 @@\n\tsched = 1;\n")
    told = locations.of(diff_of(tmp_path, C_FILE, after), lambda _: after)
    assert [(one.path, one.function, one.line) for one in told] == [("fs/foo.c", "wait_for", 17)]


@given(st.lists(st.sampled_from([*C_FILE.split("\n"), "+++ b/x.c", "@@ -1,2 +1,9 @@", "-{", "+}", "+++ b/\udc80"])))
def test_no_text_is_too_odd(lines: list[str]) -> None:
    for one in locations.of(lines, lambda _: "\n".join(lines)):
        assert one.line >= 1 and one.path.encode()


def git(tree: Path, *words: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "-C", str(tree), *who, *words], check=True, capture_output=True)


def test_between_two_commits_git_knows_the_lines(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    after = C_FILE.replace("sched = 1;", "sched = 2;")
    for text, tag in ((C_FILE, "v1"), (after, "v2")):
        (tmp_path / "foo.c").write_text(text)
        git(tmp_path, "add", "foo.c")
        git(tmp_path, "commit", "-qm", tag)
        git(tmp_path, "tag", tag)
    git(tmp_path, "config", "diff.noprefix", "true")  # a user's own taste changes nothing
    specs = [parse_kernel(f"src:{tmp_path}@{tag}") for tag in ("v1", "v2")]
    assert changed.between(*specs) == (Location(function="wait_for", path="foo.c", line=17),)
    assert changed.between(parse_kernel("debian:6.12"), parse_kernel("debian:7.0")) == ()


def test_of_a_patch_the_build_remembers_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told = (Location(function="f", path="fs/pipe.c", line=3),)
    monkeypatch.setattr(source, "built_facts", lambda _: Built(image_sha256="0", origin="", locations=told))
    base = f"src:{tmp_path}@v1"
    assert changed.between(parse_kernel(base), parse_kernel(f"{base}+my.patch")) == told

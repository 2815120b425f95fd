# SPDX-License-Identifier: GPL-2.0-or-later
"""Kinds of kernel sources are files that are found; each looks at its inputs before anything is done."""

from __future__ import annotations

import io
import os
import re
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard

from kdelta.errors import UserError
from kdelta.kernel import build, cache, debian, origin, resolve, sources, steps, worktree
from kdelta.kernel.partial import resolve_each
from kdelta.kernel.sources import parse_kernel, written
from kdelta.model.progress import Quiet
from kdelta.spec.kernels import MAX_CHARS
from unit.kernel import synthetic

FOURTH = '''
"""A distribution that kdelta does not know."""
from msgspec.structs import replace
from pathlib import Path
from kdelta.kernel import ingest
from kdelta.kernel.sources._source import Source, kernel_of

def _parse(spec, body):
    first, dots, last = body.partition("..")
    return replace(spec, kind="arch", target=first, last=last)

def _expand(spec, progress):
    names = ["6.1", "6.2", "6.3"]
    if not spec.last:
        return [spec]
    return [replace(spec, target=n, last="") for n in names[names.index(spec.target) : names.index(spec.last) + 1]]

def _resolve(spec, progress):
    data = (Path(__file__).parent / f"{spec.target}.image").read_bytes()
    return kernel_of(spec, ingest.store(spec.text, data, origin="Arch"), spec.target)

SOURCE = Source(prefix="arch", forms="arch:VERSION, arch:FIRST..LAST", about="Arch's archive", kinds=("arch",),
                parse=_parse, write=lambda spec: "arch:" + spec.target, expand=_expand, resolve=_resolve)
'''


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def fourth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One file more in the directory of sources."""
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "arch.py").write_text(FOURTH)
    for name in ("6.1", "6.2", "6.3"):
        (folder / f"{name}.image").write_bytes(synthetic.bzimage(synthetic.vmlinux(extra=name.encode())))
    monkeypatch.setattr(sources, "__path__", [*sources.__path__, str(folder)])
    sources.all_sources.cache_clear()
    yield
    sources.all_sources.cache_clear()


@pytest.mark.usefixtures("fourth")
def test_a_fourth_distribution_is_one_file() -> None:
    assert "arch:FIRST..LAST" in sources.forms()
    with pytest.raises(UserError, match=r"arch:VERSION, arch:FIRST\.\.LAST"):
        parse_kernel("nothing:6.1")
    spec = parse_kernel("mine=arch:6.2,cmdline=quiet")
    assert (spec.kind, spec.target, spec.label, spec.is_range) == ("arch", "6.2", "mine", False)
    assert sources.written(spec) == 'mine=arch:6.2,cmdline="quiet"'
    assert resolve.resolve(spec).label == "mine"
    several = resolve.resolve_all([parse_kernel("arch:6.1..6.3")])
    assert [kernel.label for kernel in several] == ["6.1", "6.2", "6.3"]
    assert len({kernel.image_sha256 for kernel in several}) == 3
    assert [one.label for one in resolve_each([parse_kernel("arch:6.2..6.3")], Quiet())] == ["6.2", "6.3"]
    with pytest.raises(UserError, match="config= needs"):
        resolve.resolve(parse_kernel("arch:6.2,config=x"))
    with pytest.raises(UserError, match="range is several"):
        resolve.resolve(parse_kernel("arch:6.1..6.3"))


def test_the_source_of_the_how_to_works_as_it_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    how_to = Path(__file__).parents[3] / "docs" / "how-to" / "add-a-kernel-source.md"
    (block,) = re.findall(r"```python\n(.*?)```", how_to.read_text(), re.DOTALL)
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "pacman.py").write_text(block)
    monkeypatch.setattr(sources, "__path__", [*sources.__path__, str(tmp_path / "more")])
    sources.all_sources.cache_clear()
    image, held = synthetic.bzimage(), io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as tar:
        info = tarfile.TarInfo("usr/lib/modules/6.17.8-arch1/vmlinuz")
        info.size = len(image)
        tar.addfile(info, io.BytesIO(image))
    (tmp_path / "linux.pkg").write_bytes(zstandard.ZstdCompressor().compress(held.getvalue()))
    try:
        kernel = resolve.resolve(parse_kernel(f"pacman:{tmp_path}/linux.pkg"))
        with pytest.raises(UserError, match="no such file"):
            resolve.check([parse_kernel(f"pacman:{tmp_path}/missing.pkg")])
    finally:
        sources.all_sources.cache_clear()
    assert Path(kernel.image_path).read_bytes() == image


def test_every_source_says_how_it_is_written_and_what_it_is() -> None:
    for one in sources.all_sources():
        assert one.forms and one.about and one.kinds and one.forms in sources.forms()
    assert {"", "deb", "debian", "rpm", "running", "src"} <= {one.prefix for one in sources.all_sources()}


@pytest.mark.parametrize(
    "text",
    [
        "debian:6.1" + "-" * 16_000 + "!",
        "debian:6.1" + "-a" * 8_000 + "!",
        "debian:6.1" + "+~-" * 5_000,
        "debian:" + "1" * 16_000,
        "debian:6.12/" + "-" * 16_000,
        "src:debian:6.12" + "-" * 16_000,
        "src:t" + "+-" * 8_000,
        "src:" + "../" * 5_000 + "-" * 500,
        "a" * 16_000 + "=",
        "x=" * 8_000,
        "x,cmdline=" + '"' * 15_000,
        "x," * 8_000,
        "running" * 2_000,
        ":" * 16_000,
        "deb:" + "a" * 100_000,
    ],
)
def test_a_hostile_name_is_read_in_proportion_to_its_length(text: str) -> None:
    try:
        spec = parse_kernel(text)  # a pattern that backtracks would never come back
        assert len(spec.text) <= MAX_CHARS
    except UserError as error:
        assert str(error).startswith("kernel ")


def test_versions_are_read_as_before() -> None:
    for good in ("6.12", "6.12.43", "6.12.117+deb13", "6.12.74-1~bpo12+1", "7.0.13-1~bpo13+1"):
        assert parse_kernel(f"debian:{good}").target == good
    for bad in ("6", "6.", "six", "6.12-", "6.12.1.1", "6.12 ", "٦.١٢"):
        with pytest.raises(UserError, match="is not a version"):
            parse_kernel(f"debian:{bad}")


PATCH = "--- a/fs/a.c\n+++ b/fs/a.c\n@@ -1 +1 @@\n-a\n+b\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "linux").mkdir()
    (tmp_path / "linux/Makefile").write_text("VERSION = 6\nPATCHLEVEL = 12\n")
    (tmp_path / "good.patch").write_text(PATCH)
    (tmp_path / "empty.patch").write_text("")
    (tmp_path / "prose.patch").write_text("Subject: no diff\n\nhello\n")
    (tmp_path / "bad.patch").write_text("--- a/../../etc/passwd\n+++ b/../../etc/passwd\n@@ -1 +1 @@\n-a\n+b\n")
    (tmp_path / "bad.config").write_text("CONFIG FOO maybe\n")
    (tmp_path / "no.deb").write_text("no package")
    os.mkfifo(tmp_path / "fifo")
    return tmp_path


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ("good.patch+other.patch", ["good.patch", "other.patch"]),
        ("g++.patch", ["g++.patch"]),
        ("good.patch+v1.2+g++.patch-v1+v2.patch", ["good.patch", "v1.2+g++.patch", "v1+v2.patch"]),
        ("v1+v2.patch+./other.patch", ["v1+v2.patch", "./other.patch"]),
        ("v1+v2.patch+-v1+v2.patch", ["v1+v2.patch", "v1+v2.patch"]),
        ("good.patch+other.patch+both", ["good.patch+other.patch+both"]),
        ("+good.patch", ["+good.patch"]),
    ],
)
def test_a_plus_may_be_part_of_a_patchs_name_and_the_longest_that_is_there_counts(
    tree: Path, names: str, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree)
    for name in (
        "other.patch",
        "g++.patch",
        "v1.2+g++.patch",
        "v1+v2.patch",
        "good.patch+other.patch+both",
        "+good.patch",
    ):
        (tree / name).write_text(PATCH)
    spec = parse_kernel(f"src:debian:6.12+{names}")
    assert [step.mail.name for step in steps.load_patches(spec.patches)] == found
    assert steps.load_patches(parse_kernel(written(spec)).patches) == steps.load_patches(spec.patches)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("src:debian:6.12++{tree}/good.patch", "a patch's name is missing after +"),
        ("src:debian:6.12+{tree}/good.patch++{tree}/good.patch", "a patch's name is missing after +"),
        ("src:debian:6.12+{tree}/none.patch", "none.patch: cannot be read"),
        ("src:debian:6.12+{tree}/empty.patch", "empty.patch: no diff found"),
        ("src:debian:6.12+{tree}/prose.patch", "prose.patch: no diff found"),
        ("src:debian:6.12+{tree}/bad.patch", "bad.patch: refused"),
        ("src:debian:6.12+{tree}/linux", "linux: it is not a regular file"),
        ("src:debian:6.12+{tree}/fifo", "fifo: it is not a regular file"),
        ("src:debian:6.12+/dev/zero", "/dev/zero: it is not a regular file"),
        ("src:debian:6.12,config={tree}/none.config", "none.config: cannot be read"),
        ("src:debian:6.12,config={tree}/bad.config", "is not of the form CONFIG_FOO=y"),
        ("src:debian:6.12,config={tree}/linux", "linux: it is not a regular file"),
        ("src:debian:6.12,config={tree}/fifo", "fifo: it is not a regular file"),
        ("src:{tree}/linux+{tree}/none.patch", "cannot be read"),
        ("src:{tree}/linux@v6.8", "not a git repository"),
        ("src:{tree}/nowhere", "no such directory"),
        ("src:{tree}/good.patch", "not a directory"),
        ("src:{tree}", "not a kernel source"),
        ("deb:{tree}/none.deb", "no such file"),
        ("deb:{tree}/no.deb", "not a readable Debian package"),
        ("{tree}/none.image", "No such file"),
        ("{tree}/fifo", "not a regular file"),
        ("{tree}/linux", "is a directory"),
        ("debian:6.12,config=x", "config= needs"),
        ("running,cmdline=quiet", "started with"),
    ],
)
def test_inputs_are_looked_at_before_anything_is_fetched_unpacked_or_built(
    tree: Path, text: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("work was begun")

    for place, name in (
        (debian, "find"), (debian, "find_range"), (debian, "fetch"), (debian, "fetch_source"), (cache, "put"),
        (build.Builder, "build"), (worktree.Worktree, "locked"), (origin, "listing"), (origin, "_uncommitted"),
    ):  # fmt: skip
        monkeypatch.setattr(place, name, refuse)
    specs = [parse_kernel("debian:6.12"), parse_kernel(text.format(tree=tree))]
    resolvers: list[Callable[[], object]] = [lambda: resolve.resolve_all(specs), lambda: resolve_each(specs, Quiet())]
    for resolved in resolvers:
        with pytest.raises(UserError, match=why) as error:
            resolved()
        assert "\n" not in str(error.value)

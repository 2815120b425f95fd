# SPDX-License-Identifier: GPL-2.0-or-later
"""One build of a patched source: the patches applied in its work tree, compiled, and a failure explained.

Baseline and patched are built in one directory at one path, with one config and compiler, so only the patch differs.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from kdelta.errors import HostError, UserError
from kdelta.kernel import cache, defaults, guards, kbuild, kconfig, layouts, locations, products, sandbox
from kdelta.kernel.build import Builder, BuildError, default_jobs
from kdelta.kernel.config_fragment import Request
from kdelta.kernel.origin import Origin
from kdelta.kernel.patched import Patched, patched
from kdelta.kernel.remade import remade
from kdelta.kernel.steps import Step, for_others, incomplete, mixed
from kdelta.kernel.toolchain import Toolchain
from kdelta.kernel.worktree import Worktree, encode
from kdelta.model import Location, Progress
from kdelta.paths import cache_dir
from kdelta.spec.workloads import rare_options

FORMAT = 2  # of what is remembered and of build directories: raised when the build's own rules change


class Wanted(Struct, frozen=True, kw_only=True):
    """All that a build depends on."""

    origin: Origin
    steps: tuple[Step, ...]
    tools: Toolchain
    request: Request
    layout: int = 0  # see layouts.py

    @property
    def title(self) -> str:
        """The source as its user named it."""
        return " ".join([self.origin.title, *(step.title for step in self.steps), *self._shifted])

    @property
    def short(self) -> str:
        """``title`` where a series is a word, how far it goes: ``+series.mbox [3/3]``."""
        far = {step.title.partition(" [")[0]: step.title for step in self.steps}
        return " ".join([self.origin.title, *far.values(), *self._shifted])

    @property
    def _shifted(self) -> list[str]:
        return [f"layout {self.layout}"] if self.layout else []

    @property
    def about(self) -> str:
        """Where the kernel comes from, and how it is made."""
        return f"{self.title}; {self.request.title} config; {self.tools.title}"

    @property
    def key(self) -> str:
        """By what its products are remembered."""
        steps, config = [step.id for step in self.steps], config_digest(self.request)
        facts = [FORMAT, self.origin.id, steps, config, self.tools.id, self.tools.arch]
        facts += self._shifted
        facts += [f"new {' '.join(self.request.new)}"] if self.request.new else []
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:24]

    def objects(self, home: Path) -> Path:
        """The build directory in the work tree at ``home``; it belongs to a config, a compiler and these rules."""
        return home / f"obj-{FORMAT}-{self.tools.id[:6]}-{config_digest(self.request)}"


def config_digest(request: Request) -> str:
    """Tells configs apart."""
    return hashlib.sha256(encode(f"{request.base}\0{request.text}")).hexdigest()[:12]


def _explained(error: BuildError, applied: Patched, builder: Builder, wanted: Wanted) -> HostError:
    """Whether the patch causes the failed build, as far as that can be told; and what of its series was not given."""
    title, origin = wanted.short, wanted.origin
    if not applied.touched:
        return HostError(f"{title} does not build: {error}")
    lacking = "; ".join((*incomplete(wanted.steps), *for_others(wanted.steps, origin.version)))
    lacking = f" ({lacking})" if lacking else ""
    if any(path in error.line for path in applied.touched):
        return HostError(f"{title}: the patch does not compile{lacking}: {error}")
    if (builder.obj / "kdelta-built").exists() and origin.base in sandbox.read(builder.obj / "kdelta-built"):
        return HostError(f"{title}: builds without the patch, but not with it{lacking}: {error}")
    return HostError(f"{title} does not build (not tried without the patch): {error}")


def _notes(wanted: Wanted, applied: Patched, unmet: tuple[str, ...], not_built: list[str]) -> tuple[str, ...]:
    unseen = map(guards.unbuilt, not_built)
    given = (*for_others(wanted.steps, wanted.origin.version), *mixed(wanted.steps), *incomplete(wanted.steps))
    return (*wanted.origin.notes, *given, *applied.notes, *unseen, *unmet)


def _text(applied: Patched, path: str) -> str | None:
    return applied.files[path].text if path in applied.files else None


def _changed(applied: Patched) -> tuple[Location, ...]:
    return locations.of(applied.diff.split("\n"), lambda path: _text(applied, path))


def _left_out(applied: Patched, config: str, not_built: Sequence[str], src: Path) -> guards.LeftOut:
    """What of the patches this config does not compile: whole files, and what stands under options."""

    def read(path: str) -> str | None:
        return sandbox.read(src / path) if (src / path).is_file() else None

    options = kconfig.parse(config)
    found = guards.around(applied.diff.split("\n"), lambda path: _text(applied, path), options)
    parts = (part for part in found.parts if part.partition(" ")[0] not in not_built)
    builds = kbuild.missing_of(read, not_built, options, rare_options())
    return guards.LeftOut(options=found.options, parts=(*not_built, *parts), builds=builds)


def _new_alone(request: Request, src: Path, diff: str) -> Request:
    """``request`` with those options as new that ``src`` declares no further time: a second declaration adds to one."""
    if not request.new:
        return request
    left = Counter(defaults.declared(line[1:] for line in diff.split("\n") if line[:1] == "+"))
    for path in (Path(folder, name) for folder, _, names in os.walk(src) for name in names):
        if defaults.is_kconfig(path.name) and not path.is_symlink():
            left.subtract(defaults.declared(sandbox.read(path).split("\n")))
    return msgspec.structs.replace(request, new=tuple(name for name in request.new if left[name] >= 0))


def fitted(tree: Worktree, wanted: Wanted, progress: Progress) -> Patched:
    """The source of ``wanted`` with its patches, on the locked ``tree``; nothing is laid out or built.

    Raises:
        UserError: a patch that does not fit.
    """
    try:
        return patched(tree, wanted.origin, wanted.steps, progress)
    except UserError as error:  # of a patch for another release no wonder
        raise UserError("; ".join([str(error), *for_others(wanted.steps, wanted.origin.version)])) from None


def build_in(tree: Worktree, wanted: Wanted, name: str, progress: Progress) -> None:
    """Build what is ``wanted``, the kernel called ``name``, in the locked ``tree`` and remember the product.

    Raises:
        UserError: a patch that does not fit. HostError: the build fails. OSError: the disk is full.
    """
    origin = wanted.origin
    applied = fitted(tree, wanted, progress)
    for note in applied.notes:
        progress.step(note)
    home = products.folder(wanted.key)
    home.mkdir(parents=True, exist_ok=True)
    cache.write_atomically(home / "applied.diff", encode(applied.diff))
    title = wanted.short
    files = layouts.padded(applied.files, tree.read_base, wanted.layout)
    obj = wanted.objects(tree.home)
    jobs, held = default_jobs(), (tree.lock_fd,)
    builder = Builder(tree.src, obj, wanted.tools, cache=cache_dir(), jobs=jobs, held=held)
    written = tree.lay(files)
    builder.forget_sourceless()
    again = remade(obj, tree.src.name, written)
    expected = again.objects if again.much else 0
    if expected:
        progress.note(f"{title}: {again.told}")
    basis = applied.config_basis(origin, tree)
    request = _new_alone(wanted.request, tree.src, applied.diff)
    try:
        made = builder.build(request, title, home / "build.log", progress, basis, expected)
    except BuildError as error:
        raise _explained(error, applied, builder, wanted) from None
    if not applied.touched and not wanted.layout:
        sandbox.write(builder.obj / "kdelta-built", origin.base)
    not_built = builder.not_built(applied.touched)
    notes = _notes(wanted, applied, made.unmet, not_built)
    left_out = _left_out(applied, made.config, not_built, tree.src)
    products.keep(wanted.key, name, made, wanted.about, notes, _changed(applied), left_out, wanted.tools.asked)

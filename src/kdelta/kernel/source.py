# SPDX-License-Identifier: GPL-2.0-or-later
"""``src:TREE[@REF][+PATCH...]`` and ``src:debian:VERSION[+PATCH...]`` to a built kernel.

Baseline and patched are built in one directory at one path, with one config and compiler, so only the patch differs.
What was built is remembered by source, patches, config, compiler and architecture, and never built twice.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from kdelta import digests
from kdelta.errors import HostError, UserError
from kdelta.kernel import build, cache, config_fragment, debian, diff, ingest, mail, patch, toolchain
from kdelta.kernel.build import Builder, BuildError
from kdelta.kernel.config_fragment import Request
from kdelta.kernel.origin import Origin, from_path, look, tarball
from kdelta.kernel.toolchain import Toolchain
from kdelta.kernel.worktree import Worktree, encode
from kdelta.model import Kernel
from kdelta.model.progress import Progress, Quiet
from kdelta.paths import cache_dir
from kdelta.spec.kernels import KernelSpec, PatchRef

_SWAYS_CONFIG = re.compile(r"(^|/)(Kconfig[^/]*|Makefile[^/]*)$|^scripts/|/configs/")
FORMAT = 1  # of what is remembered: raised when the build's own rules change


class Step(Struct, frozen=True, kw_only=True):
    """One single patch to apply, or to take out."""

    mail: mail.PatchMail
    take_out: bool = False

    @property
    def id(self) -> str:
        text = "\n".join(["-" if self.take_out else "+", *self.mail.lines])
        return hashlib.sha256(encode(text)).hexdigest()

    @property
    def title(self) -> str:
        path, bracket, number = self.mail.name.partition(" [")
        return ("-" if self.take_out else "+") + Path(path).name + bracket + number


class Built(Struct, frozen=True, kw_only=True):
    """What is remembered of a build; ``diff`` is the clean patch that was applied, ``notes`` sentences for people."""

    image_sha256: str
    origin: str
    diff: str = ""
    notes: tuple[str, ...] = ()
    log: str = ""
    vmlinux: str = ""  # where the image itself has no symbols
    vmlinux_sha256: str = ""  # "" in what an older kdelta built
    steps: int = 0
    elapsed_s: float = 0.0


def root() -> Path:
    """The directory of work trees, build directories and what is remembered."""
    return cache_dir() / "build"


def _read(name: str) -> bytes:
    path = Path(name).expanduser()
    try:
        if path.exists() and not path.is_file():
            raise UserError(f"patch {name}: it is not a regular file; save the patch to one")
        if path.stat().st_size > mail.MAX_BYTES:
            raise UserError(mail.too_large(name, path.stat().st_size))
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise UserError(f"patch {name}: cannot be read ({getattr(error, 'strerror', None) or error})") from None


def load_patches(refs: tuple[PatchRef, ...]) -> tuple[Step, ...]:
    """The single patches of ``refs`` in the order in which they are applied; a series taken out goes backwards.

    Raises:
        UserError: a file that cannot be read or holds no whole patch or series.
    """
    found: list[Step] = []
    for ref in refs:
        steps = [Step(mail=one, take_out=ref.reverse) for one in mail.steps(_read(ref.path), ref.path)]
        found += reversed(steps) if ref.reverse else steps
    return tuple(found)


def check(spec: KernelSpec) -> None:
    """Read what ``spec`` names on this machine: its patches, its config fragment, its tree.

    Raises:
        UserError: one of them is missing or is not what it should be.
    """
    for step in load_patches(spec.patches):
        diff.parse(step.mail)
    config_fragment.check(spec.config)
    if spec.kind == "src":
        look(spec.target, spec.ref)


def origin_of(spec: KernelSpec, progress: Progress) -> Origin:
    """Where the source that ``spec`` names comes from, without its patches."""
    if spec.kind == "src":
        return from_path(spec.target, spec.ref)
    if spec.kind != "src-debian":
        raise UserError(f"kernel {spec.text!r}: not a source; write src:TREE or src:debian:VERSION")
    path = debian.fetch_source(spec.target, progress)
    name = path.name.split(".tar")[0].removeprefix("linux-source-")
    major, minor = name.split(".")[:2]
    version = (int(major), int(re.split(r"\D", minor)[0]))
    return tarball(
        path, version=version, key=f"debian-{re.sub(r'[^A-Za-z0-9.-]', '_', name)}", title=f"Debian linux-source {name}"
    )


def _config_digest(request: Request) -> str:
    return hashlib.sha256(encode(f"{request.base}\0{request.text}")).hexdigest()[:12]


def _key(origin: Origin, steps: tuple[Step, ...], config: str, tools: Toolchain) -> str:
    facts = [FORMAT, origin.id, [step.id for step in steps], config, tools.id, tools.arch]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:24]


def _recall(key: str) -> tuple[Built, cache.Stored] | None:
    """The build of ``key`` if its image is still there, intact."""
    path = root() / "products" / key / "built.json"
    try:
        built = msgspec.json.decode(path.read_bytes(), type=Built)
    except (OSError, msgspec.MsgspecError):
        return None
    stored = cache.get(built.image_sha256)
    return None if stored is None or not _vmlinux_intact(built) else (built, stored)


def _vmlinux_intact(built: Built) -> bool:
    """Whether the uncompressed image of a build is there, as it was made."""
    if not built.vmlinux:
        return True
    try:
        return digests.of_file(Path(built.vmlinux)) == built.vmlinux_sha256
    except OSError:
        return False


def _label(spec: KernelSpec, release: str) -> str:
    """Short and telling: ``6.12.117+my``, ``mybranch``, ``linux-my``."""
    base = release if spec.kind == "src-debian" else spec.ref or Path(spec.target).expanduser().resolve().name
    return base + "".join(("-" if ref.reverse else "+") + Path(ref.path).stem for ref in spec.patches)


def _kernel(spec: KernelSpec, built: Built, stored: cache.Stored) -> Kernel:
    cache.touch(stored, time.time())
    entry = stored.entry
    extracted = str(stored.vmlinux) if stored.vmlinux else ""
    return Kernel(
        label=spec.label or _label(spec, entry.release),
        spec=spec.text,
        release=entry.release,
        arch=entry.arch,
        image_path=str(stored.image),
        image_sha256=entry.sha256,
        vmlinux_path=built.vmlinux or extracted or str(stored.image),
        vmlinux_sha256=built.vmlinux_sha256 or (entry.vmlinux_sha256 if extracted else entry.sha256),
        build_id=entry.build_id,
        cmdline=spec.cmdline,
        config=entry.config,
        origin=built.origin,
    )


def _explained(error: BuildError, applied: patch.Applied, builder: Builder, origin: Origin, title: str) -> HostError:
    """Whether the patch causes the failed build, as far as that can be told."""
    if not applied.files:
        return HostError(f"{title} does not build: {error}")
    if any(path in error.line for path in applied.files):
        return HostError(f"{title}: the patch does not compile: {error}")
    if (builder.obj / "kdelta-built").exists() and origin.base in (builder.obj / "kdelta-built").read_text():
        return HostError(f"{title}: builds without the patch, but not with it: {error}")
    return HostError(f"{title} does not build (not tried without the patch): {error}")


def _config_basis(origin: Origin, files: Mapping[str, patch.File]) -> str:
    """Identifies what of a patched source can sway its .config."""
    swaying = [(path, file.text or "") for path, file in sorted(files.items()) if _SWAYS_CONFIG.search(path)]
    return hashlib.sha256(encode(json.dumps([origin.base, swaying]))).hexdigest()


def _notes(origin: Origin, applied: patch.Applied, unmet: tuple[str, ...], not_built: list[str]) -> tuple[str, ...]:
    unseen = tuple(f"{path} is changed by the patch, but this config does not build it" for path in not_built)
    return (*origin.notes, *applied.notes, *unseen, *unmet)


def _build(spec: KernelSpec, origin: Origin, steps: tuple[Step, ...], tools: Toolchain, request: Request, key: str,
           tree: Worktree, progress: Progress) -> Built:  # fmt: skip
    """Build in the locked ``tree`` and remember the product."""
    if tree.base_id != origin.base:
        origin.fill(tree, progress)

    def read(path: str) -> str | None:
        return origin.files[path].text if path in origin.files else tree.read_base(path)

    applied = patch.apply_series(((step.mail, step.take_out) for step in steps), read)
    for note in applied.notes:
        progress.step(note)
    folder = root() / "products" / key
    folder.mkdir(parents=True, exist_ok=True)
    cache.write_atomically(folder / "applied.diff", encode(applied.diff))
    title = " ".join([origin.title, *(step.title for step in steps)])
    obj = tree.home / f"obj-{tools.id[:6]}-{_config_digest(request)}"
    jobs, held = build.default_jobs(), (tree.lock_fd,)
    builder = Builder(tree.src, obj, tools, cache=cache_dir(), jobs=jobs, held=held)
    files = {**origin.files, **applied.files}
    tree.lay(files)
    try:
        made = builder.build(request, title, folder / "build.log", progress, _config_basis(origin, files))
    except BuildError as error:
        raise _explained(error, applied, builder, origin, title) from None
    if not applied.files:
        (builder.obj / "kdelta-built").write_text(origin.base)
    about = f"{title}; {request.title} config; {tools.title}"
    notes = _notes(origin, applied, made.unmet, builder.not_built(applied.files))
    return _stored(spec, made, about, notes, folder)


def _stored(spec: KernelSpec, made: build.Products, about: str, notes: tuple[str, ...], folder: Path) -> Built:
    """Put the image where all kernels are; what belongs to the build stays in ``folder``."""
    stored = ingest.store(spec.text, made.image.read_bytes(), made.config, origin=about)
    vmlinux, vmlinux_sha256 = "", ""
    if made.image != made.vmlinux:
        vmlinux, content = str(folder / "vmlinux"), made.vmlinux.read_bytes()
        vmlinux_sha256 = hashlib.sha256(content).hexdigest()
        cache.write_atomically(folder / "vmlinux", content)
    built = Built(
        image_sha256=stored.entry.sha256,
        origin=about,
        diff=str(folder / "applied.diff"),
        notes=notes,
        log=str(folder / "build.log"),
        vmlinux=vmlinux,
        vmlinux_sha256=vmlinux_sha256,
        steps=made.steps,
        elapsed_s=made.elapsed_s,
    )
    cache.write_atomically(folder / "built.json", msgspec.json.encode(built))
    return built


def _resolve(spec: KernelSpec, steps: tuple[Step, ...], origin: Origin, progress: Progress) -> tuple[Kernel, Built]:
    tools = toolchain.probe(spec.arch)
    request = config_fragment.request(spec.config, origin.version, spec.arch)
    key = _key(origin, steps, _config_digest(request), tools)
    known = _recall(key)
    if known is None:
        tree = Worktree(root() / origin.key)
        with tree.locked(progress):
            known = _recall(key)
            if known is None:
                try:
                    _build(spec, origin, steps, tools, request, key, tree, progress)
                except OSError as error:
                    raise cache.disk_error(error, tree.home) from None
                known = _recall(key)
    if known is None:
        raise HostError(
            f"{spec.text}: the image disappeared after it was built; is another program cleaning {cache.root()}?"
        )
    built, stored = known
    for note in built.notes:
        progress.step(note)
    return _kernel(spec, built, stored), built


def resolve_source(spec: KernelSpec, progress: Progress | None = None) -> Kernel:
    """Build the kernel that ``spec`` (kind ``src`` or ``src-debian``) names, or find it built.

    Raises:
        UserError: no such tree, ref or patch; a patch that does not fit, is hostile, or is merged already.
        HostError: missing programs, a full disk, or a build that fails (its log named, the compiler's line shown).
    """
    said = progress or Quiet()
    return _resolve(spec, load_patches(spec.patches), origin_of(spec, said), said)[0]


def resolve_each(spec: KernelSpec, progress: Progress | None = None) -> list[Kernel]:
    """The kernels along a series: without the patches, then with one more each; labels count from 0.

    Raises:
        UserError, HostError: as ``resolve_source``.
    """
    said = progress or Quiet()
    steps, origin = load_patches(spec.patches), origin_of(spec, said)
    kernels = []
    for count in range(len(steps) + 1):
        kernel, _ = _resolve(spec, steps[:count], origin, said)
        subject = steps[count - 1].mail.subject if count else "before the series"
        label = f"{count}/{len(steps)} {subject}".strip()
        kernels.append(msgspec.structs.replace(kernel, label=label, spec=f"{spec.text}#{count}"))
    return kernels


def built_facts(spec: KernelSpec, progress: Progress | None = None) -> Built:
    """What is remembered of ``spec``'s build (built now if it was not): the clean diff, notes, log, times."""
    said = progress or Quiet()
    return _resolve(spec, load_patches(spec.patches), origin_of(spec, said), said)[1]


def config_differences(baseline: Kernel, patched: Kernel) -> tuple[str, ...]:
    """Options in which two stored kernels differ, as ``CONFIG_FOO: y -> n``; () where a config is unknown."""
    texts = []
    for kernel in (baseline, patched):
        stored = cache.get(kernel.image_sha256)
        if stored is None or stored.config_text is None:
            return ()
        texts.append(stored.config_text.read_text("utf-8", "replace"))
    return config_fragment.differences(texts[0], texts[1])

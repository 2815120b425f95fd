# SPDX-License-Identifier: GPL-2.0-or-later
"""The same code linked at other places: paddings between the parts of a kernel, so that alignment can average out.

Where code and data lie can move a time by some percent, whatever a patch does (Mytkowicz et al., "Producing wrong data
without doing anything obviously wrong!", ASPLOS 2009). A layout adds one object of padding to the objects of each of
some directories, which shifts text, data and bss of all that is linked after it; nothing else is compiled again. Within
an object everything keeps its place.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from kdelta.kernel.patch import File
from kdelta.model import Kernel, Layout

# In the order in which a kernel's Makefile links them; the config leaves some out.
DIRECTORIES = ("init", "kernel", "mm", "fs", "ipc", "security", "crypto", "block", "io_uring", "lib", "drivers", "net")
_STEP, _MOST = 16, 4096  # bytes: functions begin at multiples of 16, and a page is the largest thing that matters
_NAME = "kdelta_layout"


class Padding(Struct, frozen=True):
    """Bytes before what is linked after ``directory``."""

    directory: str
    text: int
    data: int
    bss: int


def paddings(number: int) -> tuple[Padding, ...]:
    """Those of layout ``number`` (from 1), always the same."""
    rng = random.Random(f"kdelta layout {number}")

    def some() -> int:
        return _STEP * rng.randrange(_MOST // _STEP)

    return tuple(Padding(directory, some(), some(), some()) for directory in DIRECTORIES)


def _source(one: Padding) -> str:
    """The assembler file: nothing in it is executed, which 0xcc (INT3) makes plain to objtool."""
    return f"""/* SPDX-License-Identifier: GPL-2.0-or-later */
\t.section .text, "ax"
\t.fill {one.text}, 1, 0xcc
\t.section .data, "aw"
\t.skip {one.data}
\t.section .bss, "aw", %nobits
\t.skip {one.bss}
\t.section .note.GNU-stack, "", %progbits
"""


def padded(files: Mapping[str, File], read: Callable[[str], str | None], number: int) -> dict[str, File]:
    """What lies over a source: ``files`` and the paddings of layout ``number``, for 0 none.

    Args:
        read: the text of a file of the source below ``files``, None where it has none.
    """
    found = dict(files)
    for one in paddings(number) if number else ():
        path = f"{one.directory}/Makefile"
        text = found[path].text if path in found else read(path)
        if text is not None:
            found[path] = File(f"{text.rstrip()}\nobj-y += {_NAME}.o\n")
            found[f"{one.directory}/{_NAME}.S"] = File(_source(one))
    return found


def numbers(count: int, seed: int) -> tuple[int, ...]:
    """Which layouts ``count`` are, with the kernel's own, which has no number: the others, by ``seed``."""
    return tuple(1000 * seed + index for index in range(1, count))


def layout_of(kernel: Kernel) -> Layout:
    """Where the image of ``kernel`` is."""
    return Layout(
        image_path=kernel.image_path,
        image_sha256=kernel.image_sha256,
        vmlinux_path=kernel.vmlinux_path,
        vmlinux_sha256=kernel.vmlinux_sha256,
        build_id=kernel.build_id,
    )


def laid_out(kernel: Kernel, block: int) -> Kernel:
    """``kernel`` as block ``block`` boots it: its own image first, then its layouts, then again."""
    place = block % (len(kernel.layouts) + 1)
    if not place:
        return kernel
    one = kernel.layouts[place - 1]
    return replace(
        kernel,
        image_path=one.image_path,
        image_sha256=one.image_sha256,
        vmlinux_path=one.vmlinux_path,
        vmlinux_sha256=one.vmlinux_sha256,
        build_id=one.build_id,
        layouts=(),
    )

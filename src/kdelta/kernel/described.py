# SPDX-License-Identifier: GPL-2.0-or-later
"""The types of a kernel that was built here: where its fields lie, as the compiler says.

A guest config has no CONFIG_DEBUG_INFO_BTF: that needs pahole, and debugging information of the whole kernel. One
source that includes the headers of what moves between CPUs takes a second to compile, and gcc writes BTF by itself
(gcc 12, -gbtf). Structs that a source keeps to itself (struct epitem of fs/eventpoll.c) stay without names.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

from kdelta.kernel import btf

SOURCE, MADE = "kdelta-types.c", "kdelta-types.o"
LIKE = ("fs/.namei.o.cmd", "kernel/.fork.o.cmd")  # objects of any kernel, compiled without flags of their own
# Of include/, what has objects, their locks and counts, from 5.4 on. What is not there is left out.
_LINUX = """
    sched sched/signal sched/task sched/user sched/mm init_task cred pid pid_namespace user_namespace utsname
    ipc_namespace nsproxy time_namespace proc_ns mm mm_types mmzone mm_inline rmap maple_tree vmalloc vmstat swap
    memcontrol page_counter percpu_counter hugetlb fs fs_struct fdtable dcache mount filelock pagemap backing-dev
    writeback buffer_head shmem_fs kernfs seq_file pipe_fs_i eventfd eventpoll poll fsnotify_backend xarray futex
    hrtimer timer timerqueue timekeeper_internal posix-timers rcupdate srcu workqueue kthread interrupt smp percpu
    cgroup cpuset psi tty perf_event audit seccomp blkdev bio io_uring_types random key msg sem shm net skbuff
    netdevice tcp udp
"""
_NET = "sock af_unix net_namespace dst inet_sock"
_PUBLIC = (*(f"linux/{name}.h" for name in _LINUX.split()), *(f"net/{name}.h" for name in _NET.split()))
# Outside of it, as sources of their directories include them.
_PRIVATE = ("fs/mount.h", "fs/proc/internal.h", "mm/slab.h", "kernel/sched/sched.h", "kernel/futex/futex.h")


def source(names: Iterable[str]) -> str:
    """A C source that includes those of ``names`` that there are."""
    return "".join(f"#if __has_include(<{name}>)\n#include <{name}>\n#endif\n" for name in names)


def attempts() -> tuple[str, ...]:
    """Sources to try, the one that says most first: a header of a directory may want others before it."""
    return (source((*_PUBLIC, *_PRIVATE)), source(_PUBLIC))


def argv(recorded: str, src: Path, obj: Path) -> list[str]:
    """How to compile ``SOURCE`` in the build directory ``obj``; [] where ``recorded`` does not say it.

    Args:
        recorded: what make wrote of another object there (Documentation/kbuild/makefiles.rst, if_changed).
    """
    line = next((line for line in recorded.splitlines() if line.startswith(("savedcmd_", "cmd_"))), "")
    try:
        words = shlex.split(line.partition(" := ")[2].replace("$(pound)", "#").replace("$$", "$"))
    except ValueError:
        return []
    words = words[: words.index(";")] if ";" in words else words  # objtool follows up to 6.5
    if "-c" not in words or "-o" not in words:
        return []
    kept = [word for word in words[: words.index("-c")] if not word.startswith(("-Wp,-M", "-g", "-W"))]
    made = [
        "-Wp,-MMD,kdelta-types.d",
        "-w",
        "-gbtf",
        "-fno-eliminate-unused-debug-types",
        "-fno-eliminate-unused-debug-symbols",
    ]
    # Not -idirafter: what is found there is a system header, which -MMD leaves out, so ccache would not notice a patch.
    return ["env", "-C", str(obj), *kept, *made, f"-I{src}", "-c", "-o", MADE, SOURCE]


def read(made: bytes) -> bytes:
    """The section ``.BTF`` of what was compiled, b"" where it has none that can be read."""
    try:
        found = btf.section_of(made)
        return found if found is not None and btf.parse(found).struct("task_struct") else b""
    except btf.BtfError:
        return b""

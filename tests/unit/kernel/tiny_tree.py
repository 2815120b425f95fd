# SPDX-License-Identifier: GPL-2.0-or-later
"""A tiny kernel tree whose Makefile really compiles a little; any option in its Kconfig is ``default y``."""

from __future__ import annotations

import difflib
import subprocess
from pathlib import Path

MAKEFILE = """\
VERSION = 6
PATCHLEVEL = 12
SUBLEVEL = 1
KCONFIG_CONFIG ?= $(O)/.config
tinyconfig:
	@echo 'CONFIG_TINY=y' > $(KCONFIG_CONFIG)
	@sed -n 's/^config \\(.*\\)/# CONFIG_\\1 is not set/p' Kconfig >> $(KCONFIG_CONFIG)
olddefconfig:
	@for name in $$(sed -n 's/^config //p' Kconfig); do \\
		grep -q "CONFIG_$$name\\b" $(KCONFIG_CONFIG) || echo "CONFIG_$$name=y" >> $(KCONFIG_CONFIG); done
	@grep -v -e NOSUCH -e '^#' $(KCONFIG_CONFIG) > $(KCONFIG_CONFIG).x; mv $(KCONFIG_CONFIG).x $(KCONFIG_CONFIG)
	@echo 'configured' >> $(O)/configured
$(O)/fs/%.o: fs/%.c include/a.h
	@mkdir -p $(O)/fs
	@echo '  CC      fs/$*.o'
	@$(CC) -O1 -ffreestanding -fno-pie -Iinclude -c -o $@ $<
	@echo 'source_fs/$*.o := ../src/$<' > $(O)/fs/.$*.o.cmd
vmlinux: $(O)/fs/pipe.o $(O)/fs/other.o $(O)/fs/start.o
	@echo '  LD      vmlinux'
	@echo '.section .config,"a"; .incbin "$(KCONFIG_CONFIG)"' | $(CC) -x assembler -c -o $(O)/config.o -
	@$(CROSS_COMPILE)ld -Ttext=0xffffffff81000000 --build-id=sha1 -o $(O)/vmlinux $^ $(O)/config.o
	@mkdir -p $(O)/include/config; echo 6.12.1 > $(O)/include/config/kernel.release
"""
START = """\
#include <a.h>
asm(".pushsection .note.Xen,\\"a\\",@note; .long 4,4,18; .asciz \\"Xen\\"; .long 0x1000000; .popsection");
const char linux_banner[] = "Linux version 6.12.1 (kdelta@kdelta)";
int pipe_write(int); int other(int);
void _start(void) { pipe_write(1); other(LIMIT); }
"""
PIPE = "#include <a.h>\n\nint pipe_write(int count)\n{\n\tif (!count)\n\t\treturn 0;\n\n\treturn count + LIMIT;\n}\n"
TREE = {
    "Makefile": MAKEFILE,
    "Kconfig": "# none\n",
    "include/a.h": "#define LIMIT 7\n",
    "fs/pipe.c": PIPE,
    "fs/other.c": "int other(int a)\n{\n\treturn a * 3;\n}\n",
    "fs/start.c": START,
    "fs/unused.c": "int unused;\n",
    ".gitignore": "*.o\n.config\n",
}


def git(tree: Path, *words: str) -> str:
    argv = ["git", "-C", str(tree), "-c", "user.name=a", "-c", "user.email=a@b", *words]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def planted(root: Path) -> Path:
    """The tree, written out at ``root``."""
    for name, text in TREE.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def patch(tmp_path: Path, name: str, new: str, old: str = PIPE, path: str = "fs/pipe.c") -> Path:
    lines = difflib.unified_diff(old.splitlines(True), new.splitlines(True), f"a/{path}", f"b/{path}")
    (tmp_path / name).write_text("".join(lines))
    return tmp_path / name

# SPDX-License-Identifier: GPL-2.0-or-later
"""Of a function that a kernel built here has not its source tells whether it is inlined, and where, or not built."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdelta.errors import UserError
from kdelta.kernel import absent, source
from kdelta.kernel.sources import parse_kernel

FILES = {
    "kernel/ptrace.c": """static int check(int a)

{
	return a + 1;
}
static int middle(int a)
{
	return check(a);
}
SYSCALL_DEFINE1(trace, int, a)
{
	return middle(a);
}
int other(int a)
{
	/* check(a) is for others */
	return a;
}
""",
    "include/linux/x.h": "#define max_of(a, b) ((a) > (b) ? (a) : (b))\nint max_user(void);\n",
    "security/keys/keyctl.c": "long keyctl_read(int a)\n{\n	return a;\n}\n",
    "security/keys/Makefile": "obj-y := \\\n	gc.o \\\n	keyctl.o\n",
    "security/keys/Kconfig": 'config KEYS\n\tbool "Enable access key retention support"\n',
    "security/Makefile": "obj-$(CONFIG_KEYS)	+= keys/\nobj-$(CONFIG_SECURITY) += security.o\n",
    "lib/odd.c": "int odd(void)\n{\n	return 1;\n}\n",
    "arch/arm64/kernel/y.c": "int of_arm(void)\n{\n	return 1;\n}\n",
    "tools/z.c": "int of_tools(void)\n{\n	return 1;\n}\n",
}
KNOWN = frozenset({"__x64_sys_trace", "other", "odder"})


@pytest.fixture(autouse=True)
def _built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in FILES.items():
        path = tmp_path / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "obj" / "kernel").mkdir(parents=True)
    (tmp_path / "obj" / "kernel" / "ptrace.o").write_bytes(b"")
    (tmp_path / "obj" / ".config").write_text("# CONFIG_KEYS is not set\nCONFIG_SECURITY=y\n")
    monkeypatch.setattr(source, "objects", lambda _: tmp_path / "obj")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("middle", "it is inlined; ask for what calls it: __x64_sys_trace"),
        ("check", "it is inlined; ask for what calls it: __x64_sys_trace"),
        ("odd", "lib/odd.c has it, which this config does not build"),
        (
            "keyctl_read",
            "security/keys/keyctl.c has it, which this config does not build "
            '(CONFIG_KEYS is off: src:debian:7.3,config="KEYS=y")',
        ),
        ("of_arm", ""),
        ("of_tools", ""),
        ("max_of", ""),
        ("nothing", ""),
    ],
)
def test_why_a_function_is_not_there(name: str, why: str) -> None:
    assert absent.why(parse_kernel("src:debian:7.3"), name, KNOWN) == why


def test_nothing_is_said_of_kernels_that_were_not_built_here(monkeypatch: pytest.MonkeyPatch) -> None:
    assert absent.why(parse_kernel("debian:7.3"), "check", KNOWN) == ""
    told = absent.why(parse_kernel("src:debian:7.3,config=my"), "keyctl_read", KNOWN)
    assert told.endswith("does not build (CONFIG_KEYS is off)"), "its own config is the user's to change"
    monkeypatch.setattr(source, "objects", lambda _: (_ for _ in ()).throw(UserError("no such tree")))
    assert absent.why(parse_kernel("src:debian:7.3"), "check", KNOWN) == ""

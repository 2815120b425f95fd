#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# make check: every gate, each with its own message, all at once; the last line says how it went.
set -u
cd "$(dirname "$0")/.."
bin=.venv/bin
said=$(mktemp -d)
trap 'rm -rf "$said"' EXIT
names=() running=() failed=()

gate() { # NAME COMMAND...
	names+=("$1")
	"${@:2}" >"$said/${#running[@]}" 2>&1 &
	running+=($!)
}

c_files() { git ls-files -co --exclude-standard -- 'guest/*.c' 'guest/*.h' 'plugin/*.c' 'plugin/*.h' 'tools/*.c' 'tools/*.h'; }

gate "ruff: lint" $bin/ruff check src tests tools
gate "ruff: format" $bin/ruff format --check src tests tools
gate "mypy --strict" $bin/mypy
gate "import rules" $bin/python tools/check_imports.py
gate "test rules" $bin/python tools/check_tests.py
gate "output rules" $bin/python tools/check_output.py
gate "file rules" $bin/python tools/check_files.py
gate "C style (clang-format)" clang-format --dry-run --Werror $(c_files)
gate "C: -Wall -Wextra -Werror" tools/compile-c.sh
gate "docs" $bin/python tools/check_docs.py
for index in "${!names[@]}"; do
	if wait "${running[index]}"; then
		printf 'ok      %s\n' "${names[index]}"
	else
		printf 'FAILED  %s\n' "${names[index]}"
		cat "$said/$index"
		failed+=("${names[index]}")
	fi
done
if [ ${#failed[@]} -gt 0 ]; then
	printf 'check: %d gates failed: %s\n' "${#failed[@]}" "${failed[*]}"
	exit 1
fi
echo "check: all gates passed"

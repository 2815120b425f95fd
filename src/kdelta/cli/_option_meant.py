# SPDX-License-Identifier: GPL-2.0-or-later
"""What options mean that a command has not: those of other programs, and what stands elsewhere here."""

from __future__ import annotations

from typing import NamedTuple

import click

_COMPARED = "compare sweep scale run leaks trace"  # they take kernels as words
_READ = "compare sweep run resume report"  # they print reports


class _Row(NamedTuple):
    """Of ``words``, a command says ``text`` that is, or has an option that is, one of ``where``; "" is all commands.

    Words of ``text`` that begin with -- are options: those that the command has are offered.
    """

    words: str
    where: str
    text: str


# The first row that holds is told.
_ROWS = (
    _Row("--cpus --cpu --vcpus --ncpus --cores --threads", "--smp", "--smp"),
    _Row("--runs --iterations --repeat --count --seeds --blocks --boots --min-runs --max-runs -n -r", "", "--seeds --blocks --boots --most"),
    _Row("--top --max --max-rows --lines --limit", "findings", "--most"),
    _Row("--test --tests --workload --benchmark --bench --cases -t", "--case", "--case"),
    _Row("--mem --ram -m", "--memory", "--memory"),
    _Row("--timeout", "", "--limit --time-budget"),
    _Row("--out --outfile --file --save", "--output", "--output"),
    _Row("--output-format --fmt --as", "--format", "--format"),
    _Row("--silent -s", "--quiet", "--quiet"),
    _Row("--time --wall --real", "--timed", "--timed"),
    _Row("--instructions --icount", "--exact", "--exact"),
    _Row("--threshold --fail --gate", "--fail-on", "--fail-on"),
    _Row("--explain --functions", "--causes", "--causes"),
    _Row("--bind --listen --address --addr --ip", "--host", "--host"),
    _Row("--interval --poll --sleep", "--every", "--every"),
    # Kernels and patches, which are words or parts of words.
    _Row("--base --base-commit --baseline --onto --repo --repository --git --dir --source", "review watch", "--tree"),
    _Row("--kernel --kernels --linux --src --against --to", "review watch", "--tree"),
    _Row("--base --old --before --from", "check", "--baseline"),
    _Row("--new --after --to --kernel --kernels", "check why", "--patched"),
    _Row("--image --vmlinux --bzimage --kernels", "run", "--kernel"),
    _Row("--good --old --bad --new --from --to", "bisect", "both ends stand first, as in kdelta bisect src:.@v6.8 src:.@v6.9"),
    _Row("--patch --patches --mbox --mail --series", _COMPARED,
         "it belongs to a kernel, as in src:./linux+fix.patch; kdelta review fix.patch --tree ./linux measures one by itself"),
    _Row("--from --to --since --until --versions --range --kernel --kernels", "sweep",
         "the range stands first, as in kdelta sweep 'debian:6.1..7.3'"),
    _Row("--base --baseline --old --new --patched --before --after --from --to --kernel --kernels --image --vmlinux --bzimage",
         "compare code", "kernels stand first, the baseline before the others, as in kdelta {command} debian:6.12 debian:7.0"),
    _Row("--kernel --kernels --image --vmlinux --bzimage", "scale leaks trace reach",
         "the kernel stands first, as in kdelta {command} debian:7.0"),
    _Row("--label --name --title", _COMPARED,
         "a name stands before its kernel, as in old=debian:6.12; kdelta history tag gives one to an experiment"),
    _Row("--cmdline --append --kopt --kopts", "--kvm", "it belongs to a kernel, as in 'debian:6.12,cmdline=\"quiet\"'"),
    _Row("--config --kconfig", "--kvm", "it belongs to a kernel, as in src:./linux,config=FILE"),
    _Row("--arch", "--kvm", "it belongs to a kernel, as in debian:6.12,arch=arm64"),
    _Row("--initrd --initramfs --rootfs --disk --drive", "--kvm",
         "guests have a small system of their own; what a program needs of this one is packed, or named by --file"),
    # Cases and programs.
    _Row("--program --prog --cmd --command --binary --exec --script --args -e", "--cwd",
         "a program and its arguments stand last, behind --, as in -- ls -l"),
    _Row("--input --infile", "--stdin", "--stdin"),
    _Row("--chdir --cd --pwd --workdir --work-dir --working-directory -C", "--cwd", "--cwd"),
    _Row("--environment --environ --setenv --set-env -E", "--env", "--env"),
    _Row("--rw --rwdir --overlay --read-write", "--writable", "--writable"),
    _Row("--include --add --add-file --copy --pack --rodir --mount --volume --bind-mount", "--cwd", "--file --tree"),
    _Row("--exit-code --exit-status --status --ignore-failure --ignore-errors -i", "--expect-status", "--expect-status"),
    _Row("--prepare --reset --cleanup --conclude --teardown --before-each --after-each -p", "--between",
         "--setup COMMAND runs once before all runs, --between COMMAND after each, both untimed"),
    _Row("--shell -S", "--cwd", "a program is started by itself; a shell's line is run by -- sh -c 'ls | wc'"),
    _Row("--tty --pty --term --interactive", "--cwd",
         "there is no terminal; script makes one, as in -- script -eqc 'PROGRAM ARGS' /dev/null"),
    _Row("--show-output --stdout --stderr --printed", "--cwd",
         "what a program prints first is kept: kdelta report last --printed 0.0"),
    _Row("--pid --attach", "--cwd", "a program is measured from its start, behind --, as in -- ls -l"),
    _Row("--exclude --skip --without --ignore --deselect", "--case",
         "name the cases that run instead: --case takes patterns, as in --case 'syscalls/file_*'"),
    _Row("--param --params --parameter --set --knob", "--case",
         "it belongs to a case, as in --case pipe:writers=4; kdelta cases show pipe has all"),
    _Row("--quick --fast", "--case", "name a case, as in --case pidfd_open: two kernels take seconds"),
    _Row("--case", "review watch", "a review counts the cases that execute what changed; kdelta compare takes --case"),
    _Row("--suite --suites", "list", "a suite is a word, as in kdelta cases syscalls"),
    _Row("--list", "--case", "kdelta cases list has the cases, kdelta kernels list the kernels"),
    # What is measured, and how it is judged.
    _Row("--stacks --calls --callgraph --call-graph --flame --flamegraph --flame-graph --profile -g", "--why",
         "--why stacks follows calls; kdelta why last --stacks does so afterwards, and --format html draws them"),
    _Row("--flame --flamegraph --flame-graph --html", "why", "kdelta report last --format html draws it; --export hands it to other tools"),
    _Row("--cache --caches --lines --false-sharing --c2c", "--smp", "--smp 2 (or more) counts the lines that cross between CPUs"),
    _Row("--metric --metrics --event --events --counter --counters", "--all-metrics",
         "all are measured: --all-metrics shows them; --pmu adds the processor's own to times"),
    _Row("--alpha --confidence --ci --level --significance --pvalue --p-value", "--all-metrics",
         "every verdict has one error rate, so that results can be compared: docs/methodology.md has it"),
    _Row("--diff --delta", "why", "the case's differences are what it shows, as in kdelta why last path_lookup"),
    _Row("--top --limit --max --lines --sort", "why", "the largest changes come first; --all shows every function"),
    # How a command runs.
    _Row("--unsandboxed", "", "it stands before the command, as in kdelta --unsandboxed {command} ..."),
    _Row("-j --jobs --parallel", "--exact", "counts take all CPUs, timed boots run one by one"),
    _Row("--seconds --duration --runtime --run-time", "--time-budget",
         "a case is so many operations, not so long; what one run of it may take at most is --limit 60s; "
         "of all there is to do, --time-budget 5m"),
    _Row("--seconds --duration --runtime --run-time", "--limit",
         "a case is so many operations, not so long; what one run of it may take at most is --limit 60s"),
    _Row("--warmup --warmups --warm-up -w", "--case", "every case warms up by itself before it is measured"),
    _Row("--resume --continue", "compare run sweep check", "kdelta resume last goes on with what was ended"),
    _Row("--rerun --again --no-cache --force -f", "--fresh", "--fresh"),
    _Row("--dry-run --plan --estimate", _COMPARED,
         "input is checked before anything is fetched or built, and the time left is shown: Ctrl-C loses nothing"),
    _Row("--yes -y --assume-yes --non-interactive --batch", "", "nothing is asked: it is not needed"),
    _Row("--store --db --database --data-dir", "", "KDELTA_STORE in the environment names the store, as in sqlite:////tmp/x.sqlite"),
    _Row("--no-color --no-colour --nocolor --color --colour", "",
         "colours are for terminals alone, and NO_COLOR=1 in the environment turns them off"),
    _Row("--no-progress", "--quiet", "--quiet"),
    _Row("--debug", "--case", "what a boot printed is kept: kdelta report last --console BLOCK.SLOT, as in 0.1"),
    _Row("-v --verbose", "--quiet", "progress is shown without one, and kdelta report has the rest"),
    _Row("-v --verbose", "", "what a command can show besides stands in its --help"),
    # What is shown.
    _Row("--html", "findings", "kdelta publish DIR writes the page"),
    _Row("--output -o --out", "publish", "the directory is a word, as in kdelta publish site/"),
    _Row("--source --asm --annotate", "code", "the machine code of a function is shown by its name, as the last word"),
    _Row("--open --browser", "serve", "it prints its address: open that"),
    _Row("--all", "history kernels", "all are shown"),
)  # fmt: skip


def meant(name: str, context: click.Context) -> str:
    """What an option ``name`` that a command has not may have meant; "" where nobody knows."""
    has = {opt for param in context.command.params if isinstance(param, click.Option) for opt in param.opts}
    if "--format" in has:
        from kdelta.report import registry

        if (word := name.lstrip("-")) in registry.formats():
            return f"write --format {word}"
        if (word := name.removeprefix("--export-")) in registry.formats():
            return f"write --format {word} -o FILE"
    for row in _ROWS:
        if name in row.words.split() and (text := _text(row, context.info_name or "", has)):
            return text
    return _alike(name, has)


def _text(row: _Row, command: str, has: set[str]) -> str:
    """What ``row`` says where it holds; "" where it does not."""
    if row.where and not (has | {command}) & set(row.where.split()):
        return ""
    words = row.text.split()
    if not all(word.startswith("--") for word in words):
        return row.text.replace("{command}", command)
    there = [word for word in words if word in has]
    return f"did you mean {' or '.join(there)}?" if there else ""


def _alike(name: str, has: set[str]) -> str:
    """An option mistyped by a letter or so, or not to its end: click offers what shares some letters."""
    import difflib

    begun = sorted(option for option in has if len(name) > 4 and option.startswith(name))
    close = begun or difflib.get_close_matches(name, sorted(has), n=1, cutoff=0.8)
    return f"did you mean {' or '.join(close)}?" if close else ""

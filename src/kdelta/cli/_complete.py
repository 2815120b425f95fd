# SPDX-License-Identifier: GPL-2.0-or-later
"""What a shell completes: releases, cases, experiments and more, by the name of the parameter; nothing is fetched or built.

Click completes commands, options and choices by itself. A shell that asks runs kdelta with the variable ``ASKED`` set.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterable

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
)

from kdelta.cli import _stores
from kdelta.errors import KdeltaError

ASKED = "_KDELTA_COMPLETE"
_NEWEST = 50  # experiments offered
_PLAIN = re.compile(r"[\w.@%+:/,=~-]+")  # other words would have to be quoted, and stores may come from strangers
_ABOUT_LENGTH = 60
Offer = tuple[str, str]  # a word, and what it is

# Bash cuts words at colons and equals signs before a program sees them, and a kernel is debian:6.12, a case
# pipe:writers=2: so the line itself is taken apart, and of each word only what follows the last cut is answered.
_BASH = """\
%(complete_func)s() {
    local type value cuts
    cuts=${COMP_WORDBREAKS//[!:=]/}
    while IFS=, read -r type value; do
        case $type in
        dir) compopt -o dirnames ;;
        file) compopt -o default ;;
        plain)
            [[ $value == *[:/=] ]] && compopt -o nospace
            COMPREPLY+=("$value")
            ;;
        esac
    done < <(COMP_TYPED="${COMP_LINE:0:COMP_POINT}" COMP_CUTS="$cuts" %(complete_var)s=bash_complete "$1" 2>/dev/null)
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""

# As click's, but no blank follows what goes on: debian:, pipe:writers= and directories.
_ZSH = """\
#compdef %(prog_name)s

%(complete_func)s() {
    local type key about
    local -a response plain open described
    (( ! $+commands[%(prog_name)s] )) && return 1
    response=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) %(complete_var)s=zsh_complete %(prog_name)s)}")
    for type key about in ${response}; do
        case $type in
        dir) _path_files -/ ;;
        file) compset -P '-*='; _path_files -f ;;
        plain)
            if [[ $about != _ ]]; then
                described+=("$key:$about")
            elif [[ $key == *[:/=] ]]; then
                open+=("$key")
            else
                plain+=("$key")
            fi
            ;;
        esac
    done
    (( $#described )) && _describe -V unsorted described -U
    (( $#open )) && compadd -U -S '' -V open -a open
    (( $#plain )) && compadd -U -V unsorted -a plain
    return 0
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    compdef %(complete_func)s %(prog_name)s
fi
"""

# As click's, but a comma in what is said of a word does not end it.
_FISH = """\
function %(complete_func)s
    set -l response (env %(complete_var)s=fish_complete COMP_WORDS=(commandline -cp) COMP_CWORD=(commandline -t) %(prog_name)s)
    for answer in $response
        set -l parts (string split -m1 "," $answer)
        switch $parts[1]
            case dir
                __fish_complete_directories $parts[2]
            case file
                set -l option (string match -r -- '^-[^=]*=' $parts[2])
                __fish_complete_path (string replace -- "$option" '' $parts[2]) | string replace -r -- '^' "$option"
            case plain
                echo $parts[2]
        end
    end
end

complete --no-files --command %(prog_name)s --arguments "(%(complete_func)s)"
"""


class Bash(BashComplete):
    """Completion for bash, whatever its COMP_WORDBREAKS."""

    source_template = _BASH

    def source(self) -> str:
        return self.source_template % self.source_vars()

    def get_completion_args(self) -> tuple[list[str], str]:
        import shlex

        typed = os.environ.get("COMP_TYPED", "")
        try:
            words = shlex.split(typed)
        except ValueError:  # a quotation that is still open
            words = typed.split()
        incomplete = words.pop() if words and not typed[-1:].isspace() else ""
        value = incomplete.partition("=")[2] if incomplete.startswith("-") else incomplete
        self._cut = max((value.rfind(cut) + 1 for cut in os.environ.get("COMP_CUTS", "")), default=0)
        return words[1:], incomplete

    def format_completion(self, item: CompletionItem[str]) -> str:
        return f"{item.type},{item.value[self._cut :] if item.type == 'plain' else item.value}"


class _WholeWords(ShellComplete):
    """For shells that put what is answered in place of the whole word: ``--format=h`` is one, click answers ``html``."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        option, equals, _ = incomplete.partition("=")
        found = super().get_completions(args, incomplete)
        if not (equals and option.startswith("-")):
            return found
        return [CompletionItem(f"{option}={one.value}", one.type, one.help) for one in found]


class Zsh(_WholeWords, ZshComplete):
    """Completion for zsh."""

    source_template = _ZSH


class Fish(_WholeWords, FishComplete):
    """Completion for fish."""

    source_template = _FISH


def _experiments() -> Iterable[Offer]:

    yield "last", "the newest experiment"
    with _stores.reading() as store:
        for row in store.experiments(limit=_NEWEST):
            yield row.id, f"{row.kind}: {' '.join(row.kernels)}"


def _tags() -> Iterable[Offer]:

    with _stores.reading() as store:
        return [(tag, "") for tag in sorted({tag for row in store.experiments() for tag in row.tags})]


def _steps() -> Iterable[Offer]:

    with _stores.reading() as store:
        return [(step.key[:10], f"{step.case}, {step.state}") for step in reversed(store.steps())]


def _cases(incomplete: str) -> Iterable[Offer]:
    """Cases; behind ``pipe:`` its knobs, those left, and behind ``pipe:mode=`` what that one takes."""
    from kdelta.spec import workloads

    known = workloads.catalogue()
    name, colon, typed = incomplete.partition(":")
    if not colon:
        return [(name, one.title) for name, one in known.items()]
    params = known[name].params if name in known else {}
    *before, last = typed.split(",")
    there = "".join([f"{name}:", *(f"{one}," for one in before)])
    knob, equals, _ = last.partition("=")
    if equals:
        return [(f"{there}{knob}={value}", "") for value in (params[knob].words if knob in params else ())]
    given = {one.partition("=")[0] for one in before}
    return [(f"{there}{knob}=", "") for knob in params if knob not in given]


def _suites() -> Iterable[Offer]:
    from kdelta.spec import suites

    return [(name, one.title) for name, one in suites.suites().items()]


def _recipes() -> Iterable[Offer]:
    from kdelta.spec import recipes

    return [(name, "") for name in recipes.shipped()]


def _collectors() -> Iterable[Offer]:
    from kdelta.spec import collectors

    return [(name, one.title) for name, one in collectors.catalogue().items()]


def _then() -> Iterable[Offer]:
    from kdelta.cli import _calls
    from kdelta.spec.collectors import HOLD

    return [*_collectors(), (HOLD, "instructions in each mutex"), (_calls.STACKS, "the calls of what differs")]


def _formats() -> Iterable[Offer]:
    from kdelta.report import registry

    return [(name, one.help) for name, one in registry.formats().items()]


def _releases() -> list[str]:
    """Series of Debian's kernels and their flavours, as the archive's index on this machine has them."""
    from kdelta.kernel import debian

    found = debian.known("x86_64")
    return list(dict.fromkeys(k.series + (f"/{k.flavour}" if k.flavour else "") for k in found))


def _kernels(incomplete: str) -> Iterable[Offer]:
    """Names of kernels; versions alone once a digit is typed, files behind deb:, rpm: and src:."""
    from kdelta.kernel.sources import all_sources

    if incomplete[:1].isdigit():
        return [(release, "") for release in _releases()]
    prefix, colon, body = incomplete.partition(":")
    if prefix == "src" and body.startswith("debian:"):
        return [(f"src:debian:{release}", "") for release in _releases() if "/" not in release]
    if colon and prefix in ("deb", "rpm", "src"):
        here = sorted(glob.glob(glob.escape(body) + "*"))
        packages = [path for path in here if path.endswith(f".{prefix}") and not os.path.isdir(path)]
        return [(f"{prefix}:{path}", "") for path in (*(path + "/" for path in here if os.path.isdir(path)), *packages)]
    words = [(one.prefix + ("" if one.word else ":"), "") for one in all_sources() if one.prefix]
    return [*words, *((f"debian:{release}", "") for release in _releases())] if colon or not prefix else words


def _fixed(offers: Callable[[], Iterable[Offer]]) -> Callable[[str], Iterable[Offer]]:
    return lambda _: offers()


def _listed(offers: Callable[[], Iterable[Offer]]) -> Callable[[str], Iterable[Offer]]:
    """Words of which several may stand with commas between: behind a comma those that were not said yet."""

    def rest(incomplete: str) -> Iterable[Offer]:
        before, comma, _ = incomplete.rpartition(",")
        said = before.split(",")
        return [(before + comma + word, about) for word, about in offers() if word not in said]

    return rest


_BY_NAME: dict[str, Callable[[str], Iterable[Offer]]] = {
    **dict.fromkeys(("kernels", "kernel", "baseline", "good", "bad"), _kernels),
    **dict.fromkeys(("experiment", "like", "against"), _fixed(_experiments)),
    **dict.fromkeys(("cases", "case"), _cases),
    "suites": _fixed(_suites),
    "fmt": _fixed(_formats),
    "recipe": _fixed(_recipes),
    "step": _fixed(_steps),
    "tag": _fixed(_tags),
    "what": _listed(_collectors),
    "why": _listed(_then),
}
_BY_COMMAND: dict[tuple[str, str], Callable[[str], Iterable[Offer]]] = {
    ("run", "named"): _kernels,
    ("code", "patched"): _kernels,
    ("check", "patched"): _kernels,
    ("resume", "kernels"): _fixed(lambda: ()),
    ("bisect", "resume"): _fixed(_experiments),
    ("calibrate", "resume"): _fixed(_experiments),
    ("cases show", "name"): _cases,
}
_FILES = frozenset({("review", "series"), ("watch", "source")})  # texts, as they may name other things too


def _cases_of(ctx: click.Context) -> Iterable[Offer]:
    """Those of the experiment that stands before."""
    from kdelta.store.store import Store

    with Store() as store:
        return [(case.name, "") for case in store.experiment(ctx.params.get("experiment") or "last").cases]


def _explained(ctx: click.Context) -> Iterable[Offer]:
    """Experiments, and the cases of the last one: ``kdelta why pipe`` is of that."""
    return [*_experiments(), *_cases_of(ctx)]


class _Offered(click.types.StringParamType):
    """A text of which some values are known."""

    def __init__(
        self, offers: Callable[[str], Iterable[Offer]], within: Callable[[click.Context], Iterable[Offer]] | None = None
    ) -> None:
        """``within``: what is offered instead where it hangs on the words before."""
        self._offers, self._within = offers, within

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        if incomplete[:1] in ("/", ".", "~") and self._offers is _kernels:
            return [CompletionItem(incomplete, type="file")]
        try:
            known = self._within(ctx) if self._within else self._offers(incomplete)
            offers = [offer for offer in known if offer[0].startswith(incomplete)]
        except (KdeltaError, OSError):  # a shell has no place for a message: there is nothing to offer
            return []
        return [CompletionItem(word, help=_about(word, about)) for word, about in offers if _PLAIN.fullmatch(word)]


def _about(word: str, about: str) -> str | None:
    """What a word is, on one line; None beside a word with a colon, where zsh would take it for a part of that."""
    from kdelta.cli._say import harmless

    return None if ":" in word else " ".join(harmless(about).split())[:_ABOUT_LENGTH] or None


_BY_CONTEXT: dict[tuple[str, str], Callable[[click.Context], Iterable[Offer]]] = {
    ("why", "experiment"): _explained,
    ("why", "case"): _cases_of,
}


def fit(command: click.Command, path: str) -> None:
    """Give the texts among the parameters of ``command`` and its subcommands the values that are known."""
    if isinstance(command, click.Group):
        for name, one in command.commands.items():
            fit(one, f"{path} {name}")
    for param in command.params:
        if (path, param.name) in _FILES:
            param.type = click.Path()
        known = _BY_COMMAND.get((path, param.name or "")) or _BY_NAME.get(param.name or "")
        if known is not None and isinstance(param.type, click.types.StringParamType):
            param.type = _Offered(known, _BY_CONTEXT.get((path, param.name or "")))


def register() -> None:
    """Have click use what is here."""
    for shell in (Bash, Zsh, Fish):
        add_completion_class(shell)

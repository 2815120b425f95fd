# SPDX-License-Identifier: GPL-2.0-or-later
"""An experiment's document as revision 0003 kept it -> as revision 0004 keeps it. Frozen: a later change is new code.

Until 0003 an experiment had a ``kind`` and a bag of texts, ``extra``; since then it has a plan and annotations. Used
by the migration, and for files that an older kdelta exported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_FOLLOWS = re.compile(r"fresh boots of what experiment (\S+) left undecided; its own boots are not used")
_KTAP, _NOTE = "ktap:", "note:"


def upgraded(document: Mapping[str, Any]) -> dict[str, Any]:
    """``document`` with a plan and annotations; one that has them already stays as it is.

    Raises:
        ValueError, KeyError, TypeError: it is not what revision 0003 kept.
    """
    if "plan" in document:
        return dict(document)
    kept = {key: value for key, value in document.items() if key not in ("kind", "extra")}
    extra: dict[str, str] = dict(document.get("extra", {}))
    kept["plan"] = _plan(document.get("kind", "compare"), extra)
    kept["annotations"] = _annotations(extra)
    kept["folders"] = [line for line in extra.get("folders", "").split("\n") if line]
    for name in ("precision_percent", "steal_limit_percent"):
        if name in extra:
            kept[name] = float(extra[name])
    return kept


def _plan(kind: str, extra: Mapping[str, str]) -> dict[str, Any]:
    reuse = extra.get("reuse") == "yes"
    if kind == "bisect":
        return _bisect(json.loads(extra["question"]))
    if kind == "trace":
        sets = [name for name in extra.get("what", "").split(",") if name not in ("", "hold")]
        return {"kind": kind, "sets": sets, "ops": int(extra["ops"]) if "ops" in extra else None}
    if kind in ("run", "sweep"):
        return {"kind": kind, "reuse": reuse}
    if kind in ("leaks", "calibrate"):
        return {"kind": kind}
    if "recipe" in extra:
        return {"kind": "check", "recipe": extra["recipe"], "reuse": reuse}
    follows = _FOLLOWS.fullmatch(extra.get(f"{_NOTE}follows", ""))
    return {
        "kind": "compare",
        "selftests": [name for name in extra.get("selftests", "").split(",") if name],
        "follows": follows[1] if follows else "",
        "confirms": extra.get("bisect", ""),
    }


def _bisect(question: Mapping[str, Any]) -> dict[str, Any]:
    base = question["base"]
    plan = {"kind": "bisect", "tree": base["target"]}
    plan |= {key: question[key] for key in ("good", "bad", "metric", "max_boots") if key in question}
    return plan | {key: base[key] for key in ("patches", "cmdline", "config", "arch") if key in base}


def _annotations(extra: Mapping[str, str]) -> dict[str, Any]:
    notes = [
        {"code": key.removeprefix(_NOTE), "text": line}
        for key, text in extra.items()
        if key.startswith(_NOTE) and not (key == f"{_NOTE}follows" and _FOLLOWS.fullmatch(text))
        for line in text.splitlines()
    ]
    return {
        "gate": extra.get("gate", ""),
        "ktap": {key.removeprefix(_KTAP): text for key, text in extra.items() if key.startswith(_KTAP)},
        "notes": notes,
        "compilers": extra["compilers"].split("\n") if "compilers" in extra else [],
        "gaps": [_gap(place, gap) for place, gap in json.loads(extra.get("gaps") or "[]")],
        "followed_by": extra.get("followed_by", ""),
        "search": {
            "skipped": json.loads(extra.get("skipped", "{}")),
            "refuted": json.loads(extra.get("refuted", "[]")),
            "confirmation": extra.get("confirmation", ""),
        },
    }


def _gap(place: int, gap: Mapping[str, Any]) -> dict[str, Any]:
    spec = _written(gap["spec"])
    return {"place": place, "label": gap["label"], "spec": spec, "why": gap["why"], "by_host": gap["by_host"]}


def _written(spec: Mapping[str, Any]) -> str:
    """A kernel in the grammar, from the fields that revision 0003 kept of it."""
    flavour = f"/{spec['flavour']}" if spec.get("flavour") else ""
    patches = "".join(("+-" if one.get("reverse") else "+") + one["path"] for one in spec.get("patches", ()))
    target, ref = spec.get("target", ""), f"@{spec['ref']}" if spec.get("ref") else ""
    source = {
        "running": "running",
        "image": target,
        "deb": f"deb:{target}",
        "debian": f"debian:{target}{flavour}",
        "range": f"debian:{target}..{spec.get('last', '')}{flavour}",
        "src": f"src:{target}{ref}{patches}",
        "src-debian": f"src:debian:{target}{patches}",
    }[spec["kind"]]
    if any(sign in source for sign in ",='\""):
        source = _quoted(source)
    given = {key: spec.get(key, "") for key in ("cmdline", "config", "arch")}
    options = "".join(
        f",{key}={_quoted(value)}" for key, value in given.items() if value and (key, value) != ("arch", "x86_64")
    )
    return f"{spec['label']}={source}{options}" if spec.get("label") else source + options


def _quoted(value: str) -> str:
    return '"' + value.replace('"', '"\'"\'"') + '"'

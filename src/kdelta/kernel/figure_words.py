# SPDX-License-Identifier: GPL-2.0-or-later
"""How people write a figure in a mail: one expression for each way, with an example that it takes. Pure."""

from __future__ import annotations

import re

_MORE = r"(?:fast|quick|slow|few|less|more|high|low|short|small|larg|cheap|better)\w*"
_PART = r"(?:half|thirds?|quarters?|fifths?|tenths?)"
_TENS = r"(?:half\s+a|one|two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|thirty|forty|fifty)"
_SPEED = r"(?:speed|throughput|bandwidth|performance|time|cost|latency|overhead|rate)"
_COST = r"(?:speed|throughput|time|cost|latency|number)"
_UNIT = r"(?:s|secs?|seconds?|min(?:utes)?|[kMGT]i?B|bytes|cycles|insns|pages|\w{1,8}/\w{1,6})"
_SECONDS = r"(?:s|secs?|seconds?|min|minutes?)"
_BYTES = r"(?:(?:[kKM]i?)?B|bytes)"
_SURE = r"(?!\s(?:reproducible|sure|certain|safe|correct|compatible|reliabl\w+)\b)"  # of what 100 % are no figure
_GONE = r"(?:improv|reduc|drop|increas|decreas|ris|fall|fell|go|grow|shrink|went|down|up)\w*"
_SHRUNK = r"(?:sav|shrink|grow|reduc|small|larg)\w*"
_TIMES = r"(?:as\s+)?(?:fast|quick|slow|few|less|more|many|much|long|high|low|better|cheap|speed|improve|throughput)"
_OF_EACH = (
    r"(?:[nuµm]s(?:ecs?)?|(?:nano|micro|milli)seconds?|cycles|instructions|insns|[a-z]\w{0,15}/s(?:ecs?|econds?)?"
    r"|[KMG]i?[Bb](?:it|yte)?s?(?:/s\w*|ps)|[tqrp]ps|iops|ops)"
)
_EVENTS = r"(?:instructions|insns|cycles|atomics?|branches|misses|(?:alloc|oper)ations?)"
_NO_COUNT = "".join(rf"(?<!\b{word} )" for word in ("order", "level", "state", "index", "version")) + "(?<!count )"

# Each beside a line that it takes, and no other does.
WAYS: tuple[tuple[str, str], ...] = (
    ("5 percent of it", rf"\d\+?[\s-]?(?:%{_SURE}|percent\b{_SURE}|per\s?cent\b{_SURE}|pct\b)"),
    ("15 percentage points", r"\d[ -]percentage"),
    ("about three percent", rf"\b{_TENS}[\s-]per\s?cent\b"),
    ("a build ends a second sooner", r"\ba\s(?:milli|micro)?(?:second|minute)\s(?:fast|soon|quick|slow)er\b"),
    (
        "throughput nearly doubles",
        rf"\b(?:{_SPEED}|number|amount|usage)\s+(?:[\w-]+\s+){{0,3}}(?:doubl|halv|tripl)(?:es|ed)\b",
    ),
    ("92s versus 61s", rf"\d\s?{_UNIT}\s+(?:vs\.?|versus)\s+~?\d"),
    ("92s before, 61s after", rf"\d\s?{_SECONDS}\s+(?:before|after)(?=[,;.)]|$)"),
    ("score 812 (higher is better)", r"\d[^()\d]{0,20}\((?:lower|higher|smaller|bigger)\sis\sbetter\)"),
    ("99.0th: 812", r"\b\d{1,3}\.\d+th\b.*\s\d"),
    ("bogo: 812 vs 790", r"[:=]\s?\d[\d,.]*[kKMG]?\s+(?:vs\.?|versus)\s+\d"),
    ("geomean: 103", r"\bgeo(?:metric)?[\s-]?means?\b[^.:=]{0,40}[:=]\s?~?\d"),
    ("3 times as fast", rf"\b\d+(?:\.\d+)?\s?(?:[x×]|times)\s+{_TIMES}"),
    ("a 2.5x gain", r"\b\d+\.\d+(?:x\b|\s?×)"),
    ("it is x3 faster", rf"\bx\d+(?:\.\d+)?\s+{_MORE}"),
    ("a 3-fold gain", r"\b\d+(?:\.\d+)?-?fold\b"),
    ("a twofold gain", r"\b(?:two|three|four|five|ten|hundred)-?fold\b"),
    ("better by about 2x", r"\b(?:by|about|around|roughly|nearly|almost|over|than|to|of)\s+~?\d+x\b"),
    ("(~2x)", r"~\d+x\b"),
    (
        "two times faster",
        r"\b(?:two|three|four|five|ten)\s+times\s+(?:as|fast|quick|slow|few|less|more|high|low|better|cheap)",
    ),
    ("twice as fast", rf"\btwice\s+(?:as\s+(?:fast|slow|many|much|long|high)|the\s+{_COST})\b"),
    ("half the time", r"\bhalf\s+(?:as\s+(?:fast|many|much|long|high)|the\s+(?:speed|throughput|time|cost|latency))\b"),
    ("a third faster", rf"\b(?:a|one|two|three)[\s-]{_PART}\s+{_MORE}"),
    ("drops to a tenth", rf"\bto\s+(?:a|one|two|three)[\s-]{_PART}\b"),
    ("a speedup of 1.3", r"\bspeed-?ups?(?:\s+(?:of|is|by)\s+|\s*[:=]\s*)~?\d+\.\d"),
    (
        "went up 3 times",
        r"\b(?:up|down|improv\w*|increas\w*|grew|rose|dropp?\w*)\s+(?:by\s+)?~?\d+(?:\.\d+)?\s?(?:x|times)\b",
    ),
    (
        "1.2 million forks a second",
        r"\b(?:\d[\d.]*(?:[kMG]|\s(?:thousand|million|billion))|\d{5,}|\d+(?:,\d{3})+)\s(?:[\w-]+\s){0,3}(?:per|a|each)\ssecond\b",
    ),
    ("12 fewer branches", rf"\d\s+(?:few|less|more|extra|additional)\w*\s+(?:\w+\s+)?{_EVENTS}\b"),
    ("4 KiB smaller", rf"\d\s?{_BYTES}\s+{_MORE}"),
    ("12 minutes sooner", r"\d\s?(?:second|minute)s?\s+(?:fast|slow|soon|long|short|earli|quick|lat)er\b"),
    ("halves the number", rf"\b(?:halv|doubl|tripl)\w+\s+(?:the\s+(?:\w+\s+)?)?(?:{_COST}|bandwidth|overhead)\b"),
    (
        "cuts it by half",
        r"\b(?:cut|reduc|drop|improv|increas)\w*\s+(?:[\w()]+\s+){0,4}"
        r"(?:by\s+(?:half|a\s+(?:half|third|quarter)\b)|in\s+half\b|(?:by|to)\s+1/\d)",
    ),
    (
        "no measurable difference",
        r"\bno\s(?:measur\w+\s(?:performance\s)?(?:difference|change|impact|improvement|effect)"
        r"|performance\s(?:difference|change|impact|regression|overhead)"
        r"|(?:measur|notic|signific|observ)\w+\s(?:performance\s\w+|regression|overhead|slowdown|cost))s?\b",
    ),
    ("it is within noise", r"\bwithin\s(?:the\s)?noise\b"),
    ("a factor of 3", r"\bfactor of \d"),
    ("orders of magnitude", r"\border\w* of magnitude"),
    ("shrinks by 12 kB", rf"\b{_SHRUNK}\s+(?:[\w()]+\s+){{0,6}}~?\d[\d,.]*\s?(?:[kKMGT]i?)?(?:B|bytes)\b"),
    (
        "12 s of overhead",
        rf"\d\s?{_UNIT}\s(?:[\w-]+\s){{0,3}}(?:improvement|reduction|regression|decrease|increase|saving|win|gain|overhead)s?\b",
    ),
    ("15 nsec", rf"\b\d[\d,.]*\s?[kKMG]?\s?{_OF_EACH}\b"),
    ("IOPS=512k", r"\biops\s?[=:]\s?\d"),
    ("IPC improves from 0.82 to 0.91", rf"\b{_GONE}\s+from\s+~?\d[\d,.]*[kKMG]?\s+to\s+~?\d"),
    ("5m12s", r"\b\d+m\s?\d+(?:\.\d+)?s\b"),
    ("took 12.34s", r"\b\d+\.\d+\s?s(?:ec(?:ond)?s?)?\b"),
    ("1,234,567 context-switches", r"\b\d+(?:,\d{3})+\s+[a-z]"),
    (
        "812 -> 790",
        rf"{_NO_COUNT}(?<![\w.])\d\w*(?:\.\d+\w*)?(?:\s{_UNIT})?\s+(?:->|=>|\u2192)\s+\d",
    ),
)
FIGURE = re.compile("|".join(f"(?:{expression})" for _, expression in WAYS), re.IGNORECASE)

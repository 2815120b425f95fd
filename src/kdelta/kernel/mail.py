# SPDX-License-Identifier: GPL-2.0-or-later
"""Patch mails to single patches, in order: mbox series, saved mails, quotes, transfer encodings. Pure, over bytes.

What the mail did to the lines of the diff is left in place here; ``patch.fit`` repairs them against the tree.
Subjects follow the kernel's Documentation/process/submitting-patches.rst: ``[PATCH v2 03/12] fs: title``.
"""

from __future__ import annotations

import email
import email.errors
import email.header
import email.message
import email.utils
import re
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from kdelta.errors import UserError
from kdelta.kernel import mail_text

_COLOUR = re.compile(rb"\x1b\[[0-9;]*[mK]")
_COMBINED = re.compile(rb"^@@@+ ", re.MULTILINE)
MAX_BYTES = 32 << 20
_SUBJECT_CHARS = 2000
_CONTENT_TYPE = re.compile(rb"(?im)^content-type:[^\n]*(?:\n[ \t][^\n]*)*")
_CONTENT_TYPE_BYTES = 16_384  # Python's email takes time by the square of its parameters
_SEPARATOR = re.compile(  # with a time and a year, as is_from_line() of git's builtin/mailsplit.c has it (2.39)
    rb"(?:\A|(?<=\n))From [^\n]*\d:\d\d(?::\d\d)?[ \t]+(?:[A-Z+-][\w+-]*[ \t]+)?\d{4}\b[^\n:]*\n"
    rb"(?=[A-Za-z][A-Za-z0-9-]*:)"
)
_HEADER = re.compile(rb"\A\s*(?:>?From [^\n]*\n)?[A-Za-z][A-Za-z0-9-]*:[ \t]")
_ID = re.compile(r"<[^<>\s]+@[^<>\s]+>")
_TAG = re.compile(r"(?<![\"'\u201c])\[([^\]]*)\]")  # not the subject of another mail: FAILED: patch "[PATCH] x"
_COUNTER = re.compile(r"(?<![\d.])(\d{1,4})/(\d{1,4})(?!\.?\d)")  # not [PATCH 5.10/5.15]
_VERSION = re.compile(r"(?:\b|PATCH|RFC)v(\d{1,3})\b", re.IGNORECASE)  # [PATCH v2], [PATCHv2]
_RELEASE = re.compile(r"(?<![\d.v])(\d{1,2}\.\d{1,3})(?!\d|/\d+(?![\d.]))")  # not [PATCH 1.5/3], which comes later
_STGIT_VERSION = re.compile(r"\s*\[ver #(\d{1,3})\]\s*$")  # StGit's, behind the title
_PULL = re.compile(r"\bPULL\b", re.IGNORECASE)
_RE = r"(?:re(?:\[\d+\])?|aw|fwd?)\s*[:\uff1a]"
_RE_ELSEWHERE = (
    r"(?:sv|vs|antw|odp|ynt|wg|tr|rif|r[e\u00e9]f|res|\u56de[\u590d\u8986]|\u7b54[\u590d\u8986]|\u8f6c\u53d1)"
    r"\s*[:\uff1a]"
)
_OTHER_TAG = r"\[(?![^\]]*(?:PATCH|RFC|\bv\d|\d/\d))[^\]]*\]\s*"  # [External] Re: ...
_REPLY = re.compile(rf"(?:{_OTHER_TAG})*{_RE}|{_RE_ELSEWHERE}", re.IGNORECASE)
_PREFIXES = re.compile(rf"^(?:{_RE_ELSEWHERE}\s*)?(?:{_RE}\s*|\[[^\]]*\]\s*)*", re.IGNORECASE)
_QUOTED_DIFF = re.compile(r"^((?:[>|] ?)+)(?:diff --git |--- \S|\+\+\+ \S|@@ -\d)")
_PLAIN_DIFF = re.compile(r"^(?:diff --git |@@ -\d)", re.MULTILINE)
_HUNK = re.compile(r"^(?:[>|] ?)*@@ -\d", re.MULTILINE)
_DIFF_TEXT = re.compile(r"^(?:diff --git |--- \S).*?(?=^-- ?$|\Z)", re.MULTILINE | re.DOTALL)
_NO_LINES = re.compile(  # a diff without hunks: a file is renamed, made executable, made empty, or binary
    r"^diff --git .*\n(?:(?:dis)?similarity |rename |copy |old mode |new file |deleted file )"
    r"|^diff --git .*\nindex .*\n(?:GIT b|B)inary ",
    re.MULTILINE,
)


class PatchMail(Struct, frozen=True, kw_only=True):
    """One patch of a series as text: ``lines`` hold a diff, without quotes and carriage returns.

    ``quoted``: it had quotes, so parts may be left out; ``id`` is its Message-ID, ``answers`` that of what it replies
    to, each "" where there is none.
    """

    name: str  # the file it came from, with [n/m] where it is one of several
    subject: str
    number: int = 1
    total: int = 1
    version: int = 1
    reply: bool = False
    quoted: bool = False
    id: str = ""
    answers: str = ""
    releases: tuple[str, ...] = ()  # that its subject says it is for, as 6.12
    lines: tuple[str, ...] = ()


class Tag(Struct, frozen=True, kw_only=True):
    """What a subject says: ``[PATCH v2 3/7] title``. ``number`` is None without a counter, 0 for a cover letter."""

    title: str
    patch: bool = False  # it has a tag of patches
    draft: bool = False  # one that patches have, and other mails too: [RFC], [net v2]
    number: int | None = None
    total: int = 1
    version: int = 1
    reply: bool = False
    rfc: bool = False  # [RFC PATCH], [PATCH RFC]
    releases: tuple[str, ...] = ()  # that it is for: [PATCH 6.12.y], [PATCH AUTOSEL 6.6 1/4], [PATCH 5.10/5.15]


def tag_of(subject: str) -> Tag:
    """The tag of a subject on one line. A request to pull has none of patches, numbered or not."""
    tags = [tag for tag in _TAG.findall(subject) if "PATCH" in tag.upper() or not _PULL.search(tag)]
    tag = next((tag for tag in tags if "PATCH" in tag.upper() or _COUNTER.search(tag)), "")
    likely = next((tag for tag in tags if "RFC" in tag.upper() or _VERSION.search(tag)), "")
    counter, behind = _COUNTER.search(tag), _STGIT_VERSION.search(subject)
    before = _PREFIXES.match(subject)
    version = behind or _VERSION.search(tag or likely) or _VERSION.search(before[0] if tag and before else "")
    return Tag(
        title=_STGIT_VERSION.sub("", _PREFIXES.sub("", subject)),
        patch=bool(tag),
        draft=bool(likely),
        number=int(counter[1]) if counter else None,
        total=int(counter[2]) if counter else 1,
        version=int(version[1]) if version else 1,
        reply=bool(_REPLY.match(subject)),
        rfc="RFC" in (tag or likely).upper(),
        releases=tuple(_RELEASE.findall(tag or likely)),
    )


def _unquote(text: str) -> list[str]:
    """Lines without the reply's quote marks; a reviewer's own lines between the quoted ones are dropped."""
    lines = text.split("\n")
    if _PLAIN_DIFF.search(text):
        return lines
    prefixes = [match.group(1) for line in lines if (match := _QUOTED_DIFF.match(line))]
    if not prefixes:
        return lines
    prefix = min(prefixes, key=len)
    bare = prefix.rstrip()
    cut = [(line, prefix if line.startswith(prefix) else bare) for line in lines if line.startswith(bare)]
    return [line[len(mark) :] for line, mark in cut]


def _subject(message: email.message.Message) -> str:
    raw = str(message.get("Subject", ""))[:_SUBJECT_CHARS]
    try:
        text = str(email.header.make_header(email.header.decode_header(raw)))
    except (LookupError, ValueError, email.errors.MessageError):  # an unknown character set, or another than it says
        text = raw
    return " ".join(text.split())


def pieces(data: bytes) -> list[bytes]:
    """The messages of an mbox as they are, each with its "From " line, whose escapes in the text are taken out."""
    starts = [match.start() for match in _SEPARATOR.finditer(data)]
    if not starts or data[: starts[0]].strip():
        starts.insert(0, 0)
    found = [data[start:end] for start, end in zip(starts, [*starts[1:], len(data)], strict=True)]
    return [re.sub(rb"(?m)^>(>*From )", rb"\1", piece) for piece in found]


def is_separator(line: bytes) -> bool:
    """Whether ``line``, without its end, begins a message of an mbox where a header follows it."""
    return bool(_SEPARATOR.match(line + b"\nx:"))


def subject_of(piece: bytes) -> str:
    """The subject of a message on one line, decoded; "" where it has no headers."""
    return _subject(_head(piece)) if _HEADER.match(piece) else ""


def date_of(piece: bytes) -> float:
    """When a message says it was sent, in seconds since the epoch; 0 where it does not."""
    return sent_s(str(_head(piece).get("Date", ""))[:_SUBJECT_CHARS]) if _HEADER.match(piece) else 0.0


def sent_s(date: str) -> float:
    """A header's date in seconds since the epoch; 0 where it is none."""
    try:
        return max(0.0, email.utils.parsedate_to_datetime(date).timestamp())
    except (ValueError, OverflowError, TypeError):
        return 0.0


def _head(piece: bytes) -> email.message.Message:
    head = re.sub(rb"\A\s*>?From [^\n]*\n", b"", piece.lstrip()).partition(b"\n\n")[0]
    return email.message_from_bytes(head + b"\n\n")


class Message(Struct, frozen=True, kw_only=True):
    """A message of a file, patch or not: its text, and its headers on one line each, "" where it has none."""

    text: str
    id: str = ""
    subject: str = ""
    sender: str = ""
    reply_to: str = ""  # where answers go instead
    to: tuple[str, ...] = ()  # with those of Cc


def messages(data: bytes) -> Iterator[Message]:
    """Every message in a file, patches and discussion; what cannot be parsed is left out."""
    for piece in pieces(data.replace(b"\r\n", b"\n")):
        if not _HEADER.match(piece):
            yield Message(text=mail_text.decoded(piece))
        elif all(match.end() - match.start() <= _CONTENT_TYPE_BYTES for match in _CONTENT_TYPE.finditer(piece)):
            try:
                yield _message(email.message_from_bytes(re.sub(rb"\A\s*>?From [^\n]*\n", b"", piece.lstrip())))
            except RecursionError:
                continue  # nested too deeply: as a patch it is refused with a word


def _message(parsed: email.message.Message) -> Message:
    def header(name: str) -> str:
        return " ".join(str(parsed.get(name, "")).split())[:_SUBJECT_CHARS]

    def address(name: str) -> str:
        return email.utils.parseaddr(header(name))[1]

    found = _ID.search(header("Message-ID"))
    named = email.utils.getaddresses([header("To"), header("Cc")])
    return Message(
        text="\n".join(mail_text.texts(parsed)),
        id=found[0] if found else "",
        subject=_subject(parsed),
        sender=address("From"),
        reply_to=address("Reply-To"),
        to=tuple(address for _, address in named if "@" in address),
    )


def _mail(piece: bytes, name: str) -> PatchMail | None:
    """The patch in one message, None where it has no diff (a cover letter, a discussion)."""
    if _HEADER.match(piece):
        if any(match.end() - match.start() > _CONTENT_TYPE_BYTES for match in _CONTENT_TYPE.finditer(piece)):
            raise UserError(f"patch {name}: its Content-Type header is implausibly long; save the plain text only")
        try:
            message = email.message_from_bytes(re.sub(rb"\A\s*>?From [^\n]*\n", b"", piece.lstrip()))
            texts, subject = mail_text.texts(message), _subject(message)
            own, answers = (_id(message, header) for header in ("Message-ID", "In-Reply-To"))
        except RecursionError:
            raise UserError(f"patch {name}: its MIME parts are nested too deeply; save the plain text only") from None
    else:
        texts, subject, own, answers = [mail_text.bare(piece)], "", "", ""
    diffs = _each_once([text for text in texts if _is_diff(text)])
    diffs = [text for text in diffs if _PLAIN_DIFF.search(text)] or diffs  # a quoted one is what the mail answers
    if not diffs:
        return None
    lines = [line for text in diffs for line in _unquote(text)]
    tag = tag_of(subject)
    return PatchMail(
        name=name,
        subject=tag.title,
        number=1 if tag.number is None else tag.number,
        total=tag.total,
        version=tag.version,
        reply=tag.reply,
        quoted=not any(map(_PLAIN_DIFF.search, diffs)) and any(map(_HUNK.search, diffs)),
        id=own,
        answers=answers,
        releases=tag.releases,
        lines=tuple(lines),
    )


def _id(message: email.message.Message, header: str) -> str:
    found = _ID.search(str(message.get(header, ""))[:_SUBJECT_CHARS])
    return found[0] if found else ""


def _each_once(diffs: list[str]) -> list[str]:
    """Texts without those whose diff is also in a later one: shown in the mail, and attached as it was made."""
    by_diff = {"".join("".join(_DIFF_TEXT.findall(text)).split()) or text: text for text in diffs}
    return [text for text in diffs if any(text is kept for kept in by_diff.values())]


def _versions(mails: list[PatchMail]) -> str:
    """``v1, v2`` of patches of several versions, "" of one."""
    versions = sorted({mail.version for mail in mails})
    return ", ".join(f"v{version}" for version in versions) if len(versions) > 1 else ""


def _complete(mails: list[PatchMail], name: str) -> list[PatchMail]:
    """The series in order. A patch of a later version may stand among those of an earlier one, as a partial reroll.

    Raises:
        UserError: mixed versions, a number twice, or a patch missing.
    """
    if (found := _versions(mails)) and len({mail.number for mail in mails}) < len(mails):
        raise UserError(f"patch {name}: holds versions {found} of a series; keep one of them in the file")
    total = max(mail.total for mail in mails)
    numbers = [mail.number for mail in mails]
    other = next((mail.subject for mail in mails if mail.total != total), "")
    if other and len(set(numbers)) < len(numbers):
        raise UserError(f"patch {name}: holds a series of {total}, and {other[:60]!r}, which is none of it; keep one")
    if twice := sorted({number for number in numbers if numbers.count(number) > 1}):
        raise UserError(f"patch {name}: [{twice[0]}/{total}] is in it {numbers.count(twice[0])} times; keep one")
    if missing := sorted(set(range(1, total + 1)) - set(numbers)):
        lacking = ", ".join(f"[{number}/{total}]" for number in missing)
        raise UserError(f"patch {name}: {lacking} of the series is missing; save the whole thread as one mbox")
    return sorted(mails, key=lambda mail: mail.number)


def _each_alone(mails: list[PatchMail], name: str) -> list[PatchMail]:
    """Patches without numbers, as they stand in the file; refused where one of them is there in several versions."""
    for subject in sorted({mail.subject for mail in mails} - {""}):
        if found := _versions([mail for mail in mails if mail.subject == subject]):
            raise UserError(f"patch {name}: holds versions {found} of {subject[:60]!r}; keep one of them in the file")
    by_id = {mail.id: mail for mail in mails if mail.id}
    for mail in mails:
        if (before := by_id.get(mail.answers)) and mail.version > before.version:  # and has another title by now
            what = f"versions {_versions([before, mail])} of {before.subject[:60]!r}"
            raise UserError(f"patch {name}: holds {what}, then {mail.subject[:60]!r}; keep one of them in the file")
    return mails


def _is_diff(text: str) -> bool:
    return bool(_HUNK.search(text) or _NO_LINES.search(text))


def has_diff(data: bytes) -> bool:
    """Whether some text of a mail holds a diff."""
    return any(_is_diff(message.text) for message in messages(data))


def too_large(name: str, size_bytes: int) -> str:
    """What to say of a file that is larger than any patch."""
    return f"patch {name}: {size_bytes >> 20} MiB is more than the {MAX_BYTES >> 20} MiB allowed for a patch"


def steps(data: bytes, name: str) -> tuple[PatchMail, ...]:
    """Split a patch file, a saved mail or an mbox into its patches, in the order of their [n/m].

    Cover letters and discussion are skipped; quoted replies count only where no original is in the file.
    Patches without a number keep the order of the file.

    Raises:
        UserError: no diff in it, an incomplete or mixed series, or a file too large to be a patch.
    """
    if len(data) > MAX_BYTES:
        raise UserError(too_large(name, len(data)))
    data = data.replace(b"\r\n", b"\n")
    every = pieces(data)
    mails = [mail for piece in every if (mail := _mail(piece, name)) is not None]
    mails = [mail for mail in mails if not mail.reply] or mails
    mails = [mail for mail in mails if mail.number] or mails  # a cover letter's diff is against the version before
    if not mails and _COLOUR.search(data):  # as git shows it on a terminal
        return steps(_COLOUR.sub(b"", data).replace(b"\x1b", b""), name)
    if not mails and _COMBINED.search(data):
        raise UserError(
            f"patch {name}: it is the combined diff of a merge, which cannot be applied; "
            "git diff FIRST LAST has one that can"
        )
    if not mails and b"\0" in data:
        raise UserError(f"patch {name}: it holds NUL bytes, which no patch does; save the mail as plain text in UTF-8")
    if not mails:
        raise UserError(
            f"patch {name}: no diff found in it (no line such as '@@ -1,7 +1,8 @@'); save the mail as plain text"
        )
    tags = [tag_of(subject_of(piece)) for piece in every] if mails[0].total > 1 else []
    covered = any(tag.number == 0 and not tag.reply for tag in tags)  # the others should be there
    if len(mails) == 1 and not covered:  # also one of a series, saved as `git format-patch` does: the user orders those
        return (mails[0],)
    mails = _complete(mails, name) if any(mail.total > 1 for mail in mails) else _each_alone(mails, name)
    total = len(mails)
    return tuple(
        replace(mail, name=f"{name} [{number}/{total}]", number=number, total=total)
        for number, mail in enumerate(mails, 1)
    )

# SPDX-License-Identifier: GPL-2.0-or-later
"""Mails of a list -> series to review: whole ones, each once, the newest version of each. Pure.

A series is told by its thread, as git send-email makes it: patches answer the cover letter or each other. Mails that
were sent without threads belong together where sender, version and number of patches agree and they came within a day.
A series is whose mail begins it; another developer's patches in its thread fill the numbers that this one did not send.
A later version is one of the same sender with the same change-id or title, in answer to the earlier one, with a link
to it, or of which most patches have the titles of the earlier one's. What was sent twice is the later one. Patches
that follow an RFC are later than it, also where they begin again at v1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from kdelta.inbox.mails import Mail
from kdelta.kernel import thread

_DAY_S = 86_400.0
_SHOWN = 5
Readiness = Literal["ready", "waiting", "superseded"]


class Item(Struct, frozen=True, kw_only=True):
    """One thing to review. ``key`` is the Message-ID that it begins with, or a commit (then ``parent`` is set)."""

    key: str
    title: str
    date_s: float
    state: Readiness = "ready"
    why: str = ""
    data: bytes = b""
    parent: str = ""


class _Group(Struct, kw_only=True):
    """The mails of one version of a series, by their number."""

    mails: dict[int, Mail]

    @property
    def first(self) -> Mail:
        return self.mails[min(self.mails)]

    @property
    def version(self) -> int:
        return self.first.tag.version

    @property
    def rfc(self) -> bool:
        return self.first.tag.rfc

    @property
    def total(self) -> int:
        return max(one.tag.total for one in self.mails.values())

    @property
    def missing(self) -> list[int]:
        return [number for number in range(1, self.total + 1) if number not in self.mails]

    @property
    def date_s(self) -> float:
        return min(one.date_s for one in self.mails.values())

    @property
    def titles(self) -> frozenset[str]:
        """Of its patches, without the cover letter."""
        return frozenset(one.tag.title.casefold() for one in self.mails.values() if one.tag.number != 0)

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(one.id for one in self.mails.values())

    def data(self) -> bytes:
        return thread.joined(one.data for _, one in sorted(self.mails.items()))


def _number(one: Mail) -> int:
    return 1 if one.tag.number is None else one.tag.number


def _same_set(one: Mail, other: Mail, *, anyone: bool = False) -> bool:
    tag, that = one.tag, other.tag
    alike = (tag.version, tag.releases, tag.total) == (that.version, that.releases, that.total)
    return alike and one.tag.number != other.tag.number and (anyone or one.sender == other.sender)


def _head(one: Mail, by_id: Mapping[str, Mail], *, anyone: bool = False) -> str:
    """The mail that a patch's set begins with: the last one up the thread that is of the same set (``anyone``'s)."""
    numbers = {one.tag.number}  # a number that was met already is another set's, which this one answers
    current = one
    while one.tag.number is not None:
        up = next((by_id[p] for p in current.parents if p in by_id and p != current.id), None)
        if up is None or up.tag.number in numbers or not _same_set(one, up, anyone=anyone):
            break
        numbers.add(up.tag.number)
        current = up
    return current.id


def _groups(patches: Sequence[Mail]) -> list[_Group]:
    by_id = {one.id: one for one in patches}
    groups: dict[str, _Group] = {}
    for one in patches:
        group = groups.setdefault(_head(one, by_id), _Group(mails={}))
        if _number(one) not in group.mails or _number(one) != min(group.mails):  # its first mail is its name
            group.mails[_number(one)] = one
    return _joined(sorted(groups.values(), key=lambda group: group.date_s))


def _joined(groups: Iterable[_Group]) -> list[_Group]:
    """Sets that came without threads: joined where they fill each other's gaps."""
    joined: list[_Group] = []
    for group in groups:
        home = next((other for other in joined if group.missing and _fits(other, group)), None)
        if home is None:
            joined.append(group)
        else:
            home.mails |= group.mails
    return joined


def _fits(home: _Group, group: _Group) -> bool:
    near = abs(group.date_s - home.date_s) <= _DAY_S
    apart = not set(group.mails) & set(home.mails)
    return bool(home.missing) and near and apart and _same_set(home.first, group.first) and home.total == group.total


def _follows(newer: _Group, older: _Group) -> bool:
    """Whether ``newer`` is a later version of ``older``."""
    one, other = newer.first, older.first
    if newer is older or one.sender != other.sender or _begins_again(older, newer):
        return False
    again = _begins_again(newer, older) and not newer.missing
    if newer.version < older.version and not again:
        return False
    named = (one.tag.releases, other.tag.releases)
    if all(named) and named[0] != named[1]:  # the same, for another branch
        return False
    same_title = one.tag.title.casefold() == other.tag.title.casefold()
    if newer.version == older.version and not again:
        later = (newer.date_s, one.id) > (older.date_s, other.id)
        return later and same_title and not newer.missing and newer.titles == older.titles
    change = bool(one.change) and any(one.change == mail.change for mail in older.mails.values())
    return same_title or change or _names(newer, older) or 2 * len(newer.titles & older.titles) > len(older.titles)


def _begins_again(patches: _Group, rfc: _Group) -> bool:
    """Whether these are patches that came after an RFC, and count their versions anew."""
    late = patches.version <= rfc.version and patches.date_s > rfc.date_s
    return rfc.rfc and not patches.rfc and late


def _names(newer: _Group, older: _Group) -> bool:
    """Whether a mail of the one answers or links to the other as its earlier version."""
    return any(older.ids.intersection((*mail.parents, *mail.earlier)) for mail in newer.mails.values())


def _completed(group: _Group, groups: Sequence[_Group]) -> bytes | None:
    """The mails of a version that has single patches alone, with the others from the one before; None: not whole."""
    if not group.missing:
        return group.data()
    older = [one for one in groups if one.version < group.version and _follows(group, one)]
    older = [one for one in older if one.total == group.total and not one.missing]
    if not older or not all(set(mail.parents) for mail in group.mails.values()):
        return None
    before = max(older, key=lambda one: one.version)
    return thread.newest(before.data() + group.data())


def _by_owner(patches: Iterable[Mail]) -> Iterator[Mail]:
    """By date, each under the sender of what begins its set, where that one did not send this number."""
    ordered = sorted(patches, key=lambda one: (one.date_s, one.id))
    by_id = {one.id: one for one in ordered}
    heads = {one.id: by_id[_head(one, by_id, anyone=True)] for one in ordered}
    sent: dict[tuple[str, int], str] = {}
    for one in sorted(ordered, key=lambda one: one.sender != heads[one.id].sender):
        sent.setdefault((heads[one.id].id, _number(one)), one.sender)
    owners: dict[str, str] = {}
    for one in ordered:
        head = heads[one.id]
        filled = (owners[up] for up in head.parents if up in owners and by_id[up].sender == head.sender)
        whose = next(filled, head.sender)  # a new version of what somebody filled in is of that series, too
        owners[one.id] = whose if sent[head.id, _number(one)] == one.sender else one.sender
        yield replace(one, sender=owners[one.id])


def items(mails: Iterable[Mail]) -> tuple[Item, ...]:
    """What there is to review, oldest first; answers and other mails are none."""
    once: dict[str, Mail] = {}
    for one in mails:
        if one.is_patch:
            once.setdefault(one.id, one)
    by_sender: dict[str, list[Mail]] = {}  # a series has one sender, and a list has thousands
    for one in _by_owner(once.values()):
        by_sender.setdefault(one.sender, []).append(one)
    found = [(group, groups) for groups in map(_groups, by_sender.values()) for group in groups]
    found.sort(key=lambda pair: (pair[0].date_s, pair[0].first.id))
    return tuple(_item(group, groups) for group, groups in found)


def _item(group: _Group, groups: Sequence[_Group]) -> Item:
    version = f" (v{group.version})" if group.version > 1 else ""
    item = Item(key=group.first.id, title=f"{group.first.tag.title}{version}", date_s=group.date_s)
    newer = [one for one in groups if _follows(one, group)]
    if newer:
        latest = max(newer, key=lambda one: (not one.rfc, one.version, one.date_s))
        by = f"v{latest.version}" if latest.version > group.version else "the same sent again"
        by = "patches that follow the RFC" if group.rfc and not latest.rfc else by
        return replace(item, state="superseded", why=f"by {by}, {latest.first.id}")
    data = _completed(group, groups)
    if data is None:
        some = ", ".join(f"[{number}/{group.total}]" for number in group.missing[:_SHOWN])
        return replace(
            item, state="waiting", why=f"for {some}" + (" and others" if len(group.missing) > _SHOWN else "")
        )
    return replace(item, data=data)

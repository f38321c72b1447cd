"""The list of conversations: which rows, in which group, in which order, and how a row is said. Pure.

The same groups as the page's (`web/src/model/listing.ts`).
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Final, Literal

from textual.content import Content

from palaver.schema.view import Listing
from palaver.tui.text import words
from palaver.tui.text.safe import one_line
from palaver.tui.text.screens import Listed

GroupName = Literal["waiting", "active", "today", "older", "archived"]
_ORDER: Final[tuple[GroupName, ...]] = ("waiting", "active", "today", "older", "archived")


@dataclass(frozen=True, slots=True)
class Group:
    name: GroupName
    items: tuple[Listing, ...]


def group_of(listing: Listing, today_ms: int) -> GroupName:
    if listing.open_requests > 0 or listing.status in ("paused", "waiting_user_input"):
        return "waiting"
    if listing.archived:
        return "archived"
    if listing.turn is not None:
        return "active"
    return "today" if listing.updated_at >= today_ms else "older"


def group_listings(listings: Iterable[Listing], query: str, found: Set[str], now_ms: int) -> list[Group]:
    """`found`: those the server matched to the query; a title that holds the query's words matches at once."""
    today_ms = words.start_of_day(now_ms)
    wanted = query.lower().split()
    groups: dict[GroupName, list[Listing]] = {name: [] for name in _ORDER}
    for listing in listings:
        # A subagent's is found below the conversation it works for; its words are found by a search.
        if listing.deleted or (listing.parent_kind == "subagent" and listing.id not in found):
            continue
        if wanted and listing.id not in found and not _matches(listing, wanted):
            continue
        groups[group_of(listing, today_ms)].append(listing)
    for items in groups.values():
        items.sort(key=lambda listing: (-listing.updated_at, -listing.pos))
    return [Group(name, tuple(items)) for name, items in groups.items() if items]


def _matches(listing: Listing, wanted: list[str]) -> bool:
    text = f"{listing.title} {listing.last_line}".lower()
    return all(word in text for word in wanted)


def title_of(listing: Listing) -> str:
    return one_line(listing.title) or Listed.UNTITLED


def row_of(
    listing: Listing, now_ms: int, width: int, names: Mapping[str, str], *, is_current: bool, is_unread: bool
) -> Content:
    """Two lines: what it is and when it changed; how it stands or what it last said, and who answers there."""
    waits = listing.open_requests > 0
    sign, tone = (
        ("▲", "$wait")
        if waits
        else ("●", "$live")
        if listing.turn is not None
        else ("!", "$bad")
        if listing.status == "error"
        else ("•", "$live")
        if is_unread
        else (" ", "")
    )
    branched = f"{Listed.BRANCHED} " if listing.parent_kind == "branch" else ""
    when = words.ago(listing.updated_at, now_ms)
    title = _cut(f"{branched}{title_of(listing)}", width - len(when) - 3)
    top = Content.assemble(
        (f"{sign} ", tone),
        (title.ljust(max(0, width - len(when) - 3)), "bold" if is_current or is_unread or waits else ""),
        (f" {when}", "$ink-faint"),
    )
    agent = one_line(names.get(listing.agent, listing.agent), 16)
    state = _cut(_state_of(listing) or one_line(listing.last_line), width - len(agent) - 3)
    tone = "$wait" if waits else "$bad" if listing.status == "error" else "$ink-soft"
    below = Content.assemble(
        ("  ", ""), (state.ljust(max(0, width - len(agent) - 3)), tone), (f" {agent}", "$ink-faint")
    )
    return Content("\n").join([top, below])


def _state_of(listing: Listing) -> str:
    if listing.open_requests > 0:
        return Listed.waits(listing.open_requests)
    if listing.turn is not None:
        return words.join(Listed.RUNNING, Listed.queued(listing.queue_size) if listing.queue_size else None)
    return Listed.FAILED_TURN if listing.status == "error" else ""


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: max(0, width - 1)]}…"

"""What a person means by a few letters: which conversation, which message, which request, which agent.

Called by commands before they do anything. An id may be cut to any beginning or end that no other shares (ids begin with the
time, so their ends differ sooner). What cannot be meant is refused with what might have been.
"""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING

from palaver.client.safe_text import one_line
from palaver.errors import NotFound
from palaver.schema.base import ID_PATTERN

if TYPE_CHECKING:
    from palaver.client import Client
    from palaver.client.conversations import WaitingRequest
    from palaver.schema.view import Listing, Message

LATEST = ("last", "-")
SHORTEST = 4
"""Fewer letters are a slip of the finger, not a choice."""
SHORT_CHARS = 8
NAMED = 5
"""Of several that might be meant."""
MESSAGES_A_PAGE = 500


def short(one: str, all_ids: Iterable[str] = ()) -> str:
    """The end of an id that tells it apart: what a person copies."""
    others = [other for other in all_ids if other != one]
    for length in range(SHORT_CHARS, len(one)):
        end = one[-length:]
        # A word that begins with a dash would be taken for an option.
        if not end.startswith("-") and not any(other.endswith(end) for other in others):
            return end
    return one


async def conversation(client: "Client", meant: str) -> str:
    """The id of the conversation that is meant."""
    if meant in LATEST:
        return (await latest(client)).id
    if not re.fullmatch(ID_PATTERN, meant):
        raise NotFound(f"“{meant}” is no id of a conversation. `palaver list` shows them.")
    with suppress(NotFound):
        return (await client.conversation(meant)).id
    if len(meant) < SHORTEST:
        raise NotFound(f"No such conversation: “{meant}”. Give at least {SHORTEST} letters of an id.")
    fitting = [row async for row in client.every_conversation() if _fits(row.id, meant)]
    if len(fitting) == 1:
        return fitting[0].id
    if not fitting:
        raise NotFound(f"No such conversation: “{meant}”. `palaver list` shows them, `palaver search` finds them.")
    named = "".join(f"\n  {row.id}  {one_line(row.title, 60) or '(untitled)'}" for row in fitting[:NAMED])
    raise NotFound(f"“{meant}” fits {len(fitting)} conversations. Give more of the id:{named}")


async def latest(client: "Client") -> "Listing":
    rows = await client.conversations(limit=1)
    if not rows:
        raise NotFound('There is no conversation yet. Begin one: palaver send "hello"')
    return rows[0]


async def message(client: "Client", within: str, meant: str) -> str:
    """A message of a conversation by its id or part of it, or by its number: 1 is the first, -1 the last."""
    state = await client.snapshot(within, tail=1000)
    known: list[Message] = list(state.messages)
    while known and len(known) < state.offset + len(state.messages):
        older = await client.messages(within, known[0].seq, MESSAGES_A_PAGE)
        if not older:
            break
        known = [*older, *known]
    if meant.lstrip("-").isdecimal() and len(meant) < SHORTEST and int(meant):
        place = int(meant) - 1 if int(meant) > 0 else len(known) + int(meant)
        if 0 <= place < len(known):
            return known[place].id
        raise NotFound(f"There is no message {meant}: this conversation has {len(known)}.")
    return _one([one.id for one in known], meant, "message", f"`palaver show {within} --ids` shows them.")


async def request(client: "Client", meant: str) -> "WaitingRequest":
    waiting = await client.requests()
    if not waiting:
        raise NotFound("Nothing waits for a person.")
    if meant in LATEST:
        return waiting[-1]
    found = _one([one.request.id for one in waiting], meant, "request that waits", "`palaver requests` shows them.")
    return next(one for one in waiting if one.request.id == found)


async def unknown_agent(client: "Client", wanted: str, project: str | None = None) -> NotFound | None:
    """Why an agent cannot be talked to: nobody is called so. Said before anything is sent to it."""
    ids = [agent.id for agent in await client.agents(project)]
    return None if wanted in ids else no_agent(wanted, ids)


def no_agent(wanted: str, ids: Sequence[str]) -> NotFound:
    close = get_close_matches(wanted.lower(), ids, n=1)
    meant = f" Did you mean “{close[0]}”?" if close else ""
    return NotFound(f"No agent is called “{wanted}”.{meant} There are: {', '.join(ids)}.")


def _fits(whole: str, meant: str) -> bool:
    return whole.startswith(meant) or whole.endswith(meant)


def _one(ids: Sequence[str], meant: str, noun: str, advice: str) -> str:
    if meant in ids:
        return meant
    fitting = [one for one in ids if _fits(one, meant)] if len(meant) >= SHORTEST else []
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        raise NotFound(f"No such {noun}: “{meant}”. {advice}")
    raise NotFound(f"“{meant}” fits {len(fitting)}. Give more of the id: {', '.join(fitting[:NAMED])}")

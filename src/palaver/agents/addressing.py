"""Whom an agent may write to, and where what it writes goes.

Called by `exchange.py` before anything is sent. Reads the list of conversations; sends nothing. What is refused is refused in
words that the model can act on: they become the result of its call, and are seen in the transcript.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from palaver.agents.delegation import Agents, describe_agents
from palaver.approval.policy import Rule
from palaver.clock import Ids
from palaver.core.exchanges import HOPS, is_open
from palaver.core.params import MODES
from palaver.core.restraints import find_missing, restraints_of
from palaver.log.base import EventLog
from palaver.schema.records import AgentRecord
from palaver.schema.view import Listing, State
from palaver.tools.base import Letter

CONTENT_CHARS = 48_000
"""The longest message: it is part of an event, which may hold 256 KiB."""
WIDTH = 8
"""Messages of one conversation that wait for an answer at once: whoever sends more does not wait for any."""
PAGE_ROWS = 200


@dataclass(frozen=True, slots=True)
class Address:
    """The conversation that a letter goes to; or why there is none."""

    conversation: str | None = None
    words: str = ""
    is_new: bool = False
    """It is yet to be made."""


def works_for_another(state: State) -> bool:
    """A subagent: once it has reported, nobody takes what it says."""
    return state.parent is not None and state.parent.kind == "subagent"


def cautious(mode: str, other: str) -> str:
    """The more careful one of two modes. A word nobody here knows means `ask`."""
    return min((word if word in MODES else "ask" for word in (mode, other)), key=MODES.index)


AtWork = tuple[State, AgentRecord | None]
"""A conversation, and the record of the agent that works there."""


def escapes(caller: AtWork, target: AtWork, rules: Iterable[Rule]) -> bool:
    """Whether something is forbidden or asked for in one conversation that is neither in another. `rules`: the server's."""
    (here, whose), (there, others) = caller, target
    if find_missing(restraints_of(here.params, whose), restraints_of(there.params, others)):
        return True
    if here.project == there.project:
        return False
    return any(
        rule.decision != "allow" and _counts_in(rule, here.project) and not _counts_in(rule, there.project)
        for rule in rules
    )


def _counts_in(rule: Rule, folder: str | None) -> bool:
    if rule.project is None:
        return True
    return folder is not None and Path(folder).resolve().is_relative_to(rule.project.resolve())


def refusal_of(caller: State, letter: Letter, agents: Agents) -> str:
    """Why nothing is sent, whatever conversation it would go to; empty when it may be."""
    if not letter.content.strip():
        return "The message is empty. Say in `content` what you want from the other agent."
    if len(letter.content) > CONTENT_CHARS:
        return f"A message may hold {CONTENT_CHARS:,} characters. Write the rest to a file and name it in the message."
    if agents.agent(letter.agent, caller.project) is None:
        known = ", ".join(name for name, _ in describe_agents(agents, caller.project))
        return f"There is no agent “{letter.agent}”. There are: {known or 'none'}."
    if hops_so_far(caller) >= HOPS:
        return (
            f"Agents have passed {HOPS} messages back and forth since a person last spoke, so nothing was sent. "
            "End your turn with what you have, and let the person speak."
        )
    if works_for_another(caller) and not letter.wait:
        return "You work on a task and have no later turn to get an answer in. Write with mode `sync`."
    return ""


def too_many(caller: State, sending: Iterable[str]) -> str:
    """`sending` are the exchanges that are on their way: of calls that run together none is on record yet."""
    unanswered = {known.id for known in caller.exchanges if known.direction == "out" and is_open(known)}
    if len(unanswered.union(sending)) < WIDTH:
        return ""
    return f"{WIDTH} messages of yours are still unanswered. Wait for an answer before you write to anybody else."


def hops_so_far(caller: State) -> int:
    """Words between agents that led here, and those that were sent from here since: two agents that answer each other
    count up with every message, also where one message has two consequences, an answer and a message of its own."""
    since = _last_new_word(caller)
    sent = (known.hops for known in caller.exchanges if known.direction == "out" and (known.started_at or 0) >= since)
    return max(caller.turn.trigger.hops if caller.turn else 0, *sent, 0)


def _last_new_word(caller: State) -> int:
    """When something began here that is no consequence of what agents had said to each other before."""
    since = max(
        (message.ts for message in caller.messages if message.role == "user" and not message.exchange), default=0
    )
    latest: dict[str | None, int] = {}
    for known in caller.exchanges:
        if known.direction == "in":
            # Whoever wrote counts up too, until somebody speaks to them anew.
            if known.hops <= latest.get(known.conversation, 0):
                since = max(since, known.started_at or 0)
            latest[known.conversation] = known.hops
    return since


class Addresses:
    def __init__(self, log: EventLog, ids: Ids) -> None:
        self._log = log
        self._ids = ids

    async def of(self, caller: State, letter: Letter) -> Address:
        match letter.conversation:
            case "create":
                return self.new()
            case "latest":
                latest = await self._latest(caller, letter.agent)
                words = f"{letter.agent} has no conversation in this project. Use session `create` to begin one."
                return Address(latest, "" if latest else words)
            case "latest-or-create":
                latest = await self._latest(caller, letter.agent)
                return Address(latest) if latest else self.new()
            case conversation:
                return await self._find_named(caller, letter.agent, conversation)

    def new(self) -> Address:
        return Address(self._ids.new(), is_new=True)

    async def _latest(self, caller: State, agent: str) -> str | None:
        cursor: str | None = None
        while True:
            page = await self._log.list(limit=PAGE_ROWS, cursor=cursor, project=caller.project)
            for row in page.items:
                if row.agent == agent and not row.archived and not _out_of_reach(caller, row):
                    return row.id
            cursor = page.next_cursor
            if cursor is None:
                return None

    async def _find_named(self, caller: State, agent: str, conversation: str) -> Address:
        row = await self._log.listing(conversation)
        if row is None or row.deleted:
            return Address(
                words=f"There is no conversation “{conversation}”. Leave `session` out to reach {agent} anyway."
            )
        if why := _out_of_reach(caller, row):
            return Address(words=why)
        if row.agent != agent:
            return Address(words=f"Conversation {conversation} is with {row.agent}, not with {agent}.")
        return Address(conversation)


def _out_of_reach(caller: State, row: Listing) -> str:
    """Why a conversation cannot be written to from here."""
    if row.id == caller.conversation:
        return "That is this very conversation. Write to another one."
    if row.parent_kind == "subagent":
        return "That conversation is a subagent's, which works for somebody else. Write to another one."
    if works_for_another(caller) and caller.parent and row.id in (caller.parent.conversation, caller.parent.root):
        return "That conversation waits for your report. Put what you have to say there."
    return ""

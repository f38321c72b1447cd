"""What waits for a person and how it is said: which request is shown first, and what it would allow. Pure.

Called by the request dock and its cards, and by the inbox. The same words as the page's `view/dock/what.ts`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from palaver.client.client import WaitingRequest
from palaver.core.state import open_requests
from palaver.core.text.special_blocks import AskUserBlock
from palaver.schema.base import Scope
from palaver.schema.view import Request, State, TextBlock
from palaver.tui.text import docks, words
from palaver.tui.text.safe import one_line, visible
from palaver.tui.transcript.calls import kind_of, object_of
from palaver.tui.transcript.rows import special_of

_ORDER: Final = {"approval": 0, "question": 1, "plan": 2}
_WIDTH: Final[dict[Scope, int]] = {"once": 0, "conversation": 1, "agent": 2, "project": 3}
HEADING_CHARACTERS: Final = 120
"""Of a name in a heading; the card's body has all of it."""
_FIXED_INPUT: Final = ("acp", "codex")
"""Programs that take a yes or a no to a call, and no other arguments for it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """An open request, and where its answer goes."""

    conversation: str
    request: Request
    agent: str
    """Who asks, as the heading says it."""
    is_editable: bool = False
    """A yes may come with other arguments."""
    is_resting: bool = True
    """No turn runs there: an approved plan begins one, in a mode that can be chosen."""
    is_written: bool = False
    """A question that the agent wrote as its answer: it is answered with a message."""


def requests_of(
    state: State, below: Sequence[WaitingRequest] = (), names: Mapping[str, str] | None = None
) -> list[Asked]:
    """All that waits here, and in the subagents that work for this conversation: approvals, questions, plans; oldest first."""
    names = names or {}
    own = [
        Asked(
            state.conversation,
            request,
            visible(name_of(request.agent or state.agent, names)),
            is_editable=_is_editable(state, request),
            is_resting=state.turn is None,
        )
        for request in open_requests(state)
    ]
    theirs = [
        Asked(
            item.conversation,
            item.request,
            docks.Approval.for_this(visible(name_of(item.agent, names))),
            is_resting=False,
        )
        for item in below
        if item.conversation != state.conversation
    ]
    written = question_in_answer(state)
    own += (
        [Asked(state.conversation, written, visible(name_of(state.agent, names)), is_written=True)] if written else []
    )
    return sorted([*own, *theirs], key=lambda asked: (_ORDER[asked.request.kind], asked.request.ts))


def question_in_answer(state: State) -> Request | None:
    """The questions of an `ask_user` block that is the last word of a conversation at rest, as a request of its own."""
    if state.turn is not None or state.queue:
        return None
    said = next((message for message in reversed(state.messages) if not message.hidden), None)
    if said is None or said.role != "assistant":
        return None
    texts = [block for block in said.blocks if isinstance(block, TextBlock) and block.text]
    special = special_of(texts[-1]) if texts else None
    if not isinstance(special, AskUserBlock):
        return None
    return Request(id=f"written:{said.id}", kind="question", ts=said.ts, questions=special.questions, agent=said.agent)


def name_of(agent: str, names: Mapping[str, str]) -> str:
    """An agent by its name, or by its id while nobody told the name."""
    return names.get(agent, agent)


def _is_editable(state: State, request: Request) -> bool:
    if request.kind != "approval" or request.call is None or not isinstance(request.input, dict) or state.turn is None:
        return False
    return state.turn.backend.partition(":")[0] not in _FIXED_INPUT


def place_of(asked: Sequence[Asked], shown: str | None) -> int:
    """Where the one stands that is shown. It stays until it is over, whatever comes after it; else the first is."""
    return next((at for at, one in enumerate(asked) if one.request.id == shown), 0)


def group_together(asked: Iterable[Asked], conversation: str) -> list[Asked]:
    """Calls of one conversation that may be decided at once."""
    return [
        one
        for one in asked
        if one.conversation == conversation and one.request.kind == "approval" and one.request.call is not None
    ]


def what_of(request: Request) -> str:
    """What an approval would allow: "run a command", "change a file: src/x.py"."""
    if request.tool is None:
        return visible(request.title or words.Tool.UNKNOWN)
    if request.tool.startswith("mcp__"):
        # A server may call its tool anything, `bash` too: who carries it out is part of what is asked.
        return docks.Approval.use(one_line(request.tool, HEADING_CHARACTERS))
    kind = kind_of(request.tool)
    if kind in ("edit", "write", "patch"):
        thing = one_line(object_of(request.tool, request.input), HEADING_CHARACTERS)
        return f"{docks.Approval.KINDS[kind]}: {thing}" if thing else docks.Approval.KINDS[kind]
    return docks.Approval.KINDS.get(kind) or docks.Approval.use(one_line(request.tool, HEADING_CHARACTERS))


def heading_of(asked: Asked) -> str:
    request = asked.request
    match request.kind:
        case "approval" if request.tool is None:
            return visible(request.title or docks.Approval.SPEND_LABEL)
        case "approval":
            return docks.Approval.asks(asked.agent, what_of(request))
        case "question":
            return docks.Question.asks(asked.agent)
        case "plan":
            return docks.PlanRequest.asks(asked.agent)


def line_of(request: Request, agent: str) -> str:
    """Who wants what, in one line of a list."""
    match request.kind:
        case "approval" if request.tool is None:
            return visible(request.title or docks.Approval.SPEND_LABEL)
        case "approval":
            return (
                f"{agent}: {visible(request.title)}" if request.title else docks.Approval.asks(agent, what_of(request))
            )
        case "question":
            return f"{agent}: {visible(request.questions[0].question) if request.questions else docks.Question.LABEL}"
        case "plan":
            return docks.PlanRequest.asks(agent)


def as_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def wider_scopes(request: Request) -> list[Scope]:
    """Where a lasting yes may hold, the narrowest first."""
    return sorted((scope for scope in request.scopes if scope != "once"), key=lambda scope: _WIDTH[scope])


def meta_of(request: Request, now_ms: int) -> str:
    """The risk, the sandbox, and how long it waits."""
    return words.join(
        one_line(request.risk) if request.risk else None,
        docks.Approval.sandbox(visible(request.sandbox)) if request.sandbox else None,
        docks.Approval.expires(words.running_time(request.expires_at - now_ms)) if request.expires_at else None,
    )

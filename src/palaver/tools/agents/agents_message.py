"""The tool `agents_message`: an agent writes to another one and gets its answer, now or later.

Its names are those of the socket contract (`agentId`, `session`, `sessionId`). Only the conversation that the call runs in
can send; what is sent, to which conversation, and what became of it is the exchange's business. Needs no approval: whoever
is written to asks for itself, in its own conversation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from palaver.errors import CallerError, Invalid
from palaver.tools.agents.task import Known
from palaver.tools.arguments import decode, failure_of, parameters_of
from palaver.tools.base import Letter, Proposal, Reply, ToolResult, ToolSpec, Workplace
from palaver.tools.proposal import fingerprint, visible
from palaver.tools.redact import Redactor

NAME = "agents_message"
TIMEOUT_S = 300.0
LONGEST_TIMEOUT_S = 3_600.0
"""An hour: who needs longer writes with mode async."""
RESPONSE_CHARS = 30_000
"""Of an answer whose JSON would not fit into one result; the rest stands in its own conversation."""
OUTPUT_CHARS = 60_000
AGENTS_NAMED = 40
"""Of the agents there are, in the tool's own description: it is part of every model call."""
DESCRIPTION_CHARS = 120


class MessageArguments(msgspec.Struct, frozen=True, rename={"agent": "agentId"}):
    agent: Annotated[str, Meta(min_length=1, max_length=128, description="Whom to write to.")]
    content: Annotated[str, Meta(min_length=1, description="What you say. The other agent sees nothing else of this.")]
    session: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=128,
            description=(
                "Which conversation of that agent: `latest`, `create`, `latest-or-create`, or the id of one "
                "(the `sessionId` of an earlier result)."
            ),
        ),
    ] = "latest-or-create"
    mode: Annotated[
        Literal["sync", "async"],
        Meta(description="`sync` waits for the answer; with `async` it comes back later as a message to you."),
    ] = "sync"
    timeout: Annotated[
        float, Meta(gt=0, le=LONGEST_TIMEOUT_S, description="Seconds to wait for the answer in mode `sync`.")
    ] = TIMEOUT_S


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What the model is told, in the contract's names."""

    status: str
    session_id: str | None = None
    response: str | None = None
    duration_ms: int | None = None
    tool_call_count: int | None = None
    message: str | None = None


ABOUT = (
    "Write to another agent, in a conversation of its own, and get its answer. If it is busy, the message waits in its queue "
    "and the answer comes back later as a message to you; go on or end your turn meanwhile, and do not send it again."
)


class AgentsMessage:
    def __init__(self, agents: Known = lambda _: (), folder: str | None = None) -> None:
        """`agents` is asked each time: agents come and go while a server runs."""
        self._agents = agents
        self._folder = folder

    def within(self, folder: Path) -> "AgentsMessage":
        """The same tool, with the agents of a folder."""
        return AgentsMessage(self._agents, str(folder))

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            name=NAME, description=f"{ABOUT}{_list_agents(self._agents(self._folder))}", parameters=PARAMETERS
        )

    def propose(self, arguments: Mapping[str, Any], root: Path) -> Proposal | ToolResult:
        try:
            asked = decode(arguments, MessageArguments)
        except CallerError as error:
            return failure_of(error)
        return Proposal(
            title=visible(f"Write to {asked.agent}: {_line(asked.content)}"),
            hash=fingerprint(NAME, arguments, root, {}),
            match=asked.agent,
            # It changes nothing by itself. Its spec does not say so, hence plan mode does not offer it.
            reads_only=True,
        )

    async def run(self, arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        try:
            asked = decode(arguments, MessageArguments)
        except CallerError as error:
            return failure_of(error)
        if place.host is None:
            return failure_of(Invalid("There are no other agents here."))
        if place.mode == "plan":
            return failure_of(Invalid("Plan mode only reads: propose writing to another agent as a step of the plan."))
        letter = Letter(
            agent=asked.agent,
            content=asked.content,
            conversation=asked.session,
            wait=asked.mode == "sync",
            timeout_s=asked.timeout,
        )
        reply = await place.host.write_to(letter, place.call)
        return _result_of(replace(reply, response=Redactor(place.environment).redact(reply.response)))


PARAMETERS = parameters_of(MessageArguments)


def _result_of(reply: Reply) -> ToolResult:
    match reply.status:
        case "complete":
            return ToolResult(ok=True, output=_complete(reply))
        case "timeout" | "queued" | "started":
            outcome = Outcome(status=reply.status, session_id=reply.conversation, message=reply.response)
            return ToolResult(ok=True, output=_json(outcome))
        case "failed" | "cancelled":
            outcome = Outcome(status=reply.status, session_id=reply.conversation)
            words = reply.response or "It was stopped before it had answered."
            return ToolResult(ok=False, output=_json(outcome), error=words)


def _complete(reply: Reply) -> str:
    whole = Outcome(
        status=reply.status,
        session_id=reply.conversation,
        response=reply.response,
        duration_ms=reply.duration_ms,
        tool_call_count=reply.tool_call_count,
    )
    text = _json(whole)
    if len(text) <= OUTPUT_CHARS:
        return text
    cut = f"{reply.response[:RESPONSE_CHARS]}\n[… the rest stands in conversation {reply.conversation}]"
    return _json(msgspec.structs.replace(whole, response=cut))


def _json(outcome: Outcome) -> str:
    return msgspec.json.encode(outcome).decode()


def _list_agents(agents: Sequence[tuple[str, str]]) -> str:
    if not agents:
        return ""
    lines = [f"- {name}: {_line(about)}" if about else f"- {name}" for name, about in agents[:AGENTS_NAMED]]
    more = [f"- and {len(agents) - AGENTS_NAMED} more"] if len(agents) > AGENTS_NAMED else []
    return "\nThe agents there are:\n" + "\n".join([*lines, *more])


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= DESCRIPTION_CHARS else f"{line[: DESCRIPTION_CHARS - 1]}…"

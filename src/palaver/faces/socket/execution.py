"""What a client asks over the socket, as commands: the same that every face makes.

Called by the connection. Holds no state; whoever may not ask is told so.
"""

from collections.abc import Sequence
from typing import Any, assert_never

import msgspec

from palaver.core.state import find_request
from palaver.errors import Gone, Invalid, NotFound
from palaver.faces.rights import FRAMES, require
from palaver.faces.server import ServerParts
from palaver.faces.socket.client_frames import (
    CancelQueuedMessage,
    Control,
    Order,
    SetSessionModel,
    TextInput,
    ToolInteractionResponse,
)
from palaver.faces.socket.interactions import SCOPES, answers_of
from palaver.people.authentication import Principal
from palaver.schema.base import Origin
from palaver.schema.commands import Answer, Command, Interrupt, RemoveQueued, ResolveRequest, SendMessage, SetParams
from palaver.schema.view import Request, Resolution

LONGEST_SPEECH_MS = 1 << 53
"""What every client can count to."""


async def carry_out(order: Order, home: str | None, who: Principal, origin: Origin, server: ServerParts) -> None:
    """On disk when it returns. `home` is the session that is meant when an order names none."""
    require(who, FRAMES[str(order.__struct_config__.tag)])
    conversation = order.session_id or home
    match order:
        case TextInput():
            if not order.text.strip():
                raise Invalid("`text`: say something.")
            command: Command = SendMessage(content=order.text, client_request_id=order.client_message_id)
        case Control():
            command = Interrupt(audio_end_ms=_audio_end_ms(order.audio_end_ms))
        case CancelQueuedMessage():
            command, conversation = RemoveQueued(item=order.message_id), _queue_of(order.message_id, server)
        case ToolInteractionResponse():
            command = await _answer(order, server)
        case SetSessionModel():
            command = SetParams(patch={"model": order.model})
        case _:
            assert_never(order)
    if conversation is None:
        raise Invalid("`sessionId`: say which session is meant.")
    accepted = await server.directory.command(conversation, command, origin)
    if isinstance(command, ResolveRequest) and not accepted.applied:
        await _hear_what_stands(conversation, command, origin, server)


def _audio_end_ms(given: float | None) -> int | None:
    if given is None:
        return None
    if not 0 <= given <= LONGEST_SPEECH_MS:
        raise Invalid("`audioEndMs` counts from the beginning of what was spoken.")
    return int(given)


def _queue_of(message: str, server: ServerParts) -> str:
    """Whatever has a queue is in memory."""
    for state in server.directory.at_work():
        if any(item.id == message for item in state.queue):
            return state.conversation
    raise NotFound("That message is not in a queue: it was delivered or removed before.")


async def _answer(order: ToolInteractionResponse, server: ServerParts) -> ResolveRequest:
    state = await server.directory.state(order.session_id)
    request = find_request(state, order.interaction_id)
    if request is None or (order.call_id and order.call_id != request.call):
        raise NotFound("No such interaction in this session.")
    given = order.action in ("approve", "submit")
    answer: dict[str, Any] = {}
    if request.kind == "question" and given:
        answer["answers"] = answers_of(request.questions, order.input)
    elif order.action == "submit":
        # Leave is only given in so many words.
        raise Invalid("`action`: this is an approval; say `approve` or `deny`.")
    elif order.input is not None:
        answer["input"] = order.input
    scope = SCOPES[order.approval_scope or "once"]
    if given and request.kind == "approval" and scope != "once":
        answer.update(scope=scope, offer=_widest(request))
    return ResolveRequest(request=request.id, verdict="allow" if given else "deny", text=order.reason or None, **answer)


async def _hear_what_stands(conversation: str, given: ResolveRequest, origin: Origin, server: ServerParts) -> None:
    """The first answer stands. Raises Gone for every other; the same one, said again over the same socket, is no other."""
    request = find_request(await server.directory.state(conversation, tail=0), given.request)
    recorded = request.resolution if request else None
    if recorded is None or recorded.status != "answered":
        raise Gone("This interaction is over: it has expired or was called off. Your answer had no effect.")
    if origin.human_token and given.scope in ("agent", "project"):
        # It was recorded as far as this token's yes reaches.
        given = msgspec.structs.replace(given, scope=recorded.scope)
    if recorded.by is None or recorded.by.client != origin.client or _words_of(recorded) != _words_of(given):
        raise Gone("This interaction was answered before, and that answer stands. Yours had no effect.")


def _words_of(answer: ResolveRequest | Resolution) -> tuple[object, ...]:
    # From a snapshot they come as plain data.
    answers = msgspec.convert(answer.answers, tuple[Answer, ...], from_attributes=True)
    return answer.verdict, answer.then, answer.scope, answer.offer, answers, answer.text, answer.input


def _widest(request: Request) -> int:
    """This contract has one word for a lasting yes; it means the tool, or a command's program: as much as is offered."""
    offers: Sequence[object] = request.offers
    return max(0, len(offers) - 1)

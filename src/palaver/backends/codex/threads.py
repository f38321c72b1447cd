"""Which of Codex's own threads a turn goes on with: the one that our log names, a fork of it, or a new one.

Used by the backend. The log is the truth: it says which thread wrote the last part and up to which of Codex's turns. A thread
that has gone on beyond that (an edited or branched conversation, a turn that was stopped) is forked where the log says; one
that Codex no longer knows is begun anew with the whole record.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from palaver.backends.base import Turn
from palaver.backends.codex.events import NAME
from palaver.backends.codex.modes import Conduct
from palaver.backends.codex.process import AppServer, Json, Refused, Thread
from palaver.context.handover import handover
from palaver.journal import Journal
from palaver.schema.view import Message
from palaver.tools.base import ToolSpec

logger = Journal(__name__)

_LATEST = {"limit": 1, "sortDirection": "desc", "itemsView": "notLoaded"}
_NOBODY = ""
"""No backend has this name: what it is told is everything."""


@dataclass(frozen=True, slots=True)
class Opened:
    thread: Thread
    record: str
    """What it has not seen, to be told before the person's message."""


async def open_thread(server: AppServer, turn: Turn, conduct: Conduct, tools: Sequence[ToolSpec] = ()) -> Opened:
    """`tools` are what a new thread is offered; one that goes on has kept them."""
    await server.let_go_of_idle()
    told = handover(turn.state, NAME, turn.id, turn.quoting)
    if told.session is None:
        return Opened(await _start(server, conduct, tools), told.record)
    if _has_edited_message(turn, told.session):
        return Opened(await _start(server, conduct, tools), handover(turn.state, _NOBODY, turn.id, turn.quoting).record)
    try:
        thread = _live(server, told.session) or await _resume(server, told.session, conduct)
        place = _place(turn, told.session)
        if _went_on(thread, place, turn.conversation):
            thread = await _fork(server, thread, place, conduct)
        return Opened(thread, told.record)
    except Refused as refused:
        logger.warning(
            "codex cannot go on with its thread; it is told all of it", thread=told.session, why=str(refused)
        )
        return Opened(await _start(server, conduct, tools), handover(turn.state, _NOBODY, turn.id, turn.quoting).record)


def _live(server: AppServer, session: str) -> Thread | None:
    """Put last: the order is that of use."""
    thread = server.threads.pop(session, None)
    if thread is not None:
        server.threads[session] = thread
    return thread


def _went_on(thread: Thread, place: Mapping[str, Any], conversation: str) -> bool:
    """Whether the thread holds another history than ours. Marks of an import name no turn: then it is taken as it is."""
    elsewhere = place.get("conversation") not in (None, conversation) or thread.inbox is not None
    return elsewhere or (place.get("turn") is not None and thread.last_turn not in (None, place["turn"]))


def _has_edited_message(turn: Turn, session: str) -> bool:
    """Whether a message was edited since the thread wrote its last part: it would go on from the old words."""
    last = _last_own(turn, session)
    return last is not None and any(one.edited and one.seq < last.seq < one.updated_seq for one in turn.history)


def _place(turn: Turn, session: str) -> Mapping[str, Any]:
    last = _last_own(turn, session)
    return last.data if last is not None and isinstance(last.data, dict) else {}


def _last_own(turn: Turn, session: str) -> Message | None:
    for message in reversed(turn.history):
        data = message.data
        if message.turn != turn.id and isinstance(data, dict) and data.get("session") == session:
            return message
    return None


async def _start(server: AppServer, conduct: Conduct, tools: Sequence[ToolSpec]) -> Thread:
    ours = [
        {"type": "function", "name": tool.name, "description": tool.description, "inputSchema": tool.parameters}
        for tool in tools
    ]
    result = await server.call("thread/start", {**conduct.of_thread(), **({"dynamicTools": ours} if ours else {})})
    # Nothing is spent yet.
    return _thread_of(server, result, conduct, last_turn=None, total={})


async def _resume(server: AppServer, session: str, conduct: Conduct) -> Thread:
    # Known before it is asked for: Codex tells what it had used right after its answer.
    thread = server.threads[session] = Thread(session)
    asked = {"threadId": session, "excludeTurns": True, "initialTurnsPage": _LATEST, **conduct.of_thread()}
    try:
        result = await server.call("thread/resume", asked)
    except BaseException:
        del server.threads[session]
        raise
    match result:
        case {"initialTurnsPage": {"data": [{"id": str(latest)}, *_]}}:
            thread.last_turn = latest
        case _:
            pass
    return _thread_of(server, result, conduct, last_turn=thread.last_turn, total=thread.total)


async def _fork(server: AppServer, thread: Thread, place: Mapping[str, Any], conduct: Conduct) -> Thread:
    asked: Json = {"threadId": thread.id, "excludeTurns": True, **conduct.of_thread()}
    if place.get("turn"):
        asked["lastTurnId"] = place["turn"]
    result = await server.call("thread/fork", asked)
    return _thread_of(server, result, conduct, last_turn=place.get("turn"), total=None)


def _thread_of(
    server: AppServer, result: Json, conduct: Conduct, *, last_turn: str | None, total: Json | None
) -> Thread:
    match result:
        case {"thread": {"id": str(name)}}:
            thread = server.threads.setdefault(name, Thread(name))
        case _:
            raise Refused("thread", 0, "Codex did not say which thread it opened.")
    thread.last_turn = last_turn
    thread.total = total
    thread.settings = conduct
    model = result.get("model")
    thread.model = model if isinstance(model, str) else None
    return thread

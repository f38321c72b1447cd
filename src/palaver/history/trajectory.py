"""A conversation as a trajectory document, and back: the JSON that other chat programs keep beside a project.

Used by the writer of `<project>/.palaver/trajectories`, by export and import, and by the face that speaks of chats. Pure.
Messages have the OpenAI shape, so a tool's result is a message of its own. What that shape has no place for stands under
the key `palaver`; whoever does not know the key loses nothing of what was said.

Must never: lose a signature's bytes, or trust a document (the caller decides which parameters may be taken over).
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Reversible, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import msgspec

from palaver.errors import Invalid
from palaver.history.answers import Answer, answer_json, answer_of
from palaver.history.lazy_sequence import LazySequence
from palaver.history.parts import KEY, MESSAGE_KEYS, Json, blocks_of, integer, own, parts_of, text_of, unknown_data
from palaver.schema.view import Knowledge, Message, Role, State, TextBlock

VERSION = 1
AWAITED = 256
"""Messages that may stand between a call and its result: programs write it right behind."""

_ROLES: Mapping[str, Role] = {
    "user": "user",
    "system": "system",
    "developer": "system",
    "plain_text": "system",
    "cd_instruction": "system",
    "event": "event",
    "plan": "plan",
    "summary": "summary",
}
"""Any other role (a context file, a report) becomes an event of that kind: shown to the agent, folded for people."""
_RESULT_ROLES = frozenset({"tool", "diff"})

_FRAME = frozenset(
    {"id", "title", "model", "mode", "tool_use", "agent", "created_at", "updated_at", "messages", "draft", KEY}
    | {"parent_id", "link_type", "root_chat_id"}
)
"""Names in the document that are no parameters."""
DEFAULT_TOOL_USE = "agent"


@dataclass(frozen=True, slots=True)
class Trajectory:
    """What a document says of a conversation."""

    id: str
    title: str
    agent: str | None
    params: Json
    messages: Sequence[Message]
    created_at: int | None = None
    draft: str = ""


# -- out


def document_of(state: State, unknown: Mapping[str, Any] | None = None) -> Json:
    """The document of a conversation whose messages are all there. `unknown` holds what else its file said."""
    params = {name: value for name, value in state.params.items() if name not in _FRAME - {"model", "mode", "tool_use"}}
    document: Json = {
        "id": state.conversation,
        "title": state.title,
        "model": state.params.get("model") or _latest_model(state.messages) or "",
        "mode": state.params.get("mode") or "ask",
        "tool_use": state.params.get("tool_use") or DEFAULT_TOOL_USE,
        "agent": state.agent,
        "created_at": moment(state.created_at),
        "updated_at": moment(state.updated_at),
        "messages": [shown for message in state.messages for shown in messages_json(message)],
        **params,
        KEY: {"version": VERSION, "params": sorted(params)},
    }
    if state.parent is not None:
        document |= {
            "parent_id": state.parent.conversation,
            "link_type": state.parent.kind,
            "root_chat_id": state.parent.root,
        }
    if state.draft:
        document["draft"] = state.draft
    return {**(unknown or {}), **document}


def unknown_keys(document: Mapping[str, Any]) -> Json:
    """What somebody else wrote into a document of ours: all that is neither the frame nor a parameter we put there."""
    return {name: value for name, value in document.items() if name not in _FRAME and name not in _our_params(document)}


def keep_message_keys(document: Json, before: Mapping[str, Any]) -> None:
    """Carry over what somebody else wrote into the messages of the document that this one replaces."""
    known = before.get("messages")
    by_id = {one.get("message_id"): one for one in known if isinstance(one, dict)} if isinstance(known, list) else {}
    for message in document["messages"]:
        earlier = by_id.get(message["message_id"], {})
        for name, value in earlier.items():
            if name not in MESSAGE_KEYS:
                message.setdefault(name, value)


def messages_json(message: Message) -> Iterator[Json]:
    """A message and the results of its calls. An attempt that was taken back is left out."""
    if message.status == "superseded":
        return
    shown: Json = {"message_id": message.id, "role": message.role}
    results: list[Json] = []
    if message.role == "assistant":
        fields, results = answer_json(message)
        shown |= fields
    else:
        shown["content"] = parts_of(message.blocks)
    if message.event_kind:
        shown["event_kind"] = message.event_kind
    if message.hidden:
        shown["hidden"] = True
    shown |= _unknown_fields(message)
    extra = {**shown.pop(KEY, {}), **_extra(message)}
    yield {**shown, KEY: extra} if extra else shown
    yield from results


def _extra(message: Message) -> Json:
    extra: Json = {"ts": message.ts} if message.ts else {}
    if message.agent:
        extra["agent"] = message.agent
    if message.model:
        extra["model"] = message.model
    if message.knowledge:
        extra["knowledge"] = msgspec.to_builtins(message.knowledge)
    return extra


def _unknown_fields(message: Message) -> Json:
    kept = own(message.data, "trajectory")
    return {name: value for name, value in kept.items() if name not in MESSAGE_KEYS}


def _latest_model(messages: Sequence[Message]) -> str | None:
    return next((message.model for message in reversed(messages) if message.model), None)


def moment(ts_ms: int) -> str:
    """A time as documents write it."""
    return datetime.fromtimestamp(ts_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# -- in


def trajectory_of(document: Any) -> Trajectory:
    """Raises Invalid in words."""
    shown = message_list(document)
    title, agent, draft = document.get("title"), document.get("agent"), document.get("draft")
    return Trajectory(
        id=str(document.get("id") or ""),
        title=title if isinstance(title, str) else "",
        agent=agent if isinstance(agent, str) and agent else None,
        params=_params(document),
        messages=messages_of(shown),
        created_at=_read(document.get("created_at")),
        draft=draft if isinstance(draft, str) else "",
    )


def message_list(document: Any) -> Sequence[Any]:
    """Raises Invalid in words."""
    shown = document.get("messages") if isinstance(document, dict) else None
    if not isinstance(shown, list | LazySequence):
        raise Invalid("This is no trajectory: a trajectory is a JSON object with a list of `messages`.")
    return shown


def messages_of(shown: Sequence[Any]) -> Sequence[Message]:
    """Messages as they stood in a document; every call has its result with it. Those of a lazy document are lazy too."""
    if not isinstance(shown, LazySequence):
        return tuple(walk_messages(shown))
    return LazySequence(sum(1 for _ in walk_messages(shown)), lambda skip: islice(walk_messages(shown), skip, None))


def walk_messages(shown: Iterable[Any]) -> Iterator[Message]:
    """Each as soon as its calls have their results, or `AWAITED` others came after it. Raises Invalid."""
    found: deque[Answer | Message] = deque()
    for place, one in enumerate(shown):
        if not isinstance(one, dict) or not isinstance(one.get("role"), str):
            raise Invalid(f"Message {place + 1} of the trajectory is no object with a `role`.")
        if one["role"] in _RESULT_ROLES:
            if not _attach_result(found, one):
                found.append(_person_message(one, place))
        elif one["role"] == "assistant":
            found.append(answer_of(one, place))
        else:
            found.append(_person_message(one, place))
        while found and (len(found) > AWAITED or not (isinstance(found[0], Answer) and found[0].waits)):
            yield _finish(found.popleft())
    yield from map(_finish, found)


def _finish(one: Answer | Message) -> Message:
    return one.message() if isinstance(one, Answer) else one


def _attach_result(found: Reversible[Answer | Message], shown: Json) -> bool:
    """Providers use an id again, so the latest call of that id that still waits is the one."""
    call = shown.get("tool_call_id")
    return any(isinstance(one, Answer) and one.take_result(call, shown) for one in reversed(found))


def _person_message(shown: Json, place: int) -> Message:
    word = shown["role"]
    role: Role = _ROLES.get(word, "event")
    kind = shown.get("event_kind") if role == "event" else None
    extra = own(shown, KEY)
    blocks = blocks_of(shown.get("content"))
    return Message(
        id=str(shown.get("message_id") or f"message-{place + 1}"),
        role=role,
        seq=place + 1,
        updated_seq=place + 1,
        ts=integer(extra.get("ts")),
        blocks=blocks or (TextBlock(index=0, text=""),),
        hidden=shown.get("hidden") is True or word not in _ROLES,
        event_kind=(str(kind) if kind else word) if role == "event" else None,
        knowledge=_knowledge(extra),
        agent=text_of(extra.get("agent")),
        data=unknown_data(shown),
    )


def _knowledge(extra: Json) -> Knowledge | None:
    try:
        return msgspec.convert(extra["knowledge"], Knowledge) if "knowledge" in extra else None
    except msgspec.ValidationError:
        return None


def _our_params(document: Mapping[str, Any]) -> frozenset[str]:
    """The parameters among a document's names; in one that is not ours nobody can tell."""
    named = own(document, KEY).get("params")
    return frozenset(name for name in named if isinstance(name, str)) if isinstance(named, list) else frozenset()


def _params(document: Json) -> Json:
    """Ours are named. Of another program's document all that is not the frame may be one; its model and mode are its own."""
    if KEY in document:
        return {name: document[name] for name in sorted(_our_params(document)) if document.get(name) is not None}
    return {name: value for name, value in document.items() if name not in _FRAME and value is not None}


def _read(written: Any) -> int | None:
    match written:
        case bool():
            return None
        case int() | float():
            # Seconds or milliseconds: no conversation is older than computers that keep them.
            return int(written if written > 1e11 else written * 1000)
        case str():
            try:
                parsed = datetime.fromisoformat(written)
            except ValueError:
                return None
            return int((parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp() * 1000)
        case _:
            return None

"""What a client of this face may ask for, and the commands of the core that it means. Pure.

Both spellings of a type are taken (`user_message`, `UserMessage`), and both forms of a decision. What changes the history waits
while the agent works; an index counts the messages as this face shows them, at the moment it is carried out. What fills a chat
from elsewhere has first to be found, which `command_route.py` does.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal, TypedDict, assert_never

import msgspec
from msgspec import Struct

from palaver.core.openai_index import owner_of
from palaver.core.params import MODE_WORDS, MODES
from palaver.core.state import OPEN_TOOL, find_call, open_requests
from palaver.errors import Invalid
from palaver.faces.http.body import decode
from palaver.schema.base import Id
from palaver.schema.commands import (
    Answer,
    ClearDraft,
    Command,
    DecideTools,
    EditMessage,
    Fill,
    Interrupt,
    Regenerate,
    RemoveMessage,
    ResolveRequest,
    RetryFrom,
    ReturnToolResult,
    SendMessage,
    SetDraft,
    SetParams,
    ToolDecision,
    TruncateMessages,
    UpdateConversation,
)
from palaver.schema.content import Content, ImagePart, ImageUrl, Part, as_content, plain_text
from palaver.schema.view import State

Status = Literal["accepted", "applied", "aborted"]

_WORD_BEGINS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class _Asked(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    client_request_id: Id | None = None
    """Made by the server where a client gives none: see `command_route.py`."""
    priority: bool = False


class _Said(_Asked, frozen=True, kw_only=True):
    content: str | Content
    attachments: tuple[Any, ...] = ()


class AskUserMessage(_Said, frozen=True, kw_only=True, tag="user_message"):
    pass


class AskRetryFromIndex(_Said, frozen=True, kw_only=True, tag="retry_from_index"):
    index: int


class AskRegenerate(_Asked, frozen=True, kw_only=True, tag="regenerate"):
    pass


class AskUpdateMessage(_Said, frozen=True, kw_only=True, tag="update_message"):
    message_id: Id
    regenerate: bool = False


class AskRemoveMessage(_Asked, frozen=True, kw_only=True, tag="remove_message"):
    message_id: Id
    regenerate: bool = False


class AskTruncateMessages(_Asked, frozen=True, kw_only=True, tag="truncate_messages"):
    from_index: int


class AskSetParams(_Asked, frozen=True, kw_only=True, tag="set_params"):
    patch: dict[str, Any]


class AskAbort(_Asked, frozen=True, kw_only=True, tag="abort"):
    pass


class AskApproveTools(_Asked, frozen=True, kw_only=True, tag="approve_tools"):
    tool_call_ids: tuple[Id, ...] | None = None


class AskRejectTools(_Asked, frozen=True, kw_only=True, tag="reject_tools"):
    tool_call_ids: tuple[Id, ...] | None = None


class OneDecision(Struct, frozen=True, kw_only=True):
    tool_call_id: Id
    accepted: bool


class AskToolDecision(_Asked, frozen=True, kw_only=True, tag="tool_decision"):
    tool_call_id: Id
    accepted: bool


class AskToolDecisions(_Asked, frozen=True, kw_only=True, tag="tool_decisions"):
    decisions: tuple[OneDecision, ...]


class AskIdeToolResult(_Asked, frozen=True, kw_only=True, tag="ide_tool_result"):
    tool_call_id: Id
    content: str
    tool_failed: bool = False


class AskBranchFromChat(_Asked, frozen=True, kw_only=True, tag="branch_from_chat"):
    source_chat_id: Id
    up_to_message_id: Id | None = None


class AskRestoreFromTrajectory(_Asked, frozen=True, kw_only=True, tag="restore_from_trajectory"):
    trajectory_id: Id | None = None
    messages: tuple[Any, ...] | None = None


class AskRestoreMessages(_Asked, frozen=True, kw_only=True, tag="restore_messages"):
    trajectory_id: Id | None = None
    messages: tuple[Any, ...] | None = None


class AskSetDraft(_Asked, frozen=True, kw_only=True, tag="set_draft"):
    text: str


class AskClearDraft(_Asked, frozen=True, kw_only=True, tag="clear_draft"):
    pass


Filled = AskBranchFromChat | AskRestoreFromTrajectory | AskRestoreMessages
"""What fills a chat from elsewhere."""

OfMessages = AskUpdateMessage | AskRemoveMessage
"""What names a message."""

Translated = (
    AskUserMessage
    | AskRetryFromIndex
    | AskRegenerate
    | AskUpdateMessage
    | AskRemoveMessage
    | AskTruncateMessages
    | AskSetParams
    | AskAbort
    | AskApproveTools
    | AskRejectTools
    | AskToolDecision
    | AskToolDecisions
    | AskIdeToolResult
    | AskSetDraft
    | AskClearDraft
)
Asked = Translated | Filled


class Patience(TypedDict):
    client_request_id: str | None
    when_busy: Literal["queue"]
    priority: bool


@dataclass(frozen=True, slots=True)
class Read:
    """What a body asks for, or why it asks for nothing; with the request id, if there is one, for the ack."""

    asked: Asked | Invalid
    client_request_id: str | None


@dataclass(frozen=True, slots=True)
class Meant:
    """The command that carries the client's request id, and one that follows it."""

    command: Command
    then: Command | None = None


_body: "msgspec.json.Decoder[dict[str, Any]]" = msgspec.json.Decoder(dict[str, Any])


def read_command(body: bytes) -> Read:
    try:
        fields = decode(body, _body)
    except Invalid as wrong:
        return Read(wrong, None)
    name = fields.get("client_request_id")
    known = name if isinstance(name, str) and name else None
    word = fields.get("type")
    if isinstance(word, str):
        fields["type"] = _WORD_BEGINS.sub("_", word).lower()
    # Many clients write what they leave out as null.
    given = {field: value for field, value in fields.items() if value is not None}
    try:
        return Read(msgspec.convert(given, Asked), known)
    except msgspec.ValidationError as wrong:
        what, _, where = str(wrong).partition(" - at ")
        return Read(Invalid(f"`{where.strip('`').removeprefix('$.') or 'body'}`: {what}."), known)


def digest_of(asked: Asked) -> str:
    """Two bodies are the same when they mean the same, whatever their spelling."""
    plain = msgspec.structs.replace(asked, client_request_id="")
    return blake2b(msgspec.json.encode(plain, order="deterministic"), digest_size=16).hexdigest()


def status_for(asked: Asked) -> Status:
    match asked:
        case AskAbort():
            return "aborted"
        case AskSetParams() | AskSetDraft() | AskClearDraft():
            return "applied"
        case _:
            return "accepted"


def fill_of(asked: Filled) -> Fill:
    """Without what it fills the chat with."""
    word = asked.__struct_config__.tag
    return Fill(messages=(), word=str(word), digest=digest_of(asked), **_patient(asked))


def meant_by(asked: Translated, state: State, *, decides: bool) -> Meant:
    """`state` has all its messages for what names one. `decides`: whoever asks may also answer. Raises Invalid."""
    request_id = asked.client_request_id
    match asked:
        case AskUserMessage():
            return Meant(_message(asked, state, decides))
        case AskRetryFromIndex():
            content = content_of(asked)
            return Meant(RetryFrom(index=asked.index, content=content, flat=True, **_patient(asked)))
        case AskRegenerate():
            return Meant(Regenerate(**_patient(asked)))
        case AskUpdateMessage():
            message, content = _own(asked.message_id, state), content_of(asked)
            return Meant(EditMessage(message=message, content=content, regenerate=asked.regenerate, **_patient(asked)))
        case AskRemoveMessage():
            message = _own(asked.message_id, state)
            return Meant(RemoveMessage(message=message, regenerate=asked.regenerate, **_patient(asked)))
        case AskTruncateMessages():
            return Meant(TruncateMessages(from_index=asked.from_index, flat=True, **_patient(asked)))
        case AskSetParams():
            return _params(asked)
        case AskAbort():
            return Meant(Interrupt(client_request_id=request_id))
        case AskApproveTools() | AskRejectTools():
            accepted = isinstance(asked, AskApproveTools)
            named = tuple(ToolDecision(call=call, accepted=accepted) for call in asked.tool_call_ids or ())
            return Meant(DecideTools(client_request_id=request_id, decisions=named, accepted=accepted))
        case AskToolDecision():
            one = ToolDecision(call=asked.tool_call_id, accepted=asked.accepted)
            return Meant(DecideTools(client_request_id=request_id, decisions=(one,)))
        case AskToolDecisions():
            if not asked.decisions:
                raise Invalid("`decisions`: decide at least one call.")
            decisions = tuple(ToolDecision(call=one.tool_call_id, accepted=one.accepted) for one in asked.decisions)
            return Meant(DecideTools(client_request_id=request_id, decisions=decisions))
        case AskIdeToolResult():
            tool = find_call(state, asked.tool_call_id)
            if tool is not None and tool.status not in OPEN_TOOL:
                raise Invalid("No tool waits for a result from the editor: this one has its result.")
            return Meant(
                ReturnToolResult(
                    client_request_id=request_id,
                    call=asked.tool_call_id,
                    content=asked.content,
                    failed=asked.tool_failed,
                )
            )
        case AskSetDraft():
            return Meant(SetDraft(client_request_id=request_id, text=asked.text))
        case AskClearDraft():
            return Meant(ClearDraft(client_request_id=request_id))
        case _:
            assert_never(asked)


def _message(asked: AskUserMessage, state: State, decides: bool) -> Command:
    content = content_of(asked)
    question = next((known for known in open_requests(state) if known.kind == "question"), None)
    text = plain_text(as_content(content))
    if question is not None and state.turn is not None and decides and text.strip():
        # This face has no other word for it: whoever is asked something answers by saying it.
        answer = Answer(question_index=0, custom_text=text)
        return ResolveRequest(client_request_id=asked.client_request_id, request=question.id, answers=(answer,))
    return SendMessage(
        client_request_id=asked.client_request_id,
        content=content,
        delivery="boundary" if asked.priority else "turn",
        priority=asked.priority,
        merge=True,
    )


def content_of(asked: _Said) -> Content:
    return (*as_content(asked.content), *(_attachment_part(one) for one in asked.attachments))


def _attachment_part(attachment: Any) -> Part:
    if isinstance(attachment, str):
        return ImagePart(image_url=ImageUrl(url=attachment))
    try:
        part: Part = msgspec.convert(attachment, Part)
    except msgspec.ValidationError:
        raise Invalid("`attachments`: each is a text or image part, or the URL of an image.") from None
    return part


def _patient(asked: _Asked) -> Patience:
    """Whatever changes the history waits for the agent on this face."""
    return {"client_request_id": asked.client_request_id, "when_busy": "queue", "priority": asked.priority}


def _own(message_id: str, state: State) -> str:
    owner = owner_of(message_id, state)
    if owner is not None and owner != message_id:
        raise Invalid("`message_id`: a tool's result belongs to its call. Change or remove the answer that made it.")
    return message_id


def _params(asked: AskSetParams) -> Meant:
    """A title and an agent are no parameters here, though they are told in the same breath."""
    patch = _in_our_words(asked.patch)
    title, agent = patch.pop("title", None), patch.pop("agent", None)
    if not all(word is None or isinstance(word, str) for word in (title, agent)):
        raise Invalid("`title` and `agent` are texts.")
    if title is None and agent is None:
        return Meant(SetParams(client_request_id=asked.client_request_id, patch=patch))
    if not patch:
        return Meant(UpdateConversation(client_request_id=asked.client_request_id, title=title, agent=agent))
    changed = UpdateConversation(title=title, agent=agent)
    return Meant(SetParams(client_request_id=asked.client_request_id, patch=patch), changed)


def _in_our_words(patch: Mapping[str, Any]) -> dict[str, Any]:
    words = dict(patch)
    mode = words.get("mode")
    if isinstance(mode, str):
        word = MODE_WORDS.get(mode.lower(), mode.lower())
        words["mode"] = word if word in MODES else mode
    return words

"""A conversation as markdown that reads well anywhere, and back from it.

Export and import call this. A comment in front of each part says what follows (`<!-- palaver: … -->`), so that a text may
hold headings of its own; a line of a text that looks like such a comment gets a backslash in front, and loses one on the way
back. Markdown of other programs is read by its headings. Pure.

Texts come back letter by letter; calls come back with name, arguments and output.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, get_args

import msgspec
from msgspec.structs import replace

from palaver.core.json_bounds import decode_json
from palaver.core.text import special_blocks
from palaver.errors import Invalid
from palaver.history import transcript
from palaver.history.parts import Json, as_json, integer, own, text_of
from palaver.schema.view import (
    Block,
    ImageBlock,
    Message,
    Role,
    State,
    TextBlock,
    ThinkingBlock,
    ToolBlock,
    ToolError,
    ToolStatus,
)

_MARK = "<!-- palaver: "
_MARK_LINE = re.compile(r"<!-- palaver: (\{.*\}) -->")
_LOOKS_LIKE_ONE = re.compile(r"^(\\*<!-- palaver: )", re.MULTILINE)
_ESCAPED = re.compile(r"^\\(\\*<!-- palaver: )", re.MULTILINE)
_FENCE_RUN = re.compile(r"^[^\S\n]*+(`{3,})", re.MULTILINE)
_FENCED = re.compile(r"^(?P<fence>`{3,})(?P<word>\w*)\n(?P<body>.*?)\n?^(?P=fence)$", re.MULTILINE | re.DOTALL)

# What other programs write above what somebody said: a heading, or a bold name with a colon.
_FOREIGN = re.compile(
    r"^(?:#{1,4}[ \t]*|\*\*)(?:\W{0,3}[ \t]*)?(?P<who>you|user|human|me|assistant|ai|model|chatgpt|claude|gpt[-\w.]*|system)"
    r"\b[ \t]*:?(?:\*\*)?[ \t]*:?[^\n]{0,60}$",
    re.MULTILINE | re.IGNORECASE,
)
_PEOPLE = frozenset({"you", "user", "human", "me"})
_ROLES: frozenset[str] = frozenset(get_args(Role))
_STATUSES: frozenset[str] = frozenset(get_args(ToolStatus))


# -- out


def write_document(state: State) -> Iterator[str]:
    """The document, a message a piece. Texts must be whole: whatever lay in a blob is in its block."""
    head = {"conversation": state.conversation, "agent": state.agent, "created_at": state.created_at}
    title = " ".join(state.title.split()) or "Conversation"
    yield f"# {title}\n\n{_mark(head)}\n"
    if state.created_at:
        yield f"\n*{transcript.when(state.created_at)}, agent {state.agent}*\n"
    for message in transcript.visible_messages(state):
        yield from write_message(message, state.agent)


def write_message(message: Message, agent: str) -> Iterator[str]:
    mark: Json = {"role": message.role}
    for name, value in (("ts", message.ts), ("agent", message.agent), ("model", message.model)):
        if value:
            mark[name] = value
    if message.event_kind:
        mark["event_kind"] = message.event_kind
    words = [transcript.speaker(message, agent), message.model or "", transcript.when(message.ts) if message.ts else ""]
    yield f"\n{_mark(mark)}\n## {transcript.MODEL_SEPARATOR.join(word for word in words if word)}\n"
    for block in message.blocks:
        special = transcript.special_of(message, block)
        if special is not None and isinstance(block, TextBlock):
            # The text itself goes into the mark, so that it comes back letter by letter.
            kept = _mark({"block": "text", "raw": block.text})
            yield f"\n{kept}\n{_escape(special_blocks.markdown(special))}\n"
        else:
            yield from _write_block(block)


def _write_block(block: Block) -> Iterator[str]:
    match block:
        case TextBlock():
            cut = {} if block.status == "done" else {"status": "interrupted"}
            yield f"\n{_mark({'block': 'text', **cut})}\n{_escape(block.text)}\n"
            if cut:
                yield f"\n{_mark({'block': 'note'})}\n*(interrupted)*\n"
        case ThinkingBlock():
            if block.text:
                thought = f"<summary>Thinking</summary>\n\n{_escape(block.text)}\n\n</details>"
                yield f"\n{_mark({'block': 'thinking'})}\n<details>{thought}\n"
        case ImageBlock():
            yield f"\n{_mark({'block': 'image', 'url': block.url})}\n*(image)*\n"
        case ToolBlock():
            yield _write_tool(block)


def _write_tool(tool: ToolBlock) -> str:
    mark: Json = {"block": "tool", "name": tool.name, "status": tool.status}
    if tool.exit_code is not None:
        mark["exit_code"] = tool.exit_code
    if tool.error is not None:
        mark["error"] = msgspec.to_builtins(tool.error)
    arguments = _fence("json", as_json(tool.input) if tool.input is not None else tool.input_text)
    pieces = [f"\n{_mark(mark)}\n**{tool.name}** ({transcript.outcome(tool)})\n", arguments]
    if tool.error is not None:
        pieces.append(f"{_mark({'block': 'note'})}\n{_escape(tool.error.message)}\n")
    if tool.output:
        pieces.append(f"{_mark({'block': 'output'})}\n{_fence('', tool.output)}")
    pieces += [f"{_mark({'block': 'note'})}\n{_fence('diff', change.diff)}" for change in tool.changes if change.diff]
    return "\n".join(pieces)


def _mark(fields: Json) -> str:
    # Two hyphens or a closing bracket would end the comment early; JSON has another spelling for both.
    body = as_json(fields).replace("--", "-\\u002d").replace(">", "\\u003e")
    return f"{_MARK}{body} -->"


def _escape(text: str) -> str:
    return _LOOKS_LIKE_ONE.sub(r"\\\1", text)


def _unescape(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)


def _fence(word: str, text: str) -> str:
    """Longer than any fence within."""
    longest = max((len(run) for run in _FENCE_RUN.findall(text)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{word}\n{_escape(text)}\n{fence}\n"


# -- in


@dataclass(frozen=True, slots=True)
class Written:
    """What a markdown document says of a conversation."""

    title: str
    agent: str | None
    created_at: int | None
    messages: tuple[Message, ...]


@dataclass(slots=True)
class _Draft:
    mark: Json
    blocks: list[Block] = field(default_factory=list[Block])


def read(text: str) -> Written:
    """Raises Invalid when nobody speaks in it."""
    text = text.removeprefix("\ufeff")
    if text.partition("\n")[0].endswith("\r"):
        text = text.replace("\r\n", "\n")  # Somebody's editor or git changed every line's end.
    title = next((line[2:].strip() for line in text.split("\n", 5)[:5] if line.startswith("# ")), "")
    pieces = list(_pieces(text))
    head: Json = next((mark for mark, _ in pieces if "conversation" in mark), {})
    messages = _read_marks(pieces) if any("role" in mark for mark, _ in pieces) else _foreign(text)
    if not messages:
        raise Invalid(
            "Nobody speaks in this markdown: there is neither a mark of ours nor a heading such as “## User” in it."
        )
    if not title or title == "Conversation":
        title = ""
    return Written(title, text_of(head.get("agent")), integer(head.get("created_at")) or None, messages)


def _pieces(text: str) -> Iterator[tuple[Json, str]]:
    """Each mark and what follows it up to the next."""
    mark: Json = {}
    lines: list[str] = []
    for line in text.split("\n"):
        found = _MARK_LINE.fullmatch(line)
        fields = _decode(found[1]) if found else None
        if fields is None:
            lines.append(line)
            continue
        yield mark, "\n".join(lines)
        mark, lines = fields, []
    yield mark, "\n".join(lines)


def _decode(text: str) -> Json | None:
    try:
        fields = decode_json(text)
    except msgspec.DecodeError:
        return None
    return fields if isinstance(fields, dict) else None


def _read_marks(pieces: list[tuple[Json, str]]) -> tuple[Message, ...]:
    drafts: list[_Draft] = []
    for mark, body in pieces:
        if mark.get("role") in _ROLES:
            drafts.append(_Draft(mark))
        elif drafts:
            # The line feed behind a text is ours.
            _take(drafts[-1].blocks, mark, body.removesuffix("\n"))
    return tuple(_message(place, draft) for place, draft in enumerate(drafts))


def _take(blocks: list[Block], mark: Json, body: str) -> None:
    index = len(blocks)
    match mark.get("block"):
        case "text":
            cut = mark.get("status") == "interrupted"
            raw = mark.get("raw")
            text = raw if isinstance(raw, str) else _unescape(body)
            blocks.append(TextBlock(index=index, text=text, status="interrupted" if cut else "done"))
        case "thinking":
            inner = body.partition("</summary>")[2].rpartition("</details>")[0].strip("\n")
            blocks.append(ThinkingBlock(index=index, text=_unescape(inner)))
        case "image" if isinstance(mark.get("url"), str):
            blocks.append(ImageBlock(index=index, url=mark["url"]))
        case "tool":
            blocks.append(_tool(index, mark, _in_fence(body)))
        case "output" if blocks and isinstance(blocks[-1], ToolBlock):
            blocks[-1] = replace(blocks[-1], output=_in_fence(body))
        case _:
            pass


def _tool(index: int, mark: Json, arguments: str) -> ToolBlock:
    status = mark.get("status")
    known: ToolStatus = status if status in _STATUSES else "ok"
    error = own(mark, "error")
    decoded: Any
    try:
        decoded = decode_json(arguments or "{}")
    except msgspec.DecodeError:
        decoded = arguments
    exit_code = mark.get("exit_code")
    return ToolBlock(
        index=index,
        call=f"call-{index}",
        name=text_of(mark.get("name")) or "unnamed",
        status=known,
        input=decoded,
        error=ToolError(code=str(error.get("code")), message=str(error.get("message"))) if error else None,
        exit_code=integer(exit_code) if exit_code is not None else None,
    )


def _in_fence(body: str) -> str:
    found = _FENCED.search(body)
    return _unescape(found["body"]) if found else ""


def _message(place: int, draft: _Draft) -> Message:
    mark = draft.mark
    cut = any(isinstance(block, TextBlock) and block.status == "interrupted" for block in draft.blocks)
    return Message(
        id=f"message-{place + 1}",
        role=mark["role"],
        seq=place + 1,
        updated_seq=place + 1,
        ts=integer(mark.get("ts")),
        blocks=tuple(draft.blocks),
        status="interrupted" if cut else "done",
        agent=text_of(mark.get("agent")),
        model=text_of(mark.get("model")),
        event_kind=text_of(mark.get("event_kind")),
    )


def _foreign(text: str) -> tuple[Message, ...]:
    headings = list(_FOREIGN.finditer(text))
    messages: list[Message] = []
    for place, heading in enumerate(headings):
        until = headings[place + 1].start() if place + 1 < len(headings) else len(text)
        body = text[heading.end() : until].strip().removesuffix("---").rstrip()
        who = heading["who"].lower()
        role: Role = "user" if who in _PEOPLE else "system" if who == "system" else "assistant"
        if body:
            seq = len(messages) + 1
            blocks = (TextBlock(index=0, text=body),)
            messages.append(Message(id=f"message-{seq}", role=role, seq=seq, updated_seq=seq, ts=0, blocks=blocks))
    return tuple(messages)

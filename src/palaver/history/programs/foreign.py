"""A conversation that another program kept, in our own words: what every reader makes, what is sent to a server.

Made by the readers beside this file; taken over by `conversation/taking.py`. Pure. `session` is the program's own id of the
conversation: with it the program can go on where it stopped, and a second import knows it again.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, get_args

import msgspec
from msgspec.structs import replace

from palaver.core.bounded_json import BeyondBounds, check_bounds
from palaver.history.answers import NO_RESULT
from palaver.schema.base import Shown, Usage
from palaver.schema.view import (
    Block,
    ImageBlock,
    Message,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolBlock,
    ToolError,
    ToolStatus,
)

Program = Literal["claude", "codex", "pi", "refact"]
PROGRAMS: tuple[Program, ...] = get_args(Program)

TITLE_CHARS = 100
"""Of a title made from the first thing that was said: what a list shows of it."""
END_MS = 4_102_444_800_000
"""The year 2100: a later time is no time."""
ERROR_CHARS = 4_000
"""What failed is said in the error; a longer text is output, which may lie beside the log."""

# An escaped half of a character without its other half. An even number of backslashes before it escapes nothing.
_HALF = re.compile(
    rb"(?<!\\)((?:\\\\)*)(?:\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F][0-9a-fA-F]{2})"
)


class ForeignConversation(Shown):
    program: Program
    session: str
    messages: tuple[Message, ...]
    title: str = ""
    project: str | None = None
    """The folder the program worked in."""
    created_at: int = 0
    updated_at: int = 0
    skipped_lines: int = 0
    """Lines of the file that could not be read."""
    left_out: dict[str, int] = {}
    """What was in the file and is no part of the conversation, in words, and how many of it."""
    of_another: str | None = None
    """Why the file is no conversation of a person's: it belongs to a subagent, or was driven from here."""


@dataclass(slots=True)
class Draft:
    """A message while its file is still being read."""

    role: Role
    ts: int
    blocks: list[Block] = field(default_factory=list[Block])
    key: str = ""
    model: str | None = None
    finish_reason: str | None = None
    usage: Usage | None = None
    interrupted: bool = False
    hidden: bool = False


class Telling:
    """Collects messages in their order, and gives each result to its call."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.drafts: list[Draft] = []
        self.left_out: Counter[str] = Counter()
        self.skipped_lines = 0
        self._calls: dict[str, tuple[Draft, int]] = {}

    def say(self, role: Role, ts: int, blocks: Iterable[Block], *, hidden: bool = False) -> None:
        draft = Draft(role, ts, list(blocks), hidden=hidden)
        if any(not isinstance(block, TextBlock) or block.text.strip() for block in draft.blocks):
            self.drafts.append(draft)

    def answer(self, ts: int, key: str, model: str | None) -> Draft:
        """The answer under way if it is the same one, else the next."""
        last = self.drafts[-1] if self.drafts else None
        if last is None or last.role != "assistant" or last.key != key:
            last = Draft("assistant", ts, key=key)
            self.drafts.append(last)
        last.model = model or last.model
        return last

    def call(self, draft: Draft, call: str, name: str, asked: Any) -> None:
        self._calls[call] = (draft, len(draft.blocks))
        draft.blocks.append(
            ToolBlock(index=0, call=call, name=name, status="called", input=asked, provider={"id": call})
        )

    def tool(self, call: str) -> ToolBlock | None:
        if (place := self._calls.get(call)) is None:
            return None
        block = place[0].blocks[place[1]]
        return block if isinstance(block, ToolBlock) else None

    def change(self, call: str, **fields: Any) -> None:
        if (tool := self.tool(call)) is not None:
            draft, place = self._calls[call]
            draft.blocks[place] = replace(tool, **fields)

    def result(
        self,
        call: str,
        text: str,
        status: ToolStatus,
        images: Iterable[ImageBlock] = (),
        ts: int | None = None,
        exit_code: int | None = None,
    ) -> None:
        """What a call came to. The result of a call that nobody made is left out, and said."""
        if self.tool(call) is None:
            self.left_out["results without a call"] += 1
            return
        error, output = None, text
        if status == "error" and exit_code is not None:
            output = text.removeprefix(f"Exit code {exit_code}").removeprefix("\n")
            error = ToolError(code="tool_error", message=f"Exit code {exit_code}")
        elif status != "ok" and len(text) <= ERROR_CHARS:
            code = {"denied": "tool_denied", "interrupted": "tool_interrupted"}.get(status, "tool_error")
            error, output = ToolError(code=code, message=text or "It failed."), ""
        elif status != "ok":
            error = ToolError(code="tool_error", message="It failed.")
        self.change(call, status=status, output=output, error=error, exit_code=exit_code, finished_at=ts)
        self._calls[call][0].blocks.extend(images)

    def interrupt(self) -> None:
        """The person stopped the answer that came last."""
        for draft in reversed(self.drafts):
            if draft.role == "assistant":
                draft.interrupted = True
                return

    def told(
        self, session: str, *, title: str = "", project: str | None = None, of_another: str | None = None
    ) -> ForeignConversation:
        drafts = [draft for draft in self.drafts if draft.blocks]
        times = [draft.ts for draft in drafts if draft.ts]
        return ForeignConversation(
            program=self._program,
            session=session,
            messages=tuple(_message(place, draft, self._program) for place, draft in enumerate(drafts, 1)),
            title=title.strip() or first_words(drafts),
            project=project,
            created_at=min(times, default=0),
            updated_at=max(times, default=0),
            skipped_lines=self.skipped_lines,
            left_out=dict(self.left_out),
            of_another=of_another,
        )


def _message(place: int, draft: Draft, program: Program) -> Message:
    answer = draft.role == "assistant"
    return Message(
        id=f"message-{place}",
        role=draft.role,
        seq=place,
        updated_seq=place,
        ts=draft.ts,
        blocks=tuple(_settled(index, block) for index, block in enumerate(draft.blocks)),
        status="interrupted" if draft.interrupted else "done",
        agent=program if answer else None,
        model=draft.model if answer else None,
        finish_reason=draft.finish_reason,
        usage=draft.usage,
        hidden=draft.hidden,
    )


def _settled(index: int, block: Block) -> Block:
    if isinstance(block, ToolBlock) and block.status == "called":
        return replace(block, index=index, status="interrupted", error=NO_RESULT)
    return replace(block, index=index)


def first_words(drafts: Iterable[Draft]) -> str:
    for draft in drafts:
        if draft.role == "user" and not draft.hidden:
            for block in draft.blocks:
                if isinstance(block, TextBlock) and (line := block.text.strip().partition("\n")[0].strip()):
                    return line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1] + "…"
    return ""


# -- what the files have in common


def objects(lines: Iterable[bytes], decoder: msgspec.json.Decoder[Any], telling: Telling) -> Iterator[Any]:
    """Each line, decoded. One that cannot be read is counted; the others are the conversation."""
    for line in lines:
        if not line.strip(b" \t\r\n\0"):
            continue
        try:
            check_bounds(line)
        except BeyondBounds:
            telling.skipped_lines += 1
            continue
        try:
            yield decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            if (mended := _mended(line, decoder)) is not None:
                yield mended
            else:
                telling.skipped_lines += 1


def _mended(line: bytes, decoder: msgspec.json.Decoder[Any]) -> Any:
    """Programs that count in halves of characters cut some in two. That is no reason to lose what was said."""
    whole = _HALF.sub(rb"\1\\ufffd", line)
    try:
        return decoder.decode(whole) if whole != line else None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def on_path(parents: dict[str, str | None], order: dict[str, int], leaf: str) -> set[str]:
    """The ids from a leaf back to the first. Where a parent is missing the path goes on with what stood before it."""
    before = list(order)
    path: set[str] = set()
    here: str | None = leaf
    while here is not None and here not in path:
        path.add(here)
        parent = parents.get(here)
        if parent is not None and parent not in order:
            place = order[here]
            parent = before[place - 1] if place else None
        here = parent
    return path


def milliseconds(written: Any) -> int:
    """A time as these files write it; 0 when it says nothing that could be one."""
    found = _milliseconds(written)
    return found if 0 < found < END_MS else 0


def _milliseconds(written: Any) -> int:
    match written:
        case str():
            try:
                parsed = datetime.fromisoformat(written)
            except ValueError:
                return 0
            return int((parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp() * 1000)
        case bool():
            return 0
        case int() | float() if abs(written) < END_MS:
            # Seconds or milliseconds: none of these programs is older than computers that keep them.
            return int(written if written > 1e11 else written * 1000)
        case _:
            return 0


def text(said: str) -> TextBlock:
    return TextBlock(index=0, text=said)


def thought(said: str, signature: str | None = None, provider: Any = None, *, redacted: bool = False) -> ThinkingBlock:
    return ThinkingBlock(index=0, text=said, signature=signature, provider=provider, redacted=redacted)


def image(media_type: Any, data: Any) -> ImageBlock | None:
    if isinstance(media_type, str) and isinstance(data, str):
        return ImageBlock(index=0, url=f"data:{media_type};base64,{data}")
    return None

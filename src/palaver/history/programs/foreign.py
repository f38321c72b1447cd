"""A conversation that another program kept, in our own words: what every reader makes, what is sent to a server.

Made by the readers beside this file; imported by `conversation/imported_conversation.py`. Pure. `session` is the program's own
id of the conversation: with it the program can go on where it stopped, and a second import knows it again.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, get_args

import msgspec
from msgspec.structs import replace

from palaver.core.json_bounds import BeyondBounds, check_bounds
from palaver.history.answers import NO_RESULT
from palaver.history.lazy_sequence import LazySequence
from palaver.history.programs.drafts import Draft, DraftStore
from palaver.history.programs.scratch import Scratch
from palaver.schema.base import Shown
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
ANSWER_BYTES = 4 << 20
"""Of the lines of one answer, which is in memory while they come: what follows is an answer of its own."""
ERROR_CHARS = 4_000
"""What failed is said in the error; a longer text is output, which may lie beside the log."""

# An escaped half of a character without its other half. An even number of backslashes before it escapes nothing.
_HALF = re.compile(
    rb"(?<!\\)((?:\\\\)*)(?:\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F][0-9a-fA-F]{2})"
)


class ForeignConversation(Shown):
    program: Program
    session: str
    messages: Sequence[Message]
    """May be read from a file anew each time: walk it, and hold as little of it as possible."""
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


class Telling:
    """Collects messages in their order, and gives each result to its call."""

    def __init__(self, program: Program, scratch: Scratch | None = None) -> None:
        self._program = program
        self.drafts = DraftStore(scratch or Scratch())
        self.left_out: Counter[str] = Counter()
        self.skipped_lines = 0
        self._draft_bytes = 0
        """Of the lines since the last draft began."""

    def weigh(self, line_bytes: int) -> None:
        """Told of each line before what it says is taken."""
        self._draft_bytes += line_bytes

    def say(self, role: Role, ts: int, blocks: Iterable[Block], *, hidden: bool = False) -> None:
        draft = Draft(role, ts, list(blocks), hidden=hidden)
        if any(not isinstance(block, TextBlock) or block.text.strip() for block in draft.blocks):
            self._begin(draft)

    def answer(self, ts: int, key: str, model: str | None) -> Draft:
        """The answer under way if it is the same one, else the next."""
        last = self.drafts.last
        if last is None or last.role != "assistant" or last.key != key or self._draft_bytes > ANSWER_BYTES:
            last = Draft("assistant", ts, key=key)
            self._begin(last)
        last.model = model or last.model
        return last

    def _begin(self, draft: Draft) -> None:
        self.drafts.append(draft)
        self._draft_bytes = 0

    def call(self, draft: Draft, call: str, name: str, asked: Any) -> None:
        """In the answer that `answer` just gave."""
        self.drafts.note_call(call, len(draft.blocks))
        draft.blocks.append(
            ToolBlock(index=0, call=call, name=name, status="called", input=asked, provider={"id": call})
        )

    def tool(self, call: str) -> ToolBlock | None:
        known = self.drafts.call(call)
        draft = self.drafts.at(known[0]) if known else None
        block = draft.blocks[known[1]] if known and draft else None
        return block if isinstance(block, ToolBlock) else None

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
        known = self.drafts.call(call)
        if known is None:
            self.left_out["results without a call"] += 1
            return
        place, number = known
        draft = self.drafts.at(place)
        if draft is None or not isinstance(tool := draft.blocks[number], ToolBlock):
            return  # Its answer was taken back.
        error, output = None, text
        if status == "error" and exit_code is not None:
            output = text.removeprefix(f"Exit code {exit_code}").removeprefix("\n")
            error = ToolError(code="tool_error", message=f"Exit code {exit_code}")
        elif status != "ok" and len(text) <= ERROR_CHARS:
            code = {"denied": "tool_denied", "interrupted": "tool_interrupted"}.get(status, "tool_error")
            error, output = ToolError(code=code, message=text or "It failed."), ""
        elif status != "ok":
            error = ToolError(code="tool_error", message="It failed.")
        draft.blocks[number] = replace(
            tool, status=status, output=output, error=error, exit_code=exit_code, finished_at=ts
        )
        draft.blocks.extend(images)
        self.drafts.put(place, draft)

    def interrupt(self) -> None:
        """The person stopped the answer that came last."""
        self.change_answer(lambda draft: setattr(draft, "interrupted", True))

    def change_answer(self, change: Callable[[Draft], None]) -> bool:
        """Changes the answer that came last. False: there is none."""
        place = self.drafts.last_answer()
        draft = self.drafts.at(place) if place is not None else None
        if place is None or draft is None:
            return False
        change(draft)
        self.drafts.put(place, draft)
        return True

    def told(
        self, session: str, *, title: str = "", project: str | None = None, of_another: str | None = None
    ) -> ForeignConversation:
        drafts, program = self.drafts, self._program
        counted, began, ended = drafts.finish()

        def walk(skip: int) -> Iterator[Message]:
            return (_message(place, draft, program) for place, draft in enumerate(drafts.walk(skip), skip + 1))

        return ForeignConversation(
            program=self._program,
            session=session,
            messages=LazySequence(counted, walk),
            title=title.strip() or first_words(drafts.walk()),
            project=project,
            created_at=began,
            updated_at=ended,
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
        blocks=tuple(_settle(index, block) for index, block in enumerate(draft.blocks)),
        status="interrupted" if draft.interrupted else "done",
        agent=program if answer else None,
        model=draft.model if answer else None,
        finish_reason=draft.finish_reason,
        usage=draft.usage,
        hidden=draft.hidden,
    )


def _settle(index: int, block: Block) -> Block:
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
            decoded = decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            decoded = _mend_surrogates(line, decoder)
        if decoded is None:
            telling.skipped_lines += 1
        else:
            telling.weigh(len(line))
            yield decoded


def _mend_surrogates(line: bytes, decoder: msgspec.json.Decoder[Any]) -> Any:
    """Programs that count in halves of characters cut some in two. That is no reason to lose what was said."""
    whole = _HALF.sub(rb"\1\\ufffd", line)
    try:
        return decoder.decode(whole) if whole != line else None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


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


def thinking_block(
    said: str, signature: str | None = None, provider: Any = None, *, redacted: bool = False
) -> ThinkingBlock:
    return ThinkingBlock(index=0, text=said, signature=signature, provider=provider, redacted=redacted)


def image(media_type: Any, data: Any) -> ImageBlock | None:
    if isinstance(media_type, str) and isinstance(data, str):
        return ImageBlock(index=0, url=f"data:{media_type};base64,{data}")
    return None

"""One session file of Claude Code: `<config>/projects/<folder>/<session>.jsonl`, as versions 1.0 to 2.1 write it.

Each line is an object; those with a `uuid` form a tree by `parentUuid`, and the conversation is the path to its last leaf.
An answer is written one line a block, all under one `message.id`. Much else is in the file: what the program told the model
by itself, its own commands, snapshots of prompts. None of that was said by anybody, and none of it is taken over.

Pure: lines in, a conversation out. Unknown types and fields are passed over; a line that cannot be read is counted.
"""

import re
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from palaver.history.parts import as_json, integer, own, text_of
from palaver.history.programs.drafts import Draft
from palaver.history.programs.foreign import (
    ForeignConversation,
    Telling,
    image,
    milliseconds,
    objects,
    text,
    thinking_block,
)
from palaver.history.programs.scratch import LineTree, Scratch
from palaver.schema.base import Usage
from palaver.schema.view import Block, ImageBlock, TextBlock, ToolStatus

INTERRUPTED = ("[Request interrupted by user]", "[Request interrupted by user for tool use]")
SYNTHETIC = "<synthetic>"
OURS = "palaver"
"""What the program says of where it was started, if that was here."""

_FINISHED = {"end_turn": "stop", "stop_sequence": "stop", "tool_use": "tool_calls", "max_tokens": "length"}
_REMINDER = re.compile(r"<system-reminder>(?:[^<]++|<(?!/?system-reminder>))*+</system-reminder>\s*")
_COMMAND = re.compile(r"<command-name>((?:[^<]++|<(?!/?command-name>))*+)</command-name>")
_ARGUMENTS = re.compile(r"<command-args>((?:[^<]++|<(?!/?command-args>))*+)</command-args>")
_OUTPUT = ("<local-command-stdout>", "<local-command-stderr>")
_OWN_TALK = ("<local-command-caveat>", "<bash-input>", "<bash-stdout>", "<bash-stderr>", "<task-notification>")
_REFUSED = ("The user doesn't want to proceed", "The user doesn't want to take this action", "Permission to use")
_EXIT = re.compile(r"Exit code (\d{1,9})")


class _Line(Struct):
    """Of a line only what the conversation needs: the rest is passed over without being read."""

    type: str = ""
    uuid: str | None = None
    parentUuid: str | None = None  # noqa: N815
    logicalParentUuid: str | None = None  # noqa: N815
    sessionId: str | None = None  # noqa: N815
    timestamp: Any = None
    cwd: str | None = None
    entrypoint: Any = None
    isSidechain: Any = None  # noqa: N815
    isMeta: Any = None  # noqa: N815
    isCompactSummary: Any = None  # noqa: N815
    isApiErrorMessage: Any = None  # noqa: N815
    message: msgspec.Raw = msgspec.Raw()
    attachment: msgspec.Raw = msgspec.Raw()
    summary: Any = None
    aiTitle: Any = None  # noqa: N815
    customTitle: Any = None  # noqa: N815


_decoder = msgspec.json.Decoder(_Line)
_SPOKEN = ("user", "assistant", "attachment")


def read(lines: Iterable[bytes], scratch: Scratch | None = None) -> ForeignConversation:
    """The lines are walked twice: which of them are the conversation is known only at their end."""
    scratch = scratch or Scratch()
    known = _Known(scratch)
    for line in objects(lines, _decoder, Telling("claude", scratch)):
        known.look_at(line)
    known.finish()
    telling = Telling("claude", scratch)
    reading = _Reading(telling)
    for line in objects(lines, _decoder, telling):
        if line.isSidechain:
            telling.left_out["lines of subagents"] += 1
        elif line.type in _SPOKEN:
            reading.take(line, on_path=line.uuid is None or known.is_on_path(line.uuid))
    reading.drop_unanswered_command()
    return telling.told(
        known.session,
        title=known.title(),
        project=known.project,
        of_another="it was driven from here" if known.is_ours else None,
    )


class _Known:
    """What the file says of itself, and how its lines hang together."""

    def __init__(self, scratch: Scratch) -> None:
        self.session = ""
        self.project: str | None = None
        self._entrypoint: Any = None
        self._titles: dict[str, str] = {}
        self._tree = LineTree(scratch)
        self._leaf: str | None = None

    def look_at(self, line: _Line) -> None:
        self.session = self.session or line.sessionId or ""
        self.project = self.project or line.cwd
        self._entrypoint = self._entrypoint or line.entrypoint
        for name, said in (("summary", line.summary), ("ai", line.aiTitle), ("custom", line.customTitle)):
            if isinstance(said, str) and said.strip():
                self._titles[name] = said
        if line.uuid is not None and not line.isSidechain:
            self._tree.add(line.uuid, line.parentUuid or line.logicalParentUuid)
            if line.type in ("user", "assistant"):
                self._leaf = line.uuid

    @property
    def is_ours(self) -> bool:
        """Begun from here. One that was begun elsewhere may have gone on here."""
        return bool(self._entrypoint == OURS)

    def title(self) -> str:
        return self._titles.get("custom") or self._titles.get("ai") or self._titles.get("summary") or ""

    def finish(self) -> None:
        if self._leaf is not None:
            self._tree.keep_path(self._leaf)

    def is_on_path(self, line: str) -> bool:
        return self._tree.is_kept(line)


class _Reading:
    def __init__(self, telling: Telling) -> None:
        self._telling = telling
        self._answers: set[str] = set()
        self._command: Draft | None = None

    def take(self, line: _Line, *, on_path: bool) -> None:
        ts = milliseconds(line.timestamp)
        if line.type == "attachment":
            if on_path and b'"queued_command"' in bytes(line.attachment)[:300]:
                self._add_queued(_decode(line.attachment), ts)
            return
        message = _decode(line.message)
        if line.type == "assistant":
            self._answer(message, ts, on_path=on_path, notice=bool(line.isApiErrorMessage))
        else:
            self._user(line, message.get("content"), ts, on_path=on_path)

    def drop_unanswered_command(self) -> None:
        """A command of the program's own, which no model answered."""
        if self._command is not None and self._telling.drafts.last is self._command:
            self._telling.drafts.pop()
            self._telling.left_out["commands of the program"] += 1
        self._command = None

    # -- answers

    def _answer(self, message: dict[str, Any], ts: int, *, on_path: bool, notice: bool) -> None:
        key = str(message.get("id") or ts)
        if message.get("model") == SYNTHETIC or notice:
            self._telling.left_out["notices of the program"] += 1
            return
        # Calls made side by side: the path leads through one of them, the answer holds them all.
        if not on_path and key not in self._answers:
            self._telling.left_out["messages of ways not taken"] += 1
            return
        self._command = None
        self._answers.add(key)
        draft = self._telling.answer(ts, key, text_of(message.get("model")))
        content = message.get("content")
        for part in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            self._part(draft, part)
        draft.finish_reason = _FINISHED.get(str(message.get("stop_reason")), draft.finish_reason)
        draft.usage = _usage(own(message, "usage")) or draft.usage

    def _part(self, draft: Draft, part: Any) -> None:
        match part:
            case {"type": "text", "text": str(said)}:
                if said.strip():
                    draft.blocks.append(text(said))
            case {"type": "thinking", "thinking": str(said)}:
                draft.blocks.append(thinking_block(said, text_of(part.get("signature"))))
            case {"type": "redacted_thinking"}:
                draft.blocks.append(thinking_block("", provider={"data": part.get("data")}, redacted=True))
            case {"type": "tool_use" | "server_tool_use" | "mcp_tool_use", "id": str(call), "name": str(name)}:
                self._telling.call(draft, call, name, part.get("input"))
            case {"type": str(kind), "tool_use_id": str(call)} if kind.endswith("_tool_result"):
                self._telling.result(call, as_json(part.get("content")), "ok")
            case _:
                self._telling.left_out["parts of an unknown kind"] += 1

    # -- what was said to it

    def _user(self, line: _Line, content: Any, ts: int, *, on_path: bool) -> None:
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        said: list[Block] = []
        for part in parts:
            match part:
                case {"type": "tool_result", "tool_use_id": str(call)}:
                    self._result(call, part, ts)
                case {"type": "text", "text": str(words)}:
                    said.append(text(words))
                case {"type": "image", "source": {"media_type": media_type, "data": data}}:
                    said += _images(media_type, data)
                case _:
                    self._telling.left_out["parts of an unknown kind"] += 1
        if not said:
            return
        if line.isMeta:
            self._telling.left_out["notes of the program to the model"] += 1
        elif not on_path:
            self._telling.left_out["messages of ways not taken"] += 1
        elif line.isCompactSummary:
            self._telling.say("summary", ts, said, hidden=True)
        else:
            self._add_person_text(said, ts)

    def _add_person_text(self, said: list[Block], ts: int) -> None:
        whole = "\n".join(block.text for block in said if isinstance(block, TextBlock)).strip()
        if whole in INTERRUPTED:
            self._telling.interrupt()
        elif whole.startswith(_OUTPUT):
            self.drop_unanswered_command()
        elif whole.startswith(_OWN_TALK):
            self._telling.left_out["notes of the program to the model"] += 1
        elif command := _COMMAND.search(whole):
            arguments = _ARGUMENTS.search(whole)
            words = f"{command[1].strip()} {arguments[1].strip() if arguments else ''}".strip()
            self._telling.say("user", ts, [text(words)])
            self._command = self._telling.drafts.last
        else:
            self._command = None
            self._telling.say("user", ts, [_without_reminders(block) for block in said])

    def _add_queued(self, attachment: dict[str, Any], ts: int) -> None:
        """What a person said while the program worked."""
        prompt = attachment.get("prompt")
        if own(attachment, "origin").get("kind") == "task-notification":
            self._telling.left_out["notes of the program to the model"] += 1
            return
        parts = prompt if isinstance(prompt, list) else [{"type": "text", "text": prompt}]
        said = [text(part["text"]) for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
        if said:
            self._add_person_text(list(said), ts)

    def _result(self, call: str, part: dict[str, Any], ts: int) -> None:
        words, images = _result_of(part.get("content"))
        status: ToolStatus = "error" if part.get("is_error") is True else "ok"
        if status == "error" and words.startswith(_REFUSED):
            status = "denied"
        elif status == "error" and words.startswith(INTERRUPTED):
            status = "interrupted"
        code = _EXIT.match(words) if status == "error" else None
        self._telling.result(call, words, status, images, ts or None, int(code[1]) if code else None)


def _decode(raw: msgspec.Raw) -> dict[str, Any]:
    value = msgspec.json.decode(raw) if bytes(raw) else None
    return value if isinstance(value, dict) else {}


def _without_reminders(block: Block) -> Block:
    if isinstance(block, TextBlock) and "<system-reminder>" in block.text:
        return text(_REMINDER.sub("", block.text).strip())
    return block


def _images(media_type: Any, data: Any) -> list[ImageBlock]:
    shown = image(media_type, data)
    return [shown] if shown else []


def _result_of(content: Any) -> tuple[str, list[ImageBlock]]:
    if not isinstance(content, list):
        return (content if isinstance(content, str) else ""), []
    words: list[str] = []
    images: list[ImageBlock] = []
    for part in content:
        match part:
            case {"type": "text", "text": str(said)}:
                words.append(said)
            case {"type": "image", "source": {"media_type": media_type, "data": data}}:
                images += _images(media_type, data)
            case _:
                words.append(as_json(part))
    return "\n".join(words), images


def _usage(usage: dict[str, Any]) -> Usage | None:
    """The program counts what was read from a cache and written to it beside the input; here it is part of it."""
    if not usage:
        return None
    cached = integer(usage.get("cache_read_input_tokens"))
    written = integer(usage.get("cache_creation_input_tokens"))
    return Usage(
        input_tokens=integer(usage.get("input_tokens")) + cached + written,
        output_tokens=integer(usage.get("output_tokens")),
        cached_tokens=cached,
        reasoning_tokens=integer(own(usage, "output_tokens_details").get("thinking_tokens")),
    )

"""One session file of Codex: `$CODEX_HOME/sessions/YYYY/MM/DD/rollout-….jsonl`, as versions up to 0.163 write it.

A line is `{timestamp, type, payload}`. What went to the model and came from it are `response_item`s; `event_msg`s tell the
same again for the program's own screen, and add what only it knows: exit codes, token counts, a stop, a rollback. The oldest
files have bare items without a payload. Beside what a person said, messages in the person's name carry the surroundings
(`<environment_context>`, instructions); those are left out.

Pure: lines in, a conversation out. Unknown types and fields are passed over; a line that cannot be read is counted.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import msgspec

from palaver.core.json_bounds import decode_json
from palaver.history.parts import as_json, integer, own, text_of
from palaver.history.programs.drafts import Draft
from palaver.history.programs.foreign import ForeignConversation, Telling, milliseconds, objects, text, thinking_block
from palaver.history.programs.scratch import Scratch
from palaver.schema.base import Usage
from palaver.schema.view import Block, ImageBlock, TextBlock, ToolStatus

OURS = "palaver"
"""How the program names a client that was started from here."""

_SURROUNDINGS = (
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<INSTRUCTIONS>",
    "<skill>",
    "<turn_aborted>",
    "<subagent_notification>",
    "<user_shell_command>",
    "<permissions instructions>",
    "<image name=",
    "</image>",
)
"""What the program says in the person's name, by its beginnings."""
_EXIT = re.compile(r"(?:Process exited with code|Exit code:) (\d{1,9})")
_HEAD = re.compile(r"\A(?:Chunk ID: .*\n)?(?:Exit code: .*\n)?Wall time: .*\n(?:.*\n)*?Output:\n")
_COMMANDS = frozenset({"exec_command", "shell", "shell_command", "local_shell", "container.exec"})

_decoder = msgspec.json.Decoder(dict[str, Any])


def read(lines: Iterable[bytes], scratch: Scratch | None = None) -> ForeignConversation:
    telling = Telling("codex", scratch)
    reading = _Reading(telling)
    for line in objects(lines, _decoder, telling):
        reading.take(line)
    return telling.told(reading.session, title=reading.title, project=reading.project, of_another=reading.of_another)


class _Reading:
    def __init__(self, telling: Telling) -> None:
        self._telling = telling
        self._model: str | None = None
        self._steps = 0
        self._answered = False
        """A result came, or the count at an answer's end: what follows is the next one."""
        self.session = ""
        self.title = ""
        self.project: str | None = None
        self.of_another: str | None = None

    def take(self, line: dict[str, Any]) -> None:
        ts = milliseconds(line.get("timestamp"))
        payload = line.get("payload")
        if not isinstance(payload, dict):
            self._bare(line, ts)
            return
        match line.get("type"):
            case "session_meta":
                self._meta(payload)
            case "response_item":
                self._item(payload, ts)
            case "event_msg":
                self._event(payload)
            case "turn_context":
                self._model = text_of(payload.get("model")) or self._model
            case "compacted":
                if said := text_of(payload.get("message")):
                    self._telling.say("summary", ts, [text(said)], hidden=True)
            case _:
                pass

    def _bare(self, line: dict[str, Any], ts: int) -> None:
        if "type" in line:
            self._item(line, ts)
        elif "id" in line and "timestamp" in line:
            self._meta(line)

    def _meta(self, meta: dict[str, Any]) -> None:
        if self.session:  # A fork repeats what it came from.
            return
        self.session = str(meta.get("id") or "")
        self.project = text_of(meta.get("cwd"))
        if isinstance(meta.get("source"), dict) or meta.get("thread_source") in ("subagent", "memory_consolidation"):
            self.of_another = "it belongs to a subagent"
        elif str(meta.get("originator") or "").startswith(OURS):
            self.of_another = "it was driven from here"

    # -- what went to the model and came from it

    def _item(self, item: dict[str, Any], ts: int) -> None:
        match item.get("type"):
            case "message":
                self._message(item, ts)
            case "reasoning":
                self._reasoning(item, ts)
            case "function_call" | "custom_tool_call" | "local_shell_call" | "tool_search_call":
                self._call(item, ts)
            case "function_call_output" | "custom_tool_call_output" | "tool_search_output":
                self._result(item, ts)
            case "web_search_call" | "image_generation_call":
                call = str(item.get("id") or f"call-{self._steps}-{ts}")
                name = str(item["type"]).removesuffix("_call")
                self._telling.call(self._answer(ts), call, name, item.get("action") or {})
                self._telling.result(call, "", "ok")
            case _:
                pass

    def _answer(self, ts: int) -> Draft:
        last = self._telling.drafts.last
        if self._answered or last is None or last.role != "assistant":
            self._steps += 1
            self._answered = False
        return self._telling.answer(ts, f"step-{self._steps}", self._model)

    def _message(self, item: dict[str, Any], ts: int) -> None:
        said = _blocks(item.get("content"))
        match item.get("role"):
            case "assistant":
                if said:
                    self._answer(ts).blocks += said
            case "user":
                kept = [block for block in said if not _is_surroundings(block)]
                if len(kept) < len(said):
                    self._telling.left_out["notes of the program to the model"] += 1
                self._telling.say("user", ts, kept)
            case _:
                self._telling.left_out["notes of the program to the model"] += 1

    def _reasoning(self, item: dict[str, Any], ts: int) -> None:
        words = [*_texts(item.get("summary")), *_texts(item.get("content"))]
        sealed = text_of(item.get("encrypted_content"))
        if words or sealed:
            provider = {"id": item.get("id"), "encrypted_content": sealed} if sealed else None
            self._answer(ts).blocks.append(thinking_block("\n\n".join(words), provider=provider, redacted=not words))

    def _call(self, item: dict[str, Any], ts: int) -> None:
        asked: Any = item.get("arguments", item.get("input", item.get("action")))
        if isinstance(asked, str) and item.get("type") == "function_call":
            with suppress(msgspec.DecodeError):  # What a model wrote and nobody could read stays as it is.
                asked = decode_json(asked)
        if isinstance(asked, str):
            asked = {"input": asked}
        name = str(item.get("name") or item["type"]).removesuffix("_call")
        call = str(item.get("call_id") or item.get("id") or f"call-{ts}")
        self._telling.call(self._answer(ts), call, name, asked)

    def _result(self, item: dict[str, Any], ts: int) -> None:
        call = str(item.get("call_id") or "")
        words, images, code, failed = _result_of(item.get("output"))
        tool = self._telling.tool(call)
        self._answered = True
        if tool is not None and tool.status != "called":
            return  # The program's own record of it came before, with its exit code and all of its output.
        if tool is not None and tool.name in _COMMANDS:
            words = _HEAD.sub("", words, count=1)
        status: ToolStatus = "error" if failed or code else "ok"
        if words.startswith(("rejected by user", "exec command rejected by user", "patch rejected by user")):
            status = "denied"
        elif words.startswith("aborted"):
            status = "interrupted"
        self._telling.result(call, words, status, images, ts or None, code)

    # -- what only the program knows

    def _event(self, event: dict[str, Any]) -> None:
        match event.get("type"):
            case "token_count":
                self._count(own(own(event, "info"), "last_token_usage"))
            case "item_completed":
                self._complete(own(event, "item"), integer(event.get("completed_at_ms")) or None)
            case "exec_command_end":
                self._ran(str(event.get("call_id")), event, None)
            case "turn_aborted":
                self._telling.interrupt()
                self._answered = True
            case "thread_rolled_back":
                self._roll_back(integer(event.get("num_turns")))
            case "thread_name_updated":
                self.title = text_of(event.get("thread_name")) or self.title
            case _:
                pass

    def _count(self, usage: dict[str, Any]) -> None:
        counted = Usage(
            input_tokens=integer(usage.get("input_tokens")),
            output_tokens=integer(usage.get("output_tokens")),
            cached_tokens=integer(usage.get("cached_input_tokens")),
            reasoning_tokens=integer(usage.get("reasoning_output_tokens")),
        )
        if usage and self._telling.change_answer(lambda draft: setattr(draft, "usage", counted)):
            self._answered = True

    def _complete(self, item: dict[str, Any], ts: int | None) -> None:
        if item.get("type") == "CommandExecution" and item.get("status") in ("completed", "failed"):
            self._ran(str(item.get("id")), item, ts)

    def _ran(self, call: str, ended: dict[str, Any], ts: int | None) -> None:
        tool = self._telling.tool(call)
        code, output = ended.get("exit_code"), ended.get("aggregated_output")
        if tool is None or tool.status != "called" or not isinstance(code, int) or not isinstance(output, str):
            return
        self._answered = True
        self._telling.result(call, output, "error" if code else "ok", ts=ts, exit_code=code)

    def _roll_back(self, turns: int) -> None:
        for _ in range(turns):
            while (gone := self._telling.drafts.pop()) is not None:
                self._telling.left_out["messages that were taken back"] += 1
                if gone.role == "user":
                    break


def _is_surroundings(block: Block) -> bool:
    return isinstance(block, TextBlock) and block.text.lstrip().startswith(_SURROUNDINGS)


def _texts(parts: Any) -> list[str]:
    found = [part.get("text") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return [said for said in found if isinstance(said, str) and said.strip()]


def _blocks(content: Any) -> list[Block]:
    blocks: list[Block] = []
    for part in content if isinstance(content, list) else [{"type": "input_text", "text": content}]:
        match part:
            case {"type": "input_text" | "output_text" | "text", "text": str(said)} if said.strip():
                blocks.append(text(said))
            case {"type": "input_image", "image_url": str(url)} if url.startswith("data:"):
                blocks.append(ImageBlock(index=0, url=url))
            case {"type": "input_image"}:
                blocks.append(text("(an image that was not brought along)"))
            case _:
                pass
    return blocks


def _result_of(output: Any) -> tuple[str, list[ImageBlock], int | None, bool]:
    """The words, the pictures, the exit code if it is told, and whether it failed."""
    if isinstance(output, dict):  # {content, success} of earlier versions.
        words, images, code, _ = _result_of(output.get("content"))
        return words, images, code, output.get("success") is False
    if isinstance(output, list):
        blocks = _blocks(output)
        images = [block for block in blocks if isinstance(block, ImageBlock)]
        return "\n".join(_texts(output)), images, None, False
    words = output if isinstance(output, str) else as_json(output)
    if words.startswith('{"output":'):
        with suppress(msgspec.DecodeError):
            told = decode_json(words)
            code = own(told, "metadata").get("exit_code")
            return str(told.get("output")), [], code if isinstance(code, int) else None, False
    found = _EXIT.search(words[:300])
    return words, [], int(found[1]) if found else None, False

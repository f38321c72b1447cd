"""From ACP's session updates to canonical events. Pure: no clock, no task, no process.

Used by the conduct, one `Translation` a turn. Agents differ in what they send and when (checked with opencode 1.18,
gemini-cli 0.61, claude-agent-acp 0.99, codex-acp 2.6): a tool may first be seen in its permission request, may be "in
progress" before anybody was asked, may end without an update. So a call is told once its input is known, started when it
is granted or seen at work, and has exactly one result. What is unknown is skipped.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from palaver.backends.acp.content import changes, exit_code, output_of, paths_of, plan_of, text_of
from palaver.backends.excerpts import added_text, pieces
from palaver.schema.base import Usage
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    ContextMeasured,
    FilesChanged,
    KnownEvent,
    PlanUpdated,
    TextDelta,
    TextFinished,
    ThinkingDelta,
    ThinkingFinished,
    ToolCalled,
    ToolFinished,
    ToolInputDelta,
    ToolOutputDelta,
    ToolStarted,
)
from palaver.schema.view import ToolError

GRANT = "program"
"""What a call runs under that the agent started without asking: its own settings."""

Effect = Literal["done", "none", "unknown"]

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")


@dataclass(slots=True)
class _Prose:
    kind: str
    block: int
    message: str
    source: str | None
    parts: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class Call:
    """A tool call of the agent, as far as it is known."""

    id: str
    theirs: str
    message: str
    block: int
    name: str = "tool"
    title: str = ""
    kind: str = "other"
    input: dict[str, Any] = field(default_factory=dict[str, Any])
    output: str = ""
    content: list[Any] = field(default_factory=list[Any])
    paths: tuple[str, ...] = ()
    called: bool = False
    at_work: bool = False
    """The agent says so; it may still ask."""
    asked: bool = False
    started: bool = False
    finished: bool = False


class Translation:
    def __init__(self, new_id: Callable[[], str], model: str | None = None, past: Iterable[str] = ()) -> None:
        """`past` are call and message ids of turns that are over: what still comes of them belongs to nobody."""
        self._new_id = new_id
        self._model = model
        self._past = frozenset(past)
        self._message: str | None = None
        self._next_block = 0
        self._prose: _Prose | None = None
        self.calls: dict[str, Call] = {}
        self.answers: list[str] = []
        self.seen: set[str] = set()
        self.cost_usd: float | None = None
        """Of the whole session so far, where the agent tells it."""

    @property
    def open_calls(self) -> list[Call]:
        return [call for call in self.calls.values() if not call.finished]

    # -- what the agent says

    def update(self, update: Mapping[str, Any]) -> list[KnownEvent]:
        match update.get("sessionUpdate"):
            case "agent_message_chunk":
                return self._chunk("text", update)
            case "agent_thought_chunk":
                return self._chunk("thinking", update)
            case "tool_call" | "tool_call_update" if isinstance(update.get("toolCallId"), str):
                return [] if update["toolCallId"] in self._past else self._tool(update)
            case "plan":
                return [PlanUpdated(plan=plan_of(update.get("entries")))]
            case "usage_update":
                return self._context_events(update)
            case _:
                return []

    def asking(self, told: Mapping[str, Any]) -> tuple[Call, list[KnownEvent]]:
        """A permission request names its call, and may be the first to do so."""
        known = told.get("toolCallId")
        theirs = known if isinstance(known, str) else self._new_id()
        events, call = self._call_of(theirs, told)
        self._learn(call, told)
        call.asked = True
        return call, [*events, *self._call(call)]

    def start(self, call: Call, grant: str, request: str | None = None) -> list[KnownEvent]:
        if call.started or call.finished:
            return []
        call.started = True
        return [*self._call(call), ToolStarted(call=call.id, grant=grant, request=request)]

    def start_silent(self) -> list[KnownEvent]:
        """Those the agent says it works on, and for which it has not asked."""
        return [
            event for call in self.open_calls if call.at_work and not call.asked for event in self.start(call, GRANT)
        ]

    @property
    def silent(self) -> bool:
        return any(call.at_work and not call.asked and not call.started for call in self.open_calls)

    def refuse(self, call: Call, message: str, code: str = "tool_denied") -> list[KnownEvent]:
        if call.finished:
            return []
        call.finished = True
        error = ToolError(code=code, message=message)
        return [*self._call(call), ToolFinished(call=call.id, ok=False, error=error, effect="none")]

    def finish(
        self, reason: str, usage: Usage | None, cost_usd: float | None, provider: Mapping[str, Any]
    ) -> list[KnownEvent]:
        """The turn is over. Calls without a result will have none."""
        events: list[KnownEvent] = []
        for call in self.open_calls:
            call.finished = True
            error = ToolError(code="no_result", message="The agent gave no result for this call.")
            effect: Effect = "unknown" if call.started or call.at_work else "none"
            events += self._call(call)
            events.append(ToolFinished(call=call.id, ok=False, output=call.output, error=error, effect=effect))
        if self._message is None and (usage is not None or not self.answers):
            # An agent may end a turn without a word; its usage and the session's mark need a place all the same.
            events += self._begin()
        return [*events, *self._end_answer(reason, usage, cost_usd, provider)]

    # -- text and thinking

    def _chunk(self, kind: str, update: Mapping[str, Any]) -> list[KnownEvent]:
        text = text_of(update.get("content"))
        source = update.get("messageId")
        source = source if isinstance(source, str) else None
        if not text or (source is not None and source in self._past):
            return []
        if source is not None:
            self.seen.add(source)
        events = self._next_answer()
        prose = self._prose
        if prose is None or prose.kind != kind or (source and prose.source and source != prose.source):
            events += self._close_prose()
            events += self._begin()
            assert self._message is not None
            prose = self._prose = _Prose(kind, self._block(), self._message, source)
        prose.parts.append(text)
        delta = TextDelta if kind == "text" else ThinkingDelta
        return [*events, *(delta(message=prose.message, block=prose.block, text=piece) for piece in pieces(text))]

    def _close_prose(self) -> list[KnownEvent]:
        prose, self._prose = self._prose, None
        if prose is None:
            return []
        finished = TextFinished if prose.kind == "text" else ThinkingFinished
        return [finished(message=prose.message, block=prose.block, text="".join(prose.parts))]

    # -- answers: one for each model call, as far as it can be told

    def _next_answer(self) -> list[KnownEvent]:
        """What comes after results belongs to the next model call."""
        own = [call for call in self.calls.values() if call.message == self._message]
        if own and all(call.finished for call in own):
            return self._end_answer("tool_calls", None, None, None)
        return []

    def _begin(self) -> list[KnownEvent]:
        if self._message is not None:
            return []
        self._message = self._new_id()
        self._next_block = 0
        self.answers.append(self._message)
        return [AnswerStarted(message=self._message, model=self._model)]

    def _end_answer(
        self, reason: str, usage: Usage | None, cost_usd: float | None, provider: Mapping[str, Any] | None
    ) -> list[KnownEvent]:
        if self._message is None:
            return []
        events = self._close_prose()
        message, self._message = self._message, None
        events.append(
            AnswerFinished(
                message=message,
                finish_reason=reason,
                usage=usage,
                cost_usd=cost_usd,
                model=self._model,
                provider=dict(provider) if provider is not None else None,
            )
        )
        return events

    def _block(self) -> int:
        block = self._next_block
        self._next_block += 1
        return block

    # -- tools

    def _call_of(self, theirs: str, told: Mapping[str, Any]) -> tuple[list[KnownEvent], Call]:
        if (call := self.calls.get(theirs)) is not None:
            return [], call
        events = [*self._next_answer(), *self._close_prose(), *self._begin()]
        assert self._message is not None
        call = Call(id=self._new_id(), theirs=theirs, message=self._message, block=self._block(), name=_name(told))
        self.calls[theirs] = call
        self.seen.add(theirs)
        return [*events, ToolInputDelta(message=call.message, block=call.block, call=call.id, name=call.name)], call

    def _tool(self, update: Mapping[str, Any]) -> list[KnownEvent]:
        events, call = self._call_of(update["toolCallId"], update)
        if call.finished:
            # The first result is the result; a call that was refused or stopped stays so.
            return events
        self._learn(call, update)
        output = output_of(update)
        status = update.get("status")
        if status == "in_progress" or output:
            call.at_work = True
        if call.at_work:
            events += self._call(call)
        if status in ("completed", "failed"):
            return [*events, *self._result(call, status == "completed", output, update)]
        return [*events, *self._grow(call, output, update)]

    def _learn(self, call: Call, told: Mapping[str, Any]) -> None:
        if isinstance(told.get("title"), str):
            call.title = told["title"]
        if isinstance(told.get("kind"), str):
            call.kind = told["kind"]
        if isinstance(told.get("rawInput"), dict):
            call.input |= told["rawInput"]
        if isinstance(told.get("content"), list):
            call.content = told["content"]
        if isinstance(told.get("locations"), list) and told["locations"]:
            call.paths = paths_of(told["locations"])

    def _call(self, call: Call) -> list[KnownEvent]:
        if call.called:
            return []
        call.called = True
        shown = call.input or ({"command": call.title} if call.kind == "execute" else {"title": call.title})
        return [
            ToolCalled(
                message=call.message,
                block=call.block,
                call=call.id,
                name=call.name,
                input=shown,
                provider={"id": call.theirs, "kind": call.kind, "title": call.title},
            )
        ]

    def _grow(self, call: Call, output: str, update: Mapping[str, Any]) -> list[KnownEvent]:
        meta = update.get("_meta")
        delta = meta.get("terminal_output_delta") if isinstance(meta, Mapping) else None
        if isinstance(delta, Mapping) and isinstance(delta.get("data"), str):
            # codex-acp tells only what is new.
            output = call.output + delta["data"]
        added = added_text(call.output, output) if output else ""
        if not added or (call.asked and not call.started):
            return []
        call.output = output
        started = self.start(call, GRANT)
        return [*started, *(ToolOutputDelta(call=call.id, text=piece) for piece in pieces(added))]

    def _result(self, call: Call, ok: bool, output: str, update: Mapping[str, Any]) -> list[KnownEvent]:
        events = self.start(call, GRANT) if ok or (call.at_work and not call.asked) else self._call(call)
        files = changes(call.content) if ok else ()
        if files:
            events.append(FilesChanged(files=files, call=call.id))
        call.finished = True
        said = output or call.output
        error = None if ok else ToolError(code="tool_error", message=said[:2_000] or "The tool failed.")
        effect: Effect = "done" if call.started else "none"
        events.append(
            ToolFinished(call=call.id, ok=ok, output=said, error=error, effect=effect, exit_code=exit_code(update))
        )
        return events

    # -- the meter

    def _context_events(self, update: Mapping[str, Any]) -> list[KnownEvent]:
        used, size, cost = update.get("used"), update.get("size"), update.get("cost")
        if isinstance(cost, Mapping) and isinstance(cost.get("amount"), int | float) and cost.get("currency") == "USD":
            self.cost_usd = float(cost["amount"])
        if not isinstance(used, int) or used <= 0:
            return []
        return [
            ContextMeasured(used_tokens=used, window_tokens=size if isinstance(size, int) else None, estimated=False)
        ]


def usage_of(told: Any) -> Usage | None:
    """Of a prompt's response. Cached tokens are told apart there, and are part of the input here."""
    if not isinstance(told, Mapping):
        return None

    def count(name: str) -> int:
        value = told.get(name)
        return value if isinstance(value, int) and value > 0 else 0

    cached = count("cachedReadTokens") + count("cachedWriteTokens")
    return Usage(
        input_tokens=count("inputTokens") + cached,
        output_tokens=count("outputTokens"),
        cached_tokens=count("cachedReadTokens"),
        reasoning_tokens=count("thoughtTokens"),
    )


def input_text(call: Call) -> str:
    """For the eye: the command where it is one, else the arguments."""
    command = call.input.get("command")
    if isinstance(command, str):
        return command
    return msgspec.json.format(msgspec.json.encode(call.input), indent=2).decode() if call.input else call.title


def _name(told: Mapping[str, Any]) -> str:
    """ACP has no names of tools: some agents tell them aside, opencode as the first title, gemini within the id."""
    meta = told.get("_meta")
    inner = meta.get("claudeCode") if isinstance(meta, Mapping) else None
    theirs = str(told.get("toolCallId") or "")
    for candidate in (
        told.get("name"),
        inner.get("toolName") if isinstance(inner, Mapping) else None,
        theirs.partition("__")[0] if "__" in theirs else theirs.rpartition("-")[0].rpartition("-")[0],
        told.get("title"),
        told.get("kind"),
    ):
        if isinstance(candidate, str) and _NAME.fullmatch(candidate) and not candidate.startswith(("call_", "toolu_")):
            return candidate
    return "tool"

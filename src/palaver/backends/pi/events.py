"""From the lines of Pi's RPC mode to canonical events. Pure: no clock, no task, no process.

Used by the backend, one `Translation` a turn (seen with Pi 0.87). A model call is one answer; a failed attempt that Pi tries
again is replaced by the next one. Blocks keep Pi's own places. Tool output comes as all so far and leaves as what is new.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from palaver.backends.excerpts import added_text, pieces
from palaver.schema.base import Usage
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    ContextMeasured,
    KnownEvent,
    TextDelta,
    TextFinished,
    ThinkingDelta,
    ThinkingFinished,
    ToolCalled,
    ToolFinished,
    ToolInputDelta,
    ToolOutputDelta,
    ToolStarted,
    TurnStatus,
)
from palaver.schema.view import Retry, ToolError

Effect = Literal["done", "none", "unknown"]
REASONS = {"stop": "stop", "toolUse": "tool_calls", "length": "length", "aborted": "interrupted", "error": "cut"}


@dataclass(slots=True)
class Call:
    id: str
    theirs: str
    name: str
    message: str
    block: int
    called: bool = False
    input: Any = None
    output: str = ""
    started: bool = False
    finished: bool = False


@dataclass(slots=True)
class _Answer:
    message: str
    model: str | None = None
    parts: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    kinds: dict[int, str] = field(default_factory=dict[int, str])
    finished: set[int] = field(default_factory=set[int])
    calls: dict[int, Call] = field(default_factory=dict[int, Call])


class Translation:
    def __init__(
        self, new_id: Callable[[], str], provider: Mapping[str, Any], window_tokens: int | None = None
    ) -> None:
        """`provider` is what each answer is marked with."""
        self._new_id = new_id
        self.provider = dict(provider)
        self._window_tokens = window_tokens
        self._answer: _Answer | None = None
        self._replaces: str | None = None
        self.calls: dict[str, Call] = {}
        self.answers: list[str] = []
        self.error: str | None = None
        """Why the last model call failed; None when it did not."""
        self.stop_reason = "stop"

    def line(self, line: Mapping[str, Any]) -> list[KnownEvent]:
        match line:
            case {"type": "message_update", "assistantMessageEvent": {"contentIndex": int(block)} as inner}:
                return self._update(block, inner)
            case {"type": "message_end", "message": {"role": "assistant"} as message}:
                return self._message_end(message)
            case {"type": "tool_execution_start", "toolCallId": str(theirs)}:
                return self._execution(theirs, line)
            case {"type": "tool_execution_update", "toolCallId": str(theirs)}:
                return self._growing(theirs, line.get("partialResult"))
            case {"type": "tool_execution_end", "toolCallId": str(theirs)}:
                return self._result(theirs, line)
            case {"type": "auto_retry_start" | "summarization_retry_scheduled"}:
                return [TurnStatus(status="thinking", retry=_retry(line))]
            case {"type": "compaction_start"}:
                return [TurnStatus(status="working", detail="Pi sums up the conversation")]
            case {"type": "auto_retry_end" | "compaction_end"}:
                return [TurnStatus(status="thinking")]
            case _:
                return []

    # -- what we decide

    def asking(self, theirs: str, name: str, given: Any) -> tuple[Call, list[KnownEvent]]:
        call, events = self._call_of(theirs, name)
        return call, [*events, *self._call(call, given)]

    def start(self, call: Call, grant: str, request: str | None = None) -> list[KnownEvent]:
        if call.started or call.finished:
            return []
        call.started = True
        return [ToolStarted(call=call.id, grant=grant, request=request)]

    def refuse(self, call: Call, message: str, code: str = "tool_denied") -> list[KnownEvent]:
        if call.finished:
            return []
        call.finished = True
        return [ToolFinished(call=call.id, ok=False, error=ToolError(code=code, message=message), effect="none")]

    def close(self) -> list[KnownEvent]:
        """The turn is over: what has no end has none."""
        events: list[KnownEvent] = []
        for call in self.calls.values():
            if not call.finished:
                call.finished = True
                error = ToolError(code="no_result", message="Pi gave no result for this call.")
                effect: Effect = "unknown" if call.started else "none"
                events.append(ToolFinished(call=call.id, ok=False, output=call.output, error=error, effect=effect))
        return events

    # -- an answer

    def _begin(self) -> tuple[_Answer, list[KnownEvent]]:
        if self._answer is not None:
            return self._answer, []
        answer = self._answer = _Answer(self._new_id())
        self.answers.append(answer.message)
        replaces, self._replaces = self._replaces, None
        return answer, [AnswerStarted(message=answer.message, replaces=replaces)]

    def _update(self, block: int, inner: Mapping[str, Any]) -> list[KnownEvent]:
        answer, events = self._begin()
        match inner:
            case {"type": "text_delta" | "thinking_delta" as kind, "delta": str(text)}:
                answer.kinds[block] = kind.removesuffix("_delta")
                answer.parts.setdefault(block, []).append(text)
                delta = TextDelta if kind == "text_delta" else ThinkingDelta
                events += [delta(message=answer.message, block=block, text=piece) for piece in pieces(text)]
            case {"type": "text_end" | "thinking_end" as kind, "content": str(text)}:
                events += self._prose(answer, block, kind.removesuffix("_end"), text)
            case {"type": "toolcall_start", "id": str(theirs), "toolName": str(name)}:
                events += self._call_begun(answer, block, theirs, name)
            case {"type": "toolcall_delta", "delta": str(text)} if block in answer.calls:
                call = answer.calls[block]
                events += [
                    ToolInputDelta(message=answer.message, block=block, call=call.id, name=call.name, text=piece)
                    for piece in pieces(text)
                ]
            case {"type": "toolcall_end", "toolCall": {"id": str(theirs), "name": str(name)} as told}:
                if block not in answer.calls:
                    events += self._call_begun(answer, block, theirs, name)
                events += self._call(answer.calls[block], told.get("arguments"))
            case _:
                pass
        return events

    def _prose(
        self, answer: _Answer, block: int, kind: str, text: str, *, interrupted: bool = False
    ) -> list[KnownEvent]:
        if block in answer.finished:
            return []
        answer.finished.add(block)
        if kind == "text":
            return [TextFinished(message=answer.message, block=block, text=text, interrupted=interrupted)]
        return [ThinkingFinished(message=answer.message, block=block, text=text, interrupted=interrupted)]

    def _call_begun(self, answer: _Answer, block: int, theirs: str, name: str) -> list[KnownEvent]:
        call = Call(self._new_id(), theirs, name, answer.message, block)
        answer.calls[block] = self.calls[theirs] = call
        return [ToolInputDelta(message=answer.message, block=block, call=call.id, name=name)]

    def _call(self, call: Call, given: Any) -> list[KnownEvent]:
        if call.called:
            return []
        call.called, call.input = True, given
        return [
            ToolCalled(
                message=call.message,
                block=call.block,
                call=call.id,
                name=call.name,
                input=given,
                provider={"id": call.theirs},
            )
        ]

    def _message_end(self, message: Mapping[str, Any]) -> list[KnownEvent]:
        """The authoritative form of an answer; what was streamed of it is completed by it, never said twice."""
        reason = message.get("stopReason")
        self.stop_reason = reason if isinstance(reason, str) else "stop"
        failed = self.stop_reason == "error"
        self.error = str(message.get("errorMessage") or "It gave no reason.") if failed else None
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        if self._answer is None and not blocks:
            # A failed or aborted call without a word is no answer.
            return []
        answer, events = self._begin()
        cut = self.stop_reason in ("error", "aborted")
        for block, told in enumerate(blocks):
            events += self._whole(answer, block, told, cut)
        for block, parts in answer.parts.items():
            events += self._prose(answer, block, answer.kinds[block], "".join(parts), interrupted=cut)
        self._answer = None
        if failed:
            self._replaces = answer.message
        usage, cost_usd = usage_of(message.get("usage"))
        model = message.get("model")
        events.append(
            AnswerFinished(
                message=answer.message,
                finish_reason=REASONS.get(self.stop_reason, "other"),
                usage=usage,
                cost_usd=cost_usd,
                model=model if isinstance(model, str) else None,
                interrupted=cut,
                provider=dict(self.provider),
            )
        )
        if usage is not None and not cut:
            used = usage.input_tokens + usage.output_tokens
            events.append(ContextMeasured(used_tokens=used, window_tokens=self._window_tokens, estimated=False))
        return events

    def _whole(self, answer: _Answer, block: int, told: Any, cut: bool) -> list[KnownEvent]:
        match told:
            case {"type": "text", "text": str(text)}:
                return self._prose(answer, block, "text", text, interrupted=cut)
            case {"type": "thinking", "thinking": str(text)}:
                return self._prose(answer, block, "thinking", text, interrupted=cut)
            case {"type": "toolCall", "id": str(theirs), "name": str(name)} if not cut:
                begun = [] if block in answer.calls else self._call_begun(answer, block, theirs, name)
                return [*begun, *self._call(answer.calls[block], told.get("arguments"))]
            case _:
                return []

    # -- tools at work

    def _call_of(self, theirs: str, name: str) -> tuple[Call, list[KnownEvent]]:
        if (call := self.calls.get(theirs)) is not None:
            return call, []
        # Seen at work without ever having been called: an answer of its own, so that it is seen at all.
        answer, events = self._begin()
        block = max((*answer.kinds, *answer.calls, -1)) + 1
        events += self._call_begun(answer, block, theirs, name)
        return self.calls[theirs], events

    def _execution(self, theirs: str, line: Mapping[str, Any]) -> list[KnownEvent]:
        call, events = self._call_of(theirs, str(line.get("toolName") or "tool"))
        return [*events, *self._call(call, line.get("args"))]

    def _growing(self, theirs: str, partial: Any) -> list[KnownEvent]:
        call = self.calls.get(theirs)
        if call is None or call.finished:
            return []
        output = text_of(partial)
        added = added_text(call.output, output)
        if not added:
            return []
        call.output = output
        return [ToolOutputDelta(call=call.id, text=piece) for piece in pieces(added)]

    def _result(self, theirs: str, line: Mapping[str, Any]) -> list[KnownEvent]:
        call = self.calls.get(theirs)
        if call is None or call.finished:
            return []
        call.finished = True
        output = text_of(line.get("result"))
        failed = line.get("isError") is True
        error = ToolError(code="tool_error", message=output[-2_000:] or "The tool failed.") if failed else None
        effect: Effect = "done" if call.started else "none"
        return [ToolFinished(call=call.id, ok=not failed, output=output, error=error, effect=effect)]


def text_of(result: Any) -> str:
    content = result.get("content") if isinstance(result, Mapping) else None
    said: list[str] = []
    for part in content if isinstance(content, list) else ():
        match part:
            case {"type": "text", "text": str(text)}:
                said.append(text)
            case {"type": "image"}:
                said.append("[image]")
            case _:
                pass
    return "\n".join(said)


def usage_of(told: Any) -> tuple[Usage | None, float | None]:
    """Pi tells cached tokens apart from the input; here they are part of it. A price of nothing is an unknown price."""
    if not isinstance(told, Mapping):
        return None, None

    def count(name: str) -> int:
        value = told.get(name)
        return value if isinstance(value, int) and value > 0 else 0

    usage = Usage(
        input_tokens=count("input") + count("cacheRead") + count("cacheWrite"),
        output_tokens=count("output"),
        cached_tokens=count("cacheRead"),
    )
    cost = told.get("cost")
    total = cost.get("total") if isinstance(cost, Mapping) else None
    return (usage if usage != Usage() else None), (float(total) if isinstance(total, int | float) and total else None)


def _retry(line: Mapping[str, Any]) -> Retry:
    def number(name: str) -> int:
        value = line.get(name)
        return int(value) if isinstance(value, int | float) else 0

    return Retry(
        attempt=number("attempt"),
        of=number("maxAttempts"),
        after_s=number("delayMs") / 1000,
        reason=str(line.get("errorMessage") or "The model service failed."),
    )

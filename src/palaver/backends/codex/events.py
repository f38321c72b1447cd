"""Codex's notifications of one turn, as the events of ours. Pure: lines in, events out; no clock, no waiting.

Used by the turn. An answer is one model call: it begins with its first item and ends when Codex tells its tokens. What a
retry says again takes the place of the attempt that was cut. Authoritative text replaces what streamed; a command's output
at its end replaces what came of it before, of which the first moments are always missing.

Must never say the same text twice, or give a call two results.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palaver.backends.codex.items import Item, file_changes, is_running, result_of, tool_of
from palaver.backends.codex.token_counts import context_events, usage_since
from palaver.context.handover import mark
from palaver.schema.base import Usage
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    FilesChanged,
    KnownEvent,
    ModelSwitched,
    PlanUpdated,
    TextDelta,
    TextFinished,
    ThinkingDelta,
    ThinkingFinished,
    ToolCalled,
    ToolFinished,
    ToolOutputDelta,
    ToolStarted,
    TurnStatus,
)
from palaver.schema.view import Activity, Plan, PlanItem, Retry, ToolError

NAME = "codex"
DECLINED = "The person declined this call; it was not run."
STILL_RUNNING = "[It still runs in the background.]"
UNKNOWN_END = "Codex did not say how it ended."

_ATTEMPT = re.compile(r"(\d{1,9})/(\d{1,9})")
_STEP = {"inProgress": "in_progress", "completed": "done"}


@dataclass(slots=True)
class ToolCall:
    """A tool item of Codex's, by our own id."""

    call: str
    name: str
    input: Mapping[str, Any]
    item: Item
    started: bool = False
    finished: bool = False
    declined: str | None = None
    """Why it will not run, once that was said."""
    output: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class _Answer:
    message: str
    blocks: dict[str, int] = field(default_factory=dict[str, int])
    """By item, its place."""
    thought_parts: dict[str, int] = field(default_factory=dict[str, int])
    done: set[str] = field(default_factory=set[str])
    count: int = 0
    has_calls: bool = False
    has_results: bool = False


class Translator:
    """Of one turn of ours, which may be several of Codex's."""

    def __init__(
        self,
        *,
        session: str,
        conversation: str,
        project: Path,
        new_id: Callable[[], str],
        total: Mapping[str, Any] | None,
        grant: str,
    ) -> None:
        """`total` is what the thread had used before; `grant` is what a call runs under that nobody was asked about."""
        self._session = session
        self._conversation = conversation
        self._project = project
        self._new_id = new_id
        self._total = total
        self._grant = grant
        self._answer: _Answer | None = None
        self._replaces: str | None = None
        self._retrying = False
        self._activity: Activity = "thinking"
        self._unclaimed = Usage()
        """Of model calls that showed nothing."""
        self.turn = ""
        """Codex's own id of the turn that runs."""
        self.calls: dict[str, ToolCall] = {}
        self.failure: Mapping[str, Any] = {}
        """What Codex said last of why it fails."""
        self.plan_text: str | None = None
        """What it proposed in plan mode."""

    def take(self, method: str, params: Mapping[str, Any]) -> list[KnownEvent]:
        """What a line means. Empty for what says nothing to a person, and for what is not known."""
        match method, params:
            case "item/started", {"item": dict(item)}:
                return self._item_started(item)
            case "item/completed", {"item": dict(item)}:
                return self._item_completed(item)
            case "item/agentMessage/delta" | "item/plan/delta", {"itemId": str(item), "delta": str(text)}:
                return self._text(item, text)
            case "item/reasoning/summaryTextDelta", {"itemId": str(item), "delta": str(text)}:
                return self._thinking(item, text, params.get("summaryIndex"))
            case "item/reasoning/textDelta", {"itemId": str(item), "delta": str(text)}:
                return self._thinking(item, text, params.get("contentIndex"))
            case "item/commandExecution/outputDelta", {"itemId": str(item), "delta": str(text)}:
                return self._output(item, text)
            case "thread/tokenUsage/updated", {"tokenUsage": dict(usage)}:
                return self._usage(usage)
            case "error", {"error": dict(error)}:
                return self._failure(error, bool(params.get("willRetry")))
            case "turn/plan/updated", {"plan": list(steps)}:
                return [PlanUpdated(plan=_plan(steps, params.get("explanation")))]
            case "model/rerouted", {"toModel": str(model)}:
                source = params.get("fromModel")
                return [ModelSwitched(to_model=model, from_model=source if isinstance(source, str) else None)]
            case _:
                return []

    # -- what is said

    def _item_started(self, item: Item) -> list[KnownEvent]:
        if item.get("type") in ("agentMessage", "plan"):
            events = self._answering()
            self._place(str(item.get("id")))
            return events
        return self._call(item)

    def _item_completed(self, item: Item) -> list[KnownEvent]:
        name = str(item.get("id"))
        match item.get("type"):
            case "agentMessage" | "plan":
                return self._message(name, item)
            case "reasoning":
                return self._reasoning(name, item)
            case _:
                return [*self._call(item), *self._result(item)]

    def _message(self, name: str, item: Item) -> list[KnownEvent]:
        text = str(item.get("text") or "")
        if item.get("type") == "plan":
            self.plan_text = text
        if self._is_done(name):
            return []
        if not text:
            return []
        events = self._answering(name)
        answer, block = self._place(name)
        answer.done.add(name)
        return [*events, TextFinished(message=answer.message, block=block, text=text)]

    def _reasoning(self, name: str, item: Item) -> list[KnownEvent]:
        text = "\n\n".join(_strings(item.get("summary"))) or "\n\n".join(_strings(item.get("content")))
        # Most thoughts are kept secret: an item without a word of it.
        if not text or self._is_done(name):
            return []
        events = self._answering(name)
        answer, block = self._place(name)
        answer.done.add(name)
        return [*events, ThinkingFinished(message=answer.message, block=block, text=text)]

    def _text(self, name: str, text: str) -> list[KnownEvent]:
        events = [*self._answering(name), *self._doing("working")]
        answer, block = self._place(name)
        return [*events, TextDelta(message=answer.message, block=block, text=text)]

    def _thinking(self, name: str, text: str, part: object) -> list[KnownEvent]:
        events = [*self._answering(name), *self._doing("thinking")]
        answer, block = self._place(name)
        number = part if isinstance(part, int) else 0
        if number > answer.thought_parts.setdefault(name, number):
            answer.thought_parts[name] = number
            text = f"\n\n{text}"
        return [*events, ThinkingDelta(message=answer.message, block=block, text=text)]

    def _answering(self, name: str | None = None) -> list[KnownEvent]:
        """Begins an answer when none is open, or when the open one has had its results and is spoken after."""
        answer = self._answer
        if answer is not None and (not answer.has_results or name in answer.blocks):
            return []
        events: list[KnownEvent] = self._finish_answer(None) if answer is not None else []
        if self._retrying:
            self._retrying = False
            self._activity = "thinking"
            events.append(TurnStatus(status="thinking"))
        self._answer = _Answer(self._new_id())
        events.append(AnswerStarted(message=self._answer.message, replaces=self._replaces))
        self._replaces = None
        return events

    def _is_done(self, name: str) -> bool:
        return self._answer is not None and name in self._answer.done

    def _place(self, name: str) -> tuple[_Answer, int]:
        assert self._answer is not None
        if name not in self._answer.blocks:
            self._answer.blocks[name] = self._answer.count
            self._answer.count += 1
        return self._answer, self._answer.blocks[name]

    def _doing(self, activity: Activity, detail: str | None = None) -> list[KnownEvent]:
        if activity == self._activity:
            return []
        self._activity = activity
        return [TurnStatus(status=activity, detail=detail)]

    # -- tools

    def _call(self, item: Item) -> list[KnownEvent]:
        name = str(item.get("id"))
        tool = tool_of(item, self._project)
        if tool is None or name in self.calls:
            return []
        # A call beside a result of the same answer is still of that answer: calls run while more of them come.
        events = self._answering() if self._answer is None else []
        answer, block = self._place(name)
        answer.has_calls = True
        call = self.calls[name] = ToolCall(self._new_id(), tool.name, tool.input, item)
        events += self._doing("calling_tool", tool.name)
        events.append(
            ToolCalled(
                message=answer.message,
                block=block,
                call=call.call,
                name=call.name,
                input=dict(call.input),
                provider={"id": name},
            )
        )
        if is_running(item) and not self._may_be_asked(item):
            events += self.started(call, self._grant)
        return events

    def _may_be_asked(self, item: Item) -> bool:
        """A patch says nothing of whether it waits for a yes; its result follows at once when it does not."""
        return item.get("type") in ("fileChange", "mcpToolCall")

    def started(
        self, call: ToolCall, grant: str, request: str | None = None, hash: str | None = None
    ) -> list[KnownEvent]:
        if call.started or call.finished:
            return []
        call.started = True
        return [ToolStarted(call=call.call, grant=grant, request=request, hash=hash)]

    def _output(self, name: str, text: str) -> list[KnownEvent]:
        call = self.calls.get(name)
        if call is None or call.finished:
            return []
        call.output.append(text)
        return [*self.started(call, self._grant), ToolOutputDelta(call=call.call, text=text)]

    def _result(self, item: Item) -> list[KnownEvent]:
        call = self.calls.get(str(item.get("id")))
        if call is None or call.finished:
            return []
        result = result_of(item)
        if result.status == "declined":
            return self._deny(call)
        events = self.started(call, self._grant)
        call.finished = True
        if self._answer is not None:
            self._answer.has_results = True
        if result.status == "ok" and (changes := file_changes(item, self._project)):
            events.append(FilesChanged(files=changes, call=call.call))
        code = f" with code {result.exit_code}" if result.exit_code is not None else ""
        error = None if result.status == "ok" else ToolError(code="tool_error", message=f"It failed{code}.")
        finished = ToolFinished(
            call=call.call,
            ok=result.status == "ok",
            output=result.output,
            error=error,
            exit_code=result.exit_code,
            duration_ms=result.duration_ms,
        )
        return [*events, finished]

    def _deny(self, call: ToolCall) -> list[KnownEvent]:
        call.finished = True
        if self._answer is not None:
            self._answer.has_results = True
        error = ToolError(code="tool_denied", message=call.declined or DECLINED)
        return [ToolFinished(call=call.call, ok=False, error=error, effect="none")]

    # -- what it took, and how it ends

    def _usage(self, usage: Mapping[str, Any]) -> list[KnownEvent]:
        used = usage_since(usage, self._total)
        total = usage.get("total")
        self._total = total if isinstance(total, dict) else self._total
        if used == Usage():
            # Told again without a model call: at a stop, and when a stream was cut.
            return []
        self._unclaimed += used
        events = self._finish_answer(None) if self._answer is not None else []
        return [*events, *context_events(usage)]

    def _finish_answer(self, reason: str | None) -> list[KnownEvent]:
        answer, self._answer = self._answer, None
        if answer is None:
            return []
        usage, self._unclaimed = self._unclaimed, Usage()
        return [
            AnswerFinished(
                message=answer.message,
                finish_reason=reason or ("tool_calls" if answer.has_calls else "stop"),
                usage=usage if usage != Usage() else None,
                interrupted=reason == "stream_cut",
                provider=mark(NAME, self._session, conversation=self._conversation, turn=self.turn),
            )
        ]

    def _failure(self, error: Mapping[str, Any], will_retry: bool) -> list[KnownEvent]:
        if not will_retry:
            self.failure = error
            return []
        message = str(error.get("message") or "")
        number = _ATTEMPT.search(message)
        attempt, of = (int(number[1]), int(number[2])) if number else (1, 1)
        events: list[KnownEvent] = []
        if self._answer is not None and self._answer.has_calls:
            # What it called has run, and Codex remembers: the next attempt goes on from there.
            events += self._finish_answer("stream_cut")
        elif self._answer is not None:
            self._replaces = self._answer.message
            self._answer = None
        self._retrying = True
        reason = str(error.get("additionalDetails") or message)
        retry = Retry(attempt=attempt + 1, of=of + 1, after_s=0.0, reason=reason)
        return [*events, TurnStatus(status="thinking", retry=retry)]

    @property
    def left_running(self) -> bool:
        """Whether something began that has no end yet."""
        return any(call.started and not call.finished for call in self.calls.values())

    def ended(self, completed: bool, terminals: frozenset[str] = frozenset()) -> list[KnownEvent]:
        """Codex's turn is over: what it left open is closed. What was stopped is left for the conversation to settle.

        `terminals` are the items whose commands go on in the background."""
        events: list[KnownEvent] = []
        for name, call in self.calls.items():
            if call.finished:
                continue
            if call.declined is not None and not call.started:
                events += self._deny(call)
            elif completed and call.started:
                call.finished = True
                events.append(_left(call, name in terminals))
        if completed:
            events += self._finish_answer(None)
        return events

    @property
    def left_over(self) -> Usage:
        """Spent by model calls after the last answer."""
        return self._unclaimed


def _left(call: ToolCall, runs: bool) -> ToolFinished:
    output = "".join(call.output)
    if runs:
        return ToolFinished(call=call.call, ok=True, output=output + STILL_RUNNING, effect="unknown")
    error = ToolError(code="tool_error", message=UNKNOWN_END)
    return ToolFinished(call=call.call, ok=False, output=output, error=error, effect="unknown")


def _plan(steps: list[Any], explanation: object) -> Plan:
    items = tuple(
        PlanItem(title=str(step.get("step")), status=_STEP.get(str(step.get("status")), "pending"))  # type: ignore[arg-type]
        for step in steps
        if isinstance(step, dict)
    )
    done = bool(items) and all(item.status == "done" for item in items)
    return Plan(summary=str(explanation or ""), items=items, status="completed" if done else "executing")


def _strings(value: object) -> list[str]:
    return [part for part in value if isinstance(part, str)] if isinstance(value, list) else []

"""What Claude Code prints, as canonical events. Pure: lines go in, events come out, nothing waits.

Used by `conduct` with one `Reading` a turn. The program tells everything twice: as a stream of deltas, and as one line for
each finished block. The line is the truth and replaces its deltas. What a subagent says has a parent; it becomes output of
the call that started the subagent and never part of the answer's own text. A line of an unknown kind says nothing here.

Seen with 2.1.325: the line of a block comes before that block's `content_block_stop`; a cut answer is followed by another
message that goes on with it; an agent that runs in the background has its call answered at once, and ends later.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palaver.backends.claude.results import (
    NOTHING_SPENT,
    Result,
    context_events,
    exit_code_of,
    files_changed,
    finish_call,
    retry_of,
    task_finished,
    text_of,
    usage_of,
)
from palaver.backends.excerpts import pieces
from palaver.schema.base import Usage
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    FilesChanged,
    KnownEvent,
    ProcessFinished,
    ProcessStarted,
    TextDelta,
    TextFinished,
    ThinkingDelta,
    ThinkingFinished,
    ToolCalled,
    ToolInputDelta,
    ToolOutputDelta,
    ToolStarted,
    TurnStatus,
)

Line = Mapping[str, Any]

RULES_GRANT = "claude:rules"
"""The grant of a call that the program's own rules let through without asking."""
AGENTS = frozenset({"Agent", "Task"})
SUBAGENT_CHARS = 2_000
"""Of one result a subagent got: enough to follow it. The subagent's own report is the call's result."""
SYNTHETIC = "<synthetic>"
"""The model of a message that the program wrote itself, about an error."""


@dataclass(slots=True)
class Call:
    """A tool call of the answer. `id` is ours."""

    id: str
    name: str
    input: Any = None
    asked: bool = False
    denied: bool = False
    started: bool = False
    ended: bool = False
    task: str | None = None
    """Works on in the background: its end is that of this task."""


@dataclass(slots=True)
class _Answer:
    message: str
    theirs: str
    model: str | None
    streaming: int | None = None
    """The block that is being streamed."""
    kinds: dict[int, str] = field(default_factory=dict[int, str])
    calls: dict[int, tuple[str, str]] = field(default_factory=dict[int, tuple[str, str]])
    """By block: the program's id and the tool's name."""
    whole: int = 0
    """Blocks that are there as a whole."""
    at: str | None = None
    usage: Usage = NOTHING_SPENT
    stop_reason: str | None = None
    stopped: bool = False


class Reading:
    """One turn's reading. `tasks` outlives it: what runs in the background, by the program's id."""

    def __init__(
        self,
        new_id: Callable[[], str],
        mark: Callable[[str | None, float | None], dict[str, Any]],
        tasks: dict[str, str] | None = None,
        cost_usd: float = 0.0,
        root: Path | None = None,
    ) -> None:
        self._new_id = new_id
        self._mark = mark
        self._root = root
        self._retrying = False
        self._answer: _Answer | None = None
        self._parents: dict[str, str] = {}
        self._continues = False
        self.calls: dict[str, Call] = {}
        """By the program's id."""
        self.tasks = tasks if tasks is not None else {}
        self.new_tasks: set[str] = set()
        self.cost_usd = cost_usd
        """Of the whole session so far: what the program tells is the sum since it began."""
        self.result: Result | None = None
        self.failure: str | None = None
        """The kind of error that the program itself reported."""
        self.answers: list[str] = []

    def begin(self) -> None:
        """A message follows: how the one before it went is past."""
        self.result = self.failure = None

    def read(self, line: Line) -> list[KnownEvent]:
        parent = line.get("parent_tool_use_id")
        match line.get("type"):
            case "stream_event" if not parent:
                return self._stream(_dict(line.get("event")))
            case "assistant" | "user" if parent:
                return self._of_subagent(str(parent), line)
            case "assistant":
                return self._message(line)
            case "user":
                return self._results(line)
            case "system":
                return self._told(line)
            case "result":
                return self._over(line)
            case _:
                return []

    def call_of(self, theirs: str | None) -> Call | None:
        """The call of the answer that something belongs to: itself, or the one that its subagent was started by."""
        seen: set[str] = set()
        while theirs is not None and theirs not in self.calls and theirs not in seen:
            seen.add(theirs)
            theirs = self._parents.get(theirs)
        return self.calls.get(theirs) if theirs else None

    def started(self, theirs: str) -> list[KnownEvent]:
        """The program lets a call run by its own rules."""
        call = self.calls.get(theirs)
        if call is None or call.started or call.ended or call.asked:
            return []
        call.started = True
        return [ToolStarted(call=call.id, grant=RULES_GRANT)]

    # -- the stream

    def _stream(self, event: Line) -> list[KnownEvent]:
        answer = self._answer
        match event.get("type"):
            case "message_start":
                return self._begin(_dict(event.get("message")))
            case "content_block_start" if answer:
                return self._block_begins(answer, int(event.get("index") or 0), _dict(event.get("content_block")))
            case "content_block_delta" if answer:
                return self._delta(answer, int(event.get("index") or 0), _dict(event.get("delta")))
            case "content_block_stop" if answer:
                answer.streaming = None
            case "message_delta" if answer:
                answer.stop_reason = _dict(event.get("delta")).get("stop_reason") or answer.stop_reason
                answer.usage = usage_of(_dict(event.get("usage")), answer.usage)
            case "message_stop" if answer:
                answer.stopped = True
                # The last answer waits for the result, which tells what the turn cost.
                return self._end_answer() if answer.stop_reason == "tool_use" else []
            case _:
                pass
        return []

    def _begin(self, message: Line) -> list[KnownEvent]:
        before = self._answer
        replaced: str | None = None
        events: list[KnownEvent] = []
        if before is not None:
            if before.stop_reason is None and before.whole == 0 and not self._continues:
                # Cut before any block of it was whole: the program starts over, and so does the answer. It closes the
                # stream of a cut one itself (`message_stop`), but knows no reason why the model would have stopped.
                replaced = before.message
                self.answers.remove(replaced)
                self._answer = None
            else:
                events = self._end_answer()
        self._continues = False
        if self._retrying:
            self._retrying = False
            events.append(TurnStatus(status="thinking"))
        answer = _Answer(self._new_id(), str(message.get("id") or ""), message.get("model"))
        answer.usage = usage_of(_dict(message.get("usage")))
        self._answer = answer
        self.answers.append(answer.message)
        return [*events, AnswerStarted(message=answer.message, model=answer.model, replaces=replaced)]

    def _block_begins(self, answer: _Answer, index: int, block: Line) -> list[KnownEvent]:
        answer.streaming = index
        answer.kinds[index] = kind = str(block.get("type"))
        if kind != "tool_use":
            return []
        theirs, name = str(block.get("id")), str(block.get("name"))
        answer.calls[index] = theirs, name
        call = self.calls.setdefault(theirs, Call(self._new_id(), name))
        return [ToolInputDelta(message=answer.message, block=index, call=call.id, name=name)]

    def _delta(self, answer: _Answer, index: int, delta: Line) -> list[KnownEvent]:
        match delta.get("type"):
            case "text_delta":
                return [TextDelta(message=answer.message, block=index, text=one) for one in pieces(str(delta["text"]))]
            case "thinking_delta":
                parts = pieces(str(delta["thinking"]))
                return [ThinkingDelta(message=answer.message, block=index, text=one) for one in parts]
            case "input_json_delta" if index in answer.calls:
                theirs, name = answer.calls[index]
                return [
                    ToolInputDelta(message=answer.message, block=index, call=self.calls[theirs].id, name=name, text=one)
                    for one in pieces(str(delta.get("partial_json") or ""))
                ]
            case _:
                return []

    # -- whole blocks

    def _message(self, line: Line) -> list[KnownEvent]:
        message = _dict(line.get("message"))
        if message.get("model") == SYNTHETIC:
            self.failure = str(line.get("error") or "unknown")
            return []
        events: list[KnownEvent] = []
        if self._answer is None or self._answer.theirs != message.get("id"):
            # Not streamed: the program fell back to a request without a stream.
            events += self._begin(message)
        answer = self._answer
        assert answer is not None
        answer.at = line.get("uuid") or answer.at
        answer.stop_reason = message.get("stop_reason") or answer.stop_reason
        for block in _blocks(message):
            events += self._block(answer, block, interrupted=bool(line.get("aborted")))
        return events

    def _block(self, answer: _Answer, block: Line, *, interrupted: bool) -> list[KnownEvent]:
        index = answer.streaming if answer.streaming is not None else len(answer.kinds)
        answer.kinds[index] = str(block.get("type"))
        # A second block of the same line goes after it.
        answer.streaming = None
        answer.whole += 1
        match block.get("type"):
            case "text":
                return [
                    TextFinished(
                        message=answer.message, block=index, text=str(block.get("text")), interrupted=interrupted
                    )
                ]
            case "thinking":
                return [
                    ThinkingFinished(
                        message=answer.message,
                        block=index,
                        text=str(block.get("thinking")),
                        signature=block.get("signature") or None,
                        interrupted=interrupted,
                    )
                ]
            case "redacted_thinking":
                return [
                    ThinkingFinished(message=answer.message, block=index, text="", redacted=True, provider=dict(block))
                ]
            case "tool_use":
                return [self._call(answer, index, block)]
            case _:
                return []

    def _call(self, answer: _Answer, index: int, block: Line) -> KnownEvent:
        theirs, name = str(block.get("id")), str(block.get("name"))
        call = self.calls.setdefault(theirs, Call(self._new_id(), name))
        call.input = block.get("input")
        return ToolCalled(
            message=answer.message,
            block=index,
            call=call.id,
            name=name,
            input=call.input,
            provider={"by": "claude", "id": theirs},
        )

    def _end_answer(self, cost_usd: float | None = None) -> list[KnownEvent]:
        answer, self._answer = self._answer, None
        if answer is None:
            return []
        return [
            AnswerFinished(
                message=answer.message,
                finish_reason=answer.stop_reason or "cut",
                usage=answer.usage if answer.usage != NOTHING_SPENT else None,
                cost_usd=cost_usd,
                model=answer.model,
                provider=self._mark(answer.at, self.cost_usd),
            )
        ]

    # -- results of tools

    def _results(self, line: Line) -> list[KnownEvent]:
        if line.get("isSynthetic"):
            # "Your response above was cut off": what comes next goes on from the part that is there.
            self._continues = True
        events: list[KnownEvent] = []
        for block in _blocks(_dict(line.get("message"))):
            if block.get("type") == "tool_result":
                events += self._result(str(block.get("tool_use_id")), block, line)
        return events

    def _result(self, theirs: str, block: Line, line: Line) -> list[KnownEvent]:
        call = self.calls.get(theirs)
        if call is None or call.ended:
            return []
        if call.task is not None:
            # It was only sent off; what it does comes as output, and its report at its end.
            return self.started(theirs)
        ended = finish_call(call.id, call.name, block, line, denied=call.denied)
        events = self.started(theirs) if ended.effect != "none" else []
        call.ended = True
        if changed := files_changed(line.get("tool_use_result"), self._root):
            events.append(FilesChanged(files=changed, call=call.id))
        return [*events, ended]

    def _of_subagent(self, parent: str, line: Line) -> list[KnownEvent]:
        call = self.call_of(parent)
        said: list[str] = []
        for block in _blocks(_dict(line.get("message"))):
            match block.get("type"):
                case "text" if line.get("type") == "assistant":
                    said.append(str(block.get("text")))
                case "tool_use":
                    self._parents[str(block.get("id"))] = parent
                    said.append(f"→ {block.get('name')} {_short(block.get('input'))}")
                case "tool_result":
                    said.append(_cut(text_of(block.get("content"))))
                case _:
                    pass
        if call is None or call.ended or not said:
            return []
        return [
            *self.started(parent),
            *(ToolOutputDelta(call=call.id, text=one) for one in pieces("\n".join(said) + "\n")),
        ]

    # -- what the program tells of itself

    def _told(self, line: Line) -> list[KnownEvent]:
        match line.get("subtype"):
            case "api_retry":
                self._retrying = True
                return [retry_of(line)]
            case "task_started":
                return self._task_started(line)
            case "task_notification":
                return self._task_ended(line)
            case "status" if line.get("status") == "compacting":
                return [TurnStatus(status="working", detail="making its memory of the conversation shorter")]
            case _:
                return []

    def _task_started(self, line: Line) -> list[KnownEvent]:
        task, theirs = str(line.get("task_id")), str(line.get("tool_use_id"))
        call = self.calls.get(theirs)
        if not line.get("is_backgrounded"):
            return self.started(theirs)
        if line.get("task_type") == "local_agent" and call is not None and not call.ended:
            call.task = task
            return self.started(theirs)
        self.tasks[task] = process = self._new_id()
        self.new_tasks.add(task)
        started = ProcessStarted(
            process=process, command=str(line.get("description") or "a task"), call=call.id if call else None
        )
        return [*self.started(theirs), started]

    def _task_ended(self, line: Line) -> list[KnownEvent]:
        task = str(line.get("task_id"))
        process = self.tasks.pop(task, None)
        self.new_tasks.discard(task)
        if process is not None:
            return [ProcessFinished(process=process, exit_code=exit_code_of(line))]
        call = next((one for one in self.calls.values() if one.task == task and not one.ended), None)
        if call is None:
            return []
        call.ended = True
        return [task_finished(call.id, line)]

    def _over(self, line: Line) -> list[KnownEvent]:
        self.result = Result.of(line)
        total = line.get("total_cost_usd")
        cost_usd: float | None = None
        if isinstance(total, int | float):
            # Less than before: a session that counts from its own beginning.
            cost_usd = float(total) - self.cost_usd if total >= self.cost_usd else float(total)
            self.cost_usd = float(total)
        if self._answer is not None and not self._answer.stopped and self._answer.whole == 0:
            return []
        model = self._answer.model if self._answer is not None else None
        used = self._answer.usage if self._answer is not None else NOTHING_SPENT
        return [*self._end_answer(cost_usd or None), *context_events(line, model, used)]


def _blocks(message: Line) -> list[Line]:
    content = message.get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _short(value: Any) -> str:
    given = value if isinstance(value, dict) else {}
    return _cut(" ".join(str(part) for part in given.values()).replace("\n", " "))[:200]


def _cut(text: str) -> str:
    return text if len(text) <= SUBAGENT_CHARS else f"{text[:SUBAGENT_CHARS]} […]"


def _dict(value: Any) -> Line:
    return value if isinstance(value, dict) else {}

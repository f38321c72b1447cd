"""Turns the steps of a script into the events of a turn.

Called by `backend.py` with a script of `script.py`. A generator of moves: most are events to yield, the others ask the
caller to wait for something and to send back what came of it. It never waits by itself, so it needs no event loop, and a
turn that is stopped simply stops asking for the next move.
"""

import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import assert_never

import msgspec

from palaver.backends.base import Turn
from palaver.backends.script.script import (
    Ask,
    Background,
    Boundary,
    Compress,
    Confirm,
    Emit,
    EndBackground,
    Fail,
    Finish,
    Pause,
    Recall,
    Reply,
    Say,
    Script,
    ShowPlan,
    Status,
    Step,
    Think,
    Tool,
    Tools,
    Wait,
    allows,
)
from palaver.backends.script.steps import Back, Commit, Deliveries, Gate, Move, Moves, ProcessEnd, Sleep, asking
from palaver.backends.script.tool import approval, decline, not_run, play_tool
from palaver.schema.base import Usage
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    ContextCompressed,
    KnowledgeRecalled,
    ModelSwitched,
    PlanUpdated,
    ProcessStarted,
    RequestOpened,
    RequestResolved,
    TextDelta,
    TextFinished,
    ThinkingDelta,
    ThinkingFinished,
    ToolCalled,
    ToolFinished,
    ToolInputDelta,
    TurnFinished,
    TurnStatus,
)
from palaver.schema.view import Activity, Message, TextBlock, ThinkingBlock, ToolBlock

INPUT_CHUNK_CHARS = 24
"""Arguments stream in pieces of about the size that providers send."""

CHARS_PER_TOKEN = 4
"""The usual rule of thumb: a script has no tokenizer."""

Delivered = Callable[[Sequence[Message]], Iterable[Step]]

_FRAGMENT = re.compile(r"\s*\S{1,8}|\s+")


def fragments(text: str, chunk: int | None = None) -> list[str]:
    """The text in pieces of `chunk` characters, or of about a word each; joined they are the text again."""
    if chunk is None:
        return _FRAGMENT.findall(text)
    return [text[at : at + chunk] for at in range(0, len(text), chunk)]


class Player:
    """One turn of a script."""

    def __init__(self, turn: Turn, *, tokens_per_s: float = 0.0, delivered: Delivered | None = None) -> None:
        self._turn = turn
        self._tokens_per_s = tokens_per_s
        self._delivered = delivered
        self._model = turn.agent.model
        self._activity: Activity = "idle"
        self._message: str | None = None
        self._blocks = 0
        self._tokens = 0
        self._usage = Usage()
        self._finish: Finish | None = None
        self._processes: dict[str, str] = {}

    def play(self, script: Script) -> Moves:
        began_ms = self._turn.now_ms()
        yield from self._steps(script)
        yield from self._close_answer("stop")
        if self._delivered and self._finish is None:
            # What came during the last words still belongs to this turn. Without a reaction it is left to the next one.
            yield from self._take_deliveries()
        finish = self._finish or Finish()
        yield TurnFinished(
            outcome=finish.outcome,
            summary=finish.summary,
            usage=self._usage,
            duration_ms=self._since(began_ms),
        )

    def _steps(self, script: Script) -> Moves:
        steps = iter(script)
        step = next(steps, None)
        while step is not None:
            reply = yield from self._step(step)
            if self._finish is not None:
                break
            step = _next_step(steps, reply)

    def _step(self, step: Step) -> Generator[Move, Back, Reply]:
        match step:
            case Say():
                yield from self._say(step)
            case Think():
                yield from self._think(step)
            case Tool():
                return (yield from self._tools((step,)))
            case Tools():
                return (yield from self._tools(step.calls, together=step.together))
            case Ask():
                return (yield from self._ask(step))
            case Confirm():
                return (yield from self._confirm(step))
            case ShowPlan():
                return (yield from self._plan(step))
            case Status():
                yield TurnStatus(status=step.status, detail=step.detail, retry=step.retry)
            case Recall():
                asked = next((known for known in reversed(self._turn.history) if known.role == "user"), None)
                yield KnowledgeRecalled(
                    message=asked.id if asked else None, sources=step.sources, tokens=step.tokens, text=step.text
                )
            case Compress():
                yield from self._compress(step)
            case Background():
                process = self._processes[step.command] = self._turn.new_id()
                yield ProcessStarted(process=process, command=step.command)
            case EndBackground():
                yield Commit()
                yield ProcessEnd(self._processes[step.command], step.exit_code, step.text)
            case Emit():
                if isinstance(step.event, ModelSwitched):
                    self._model = step.event.to_model
                yield step.event
            case Boundary():
                yield from self._close_answer("stop")
            case Pause():
                yield Sleep(step.seconds)
            case Wait():
                yield Gate(step.gate)
            case Fail():
                raise step.error
            case Finish():
                self._finish = step
            case _:
                assert_never(step)
        return Reply()

    def _compress(self, step: Compress) -> Moves:
        yield from self._close_answer("stop")
        yield Commit()
        horizon = self._turn.state.seq + 1
        for at, stage in enumerate(step.stages):
            last = at == len(step.stages) - 1
            yield ContextCompressed(
                stage=stage,
                strength=step.strength,
                before_tokens=step.tokens[at],
                after_tokens=step.tokens[at + 1],
                horizon=horizon,
                summary=step.summary if last else None,
            )

    # -- an answer is one model call

    def _open_answer(self) -> Generator[Move, Back, str]:
        if self._message is None:
            yield from self._take_deliveries()
            self._message = self._turn.new_id()
            self._blocks = self._tokens = 0
            self._activity = "thinking"
            yield TurnStatus(status="thinking")
            yield AnswerStarted(message=self._message, model=self._model)
        return self._message

    def _take_deliveries(self) -> Moves:
        back = yield Deliveries()
        joined = [message for message in back or () if isinstance(message, Message)]
        if joined and self._delivered:
            yield from self._steps(self._delivered(joined))
            yield from self._close_answer("stop")

    def _close_answer(self, finish_reason: str) -> Moves:
        if self._message is None:
            return
        usage = Usage(input_tokens=tokens_in(self._turn.history), output_tokens=self._tokens)
        self._usage += usage
        message, self._message = self._message, None
        yield AnswerFinished(message=message, finish_reason=finish_reason, usage=usage, model=self._model)

    def _say(self, step: Say) -> Moves:
        message = yield from self._open_answer()
        block = self._next_block()
        yield from self._now("working")
        for piece in self._stream(step.text, step.chunk):
            yield TextDelta(message=message, block=block, text=piece)
            yield from self._pace(1)
        yield TextFinished(message=message, block=block, text=step.text)

    def _think(self, step: Think) -> Moves:
        message = yield from self._open_answer()
        block = self._next_block()
        began_ms = self._turn.now_ms()
        yield from self._now("thinking")
        for piece in self._stream(step.text, step.chunk):
            yield ThinkingDelta(message=message, block=block, text=piece)
            yield from self._pace(1)
        took_ms = self._since(began_ms)
        yield ThinkingFinished(message=message, block=block, text=step.text, duration_ms=took_ms)

    def _now(self, activity: Activity) -> Iterator[TurnStatus]:
        if self._activity != activity:
            self._activity = activity
            yield TurnStatus(status=activity)

    def _since(self, began_ms: int) -> int:
        return max(0, self._turn.now_ms() - began_ms)

    def _next_block(self) -> int:
        self._blocks += 1
        return self._blocks - 1

    def _stream(self, text: str, chunk: int | None) -> list[str]:
        pieces = fragments(text, chunk)
        self._tokens += len(pieces)
        return pieces

    def _pace(self, tokens: int) -> Iterator[Sleep]:
        if self._tokens_per_s:
            yield Sleep(tokens / self._tokens_per_s)

    # -- tools

    def _tools(self, tools: tuple[Tool, ...], *, together: bool = False) -> Generator[Move, Back, Reply]:
        calls = yield from self._call(tools)
        yield TurnStatus(status="calling_tool", detail=", ".join(dict.fromkeys(tool.name for tool in tools)))
        decisions: list[RequestResolved] = []
        approvals = [
            approval(self._turn, call, tool) for call, tool in zip(calls, tools, strict=True) if together and tool.asks
        ]
        early = {asked.call: answer for asked, answer in zip(approvals, (yield from asking(*approvals)), strict=True)}
        for call, tool in zip(calls, tools, strict=True):
            if self._finish is not None:
                yield not_run(call, "tool_denied", "The turn was stopped before this call; nothing was done.")
                continue
            decision = early.get(call)
            if decision is None and tool.asks:
                [decision] = yield from asking(approval(self._turn, call, tool))
            if decision is not None:
                decisions.append(decision)
            if decision is None or allows(decision):
                yield from play_tool(self._turn, call, tool, decision)
                continue
            yield decline(call, decision)
            if decision.then == "stop":
                self._finish = Finish("interrupted", f"{tool.title or tool.name} was declined.")
        return Reply(tuple(decisions))

    def _call(self, tools: tuple[Tool, ...]) -> Generator[Move, Back, list[str]]:
        """The end of an answer that makes these calls: first all their arguments, then the calls."""
        message = yield from self._open_answer()
        called: list[ToolCalled] = []
        for tool in tools:
            block, call, arguments = self._next_block(), self._turn.new_id(), tool.input
            yield from self._now("calling_tool")
            for piece in self._stream(json.dumps(arguments, ensure_ascii=False), INPUT_CHUNK_CHARS):
                yield ToolInputDelta(message=message, block=block, call=call, name=tool.name, text=piece)
                yield from self._pace(1)
            called.append(ToolCalled(message=message, block=block, call=call, name=tool.name, input=arguments))
        yield from called
        yield from self._close_answer("tool_calls")
        return [each.call for each in called]

    # -- requests without a tool's effect

    def _ask(self, step: Ask) -> Generator[Move, Back, Reply]:
        questions = msgspec.to_builtins(step.questions)
        [call] = yield from self._call((Tool("ask_user", {"questions": questions}),))
        [resolved] = yield from asking(
            RequestOpened(
                request=self._turn.new_id(),
                kind="question",
                call=call,
                agent=self._turn.agent.id,
                tool="ask_user",
                title=step.questions[0].question,
                questions=step.questions,
            )
        )
        if resolved.status == "answered" and resolved.verdict != "deny":
            answers = msgspec.json.encode(resolved.answers).decode() if resolved.answers else resolved.text or ""
            yield ToolFinished(call=call, ok=True, output=answers, effect="none")
        else:
            yield decline(call, resolved)
        return Reply((resolved,))

    def _confirm(self, step: Confirm) -> Generator[Move, Back, Reply]:
        yield from self._close_answer("stop")
        asked = RequestOpened(
            request=self._turn.new_id(),
            kind="approval",
            agent=self._turn.agent.id,
            title=step.title,
            preview=step.preview,
            risk=step.risk,
        )
        return Reply(tuple((yield from asking(asked))))

    def _plan(self, step: ShowPlan) -> Generator[Move, Back, Reply]:
        yield from self._close_answer("stop")
        yield PlanUpdated(plan=step.plan)
        if step.plan is None or not step.asks:
            return Reply()
        [resolved] = yield from asking(
            RequestOpened(
                request=self._turn.new_id(),
                kind="plan",
                agent=self._turn.agent.id,
                title=step.plan.summary,
                plan=step.plan,
            )
        )
        return Reply((resolved,))


def _next_step(steps: Iterator[Step], reply: Reply) -> Step | None:
    """The step after this one. A generator is told how this one went."""
    if not isinstance(steps, Generator):
        return next(steps, None)
    try:
        following_step: Step = steps.send(reply)
    except StopIteration:
        return None
    return following_step


def tokens_in(history: Sequence[Message]) -> int:
    chars = 0
    for message in history:
        for block in message.blocks:
            match block:
                case TextBlock() | ThinkingBlock():
                    chars += len(block.text)
                case ToolBlock():
                    chars += len(block.output)
                case _:
                    pass
    return chars // CHARS_PER_TOKEN

"""What Pi asks in the middle of a turn: may a tool run, what is the result of one of ours (our extension asks both), or
whatever a person's own extensions ask.

Used by the backend, one `Asking` a turn. A permission is judged first and put to a person only where the policy says so;
the grant is on disk before Pi is told. A call of a tool of ours runs by itself and is answered when it has its result; its
grant was given before, as for any other. Other dialogs become questions.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from palaver.approval.program_calls import Judged, Judging
from palaver.backends.base import Turn
from palaver.backends.own_tools import OwnCalls, describe_call
from palaver.backends.pi.events import Call, Translation
from palaver.backends.pi.process import Line, Link, ours
from palaver.backends.pi.proposals import describe, request_of
from palaver.schema.events import GrantAdded, KnownEvent, RequestOpened, RequestResolved
from palaver.schema.view import Question, QuestionOption
from palaver.tasks import running, wait_first
from palaver.tools.base import Proposal, ToolResult, ToolSpec

CLEANUP_S = 1.0


@dataclass(frozen=True, slots=True)
class Waiting:
    """A dialog of Pi's that wants an answer."""

    id: str
    request: RequestOpened
    call: Call | None = None
    judged: Judged | None = None
    dialog: str = "select"


@dataclass(frozen=True, slots=True)
class Answered:
    waiting: Waiting
    resolved: RequestResolved | None
    """None: the policy itself decided."""


class Asking:
    def __init__(self, turn: Turn, judging: Judging, own: OwnCalls, link: Link) -> None:
        self._turn = turn
        self._judging = judging
        self._own = own
        self._link = link
        self._asked: dict[asyncio.Task[RequestResolved], Waiting] = {}
        self._decided: list[Waiting] = []
        self.stopped: str | None = None
        """Why the turn ends: a person declined and wants no more."""

    async def next(self, inbox: "asyncio.Queue[Line | None]") -> Line | Answered | None:
        """What happens next: the policy has decided, Pi says something, or a person answers."""
        if self._decided:
            return Answered(self._decided.pop(0), None)
        async with running(inbox.get(), "hear pi") as hearing:
            await wait_first(hearing, *self._asked)
            if hearing.done():
                return hearing.result()
        task = next(task for task in self._asked if task.done())
        return Answered(self._asked.pop(task), task.result())

    def heard(self, line: Line, said: Translation) -> list[KnownEvent]:
        dialog, known = line.get("method"), line.get("id")
        if dialog not in ("select", "confirm", "input", "editor") or not isinstance(known, str):
            return []
        told = ours(line) or {}
        match told.get("palaver"):
            case "permission":
                return self._permission(known, told, said)
            case "call":
                self._own_call(known, told, said)
            case _:
                self._ask(Waiting(known, self._question(line), dialog=str(dialog)))
        return []

    def _permission(self, known: str, told: Mapping[str, Any], said: Translation) -> list[KnownEvent]:
        given = told.get("input")
        arguments = given if isinstance(given, Mapping) else {}
        name = str(told.get("tool") or "tool")
        call, events = said.asking(str(told.get("call")), name, arguments)
        judged = self._judging.judge(self._turn, *self._describe(name, arguments, told.get("own") is True))
        waiting = Waiting(known, request_of(self._judging, self._turn, call, judged), call, judged)
        if judged.verdict.decision == "ask":
            self._ask(waiting)
        else:
            self._decided.append(waiting)
        return events

    def _describe(self, name: str, arguments: Mapping[str, Any], own: bool) -> tuple[ToolSpec, Proposal]:
        tool = self._own.tools.get(name) if own else None
        project = self._turn.project
        return describe(name, arguments, project) if tool is None else describe_call(tool, arguments, project)

    def _own_call(self, known: str, told: Mapping[str, Any], said: Translation) -> None:
        call = said.calls.get(str(told.get("call")))

        async def answer(result: ToolResult) -> None:
            text = result.output if result.ok else result.error or ""
            value = msgspec.json.encode({"ok": result.ok, "text": text}).decode()
            await self._link.send({"type": "extension_ui_response", "id": known, "value": value})

        self._own.begin(str(told.get("tool")), told.get("input"), call.id if call else self._turn.new_id(), answer)

    async def answered(self, answered: Answered, said: Translation) -> AsyncGenerator[KnownEvent, None]:
        waiting, resolved, link = answered.waiting, answered.resolved, self._link
        if waiting.call is None or waiting.judged is None:
            assert resolved is not None
            await link.send({"type": "extension_ui_response", "id": waiting.id, **_answer_line(waiting, resolved)})
            return
        refusal = _refusal(waiting.judged, resolved)
        answer: dict[str, Any] = {"decision": "deny", "reason": refusal}
        if refusal is None:
            answer = {"decision": "allow"}
            if resolved is not None and isinstance(resolved.input, dict) and resolved.input != waiting.call.input:
                answer["input"] = resolved.input
            elif resolved is not None and resolved.scope != "once" and (grant := self._lasting(waiting, resolved)):
                yield await self._judging.grants.keep(self._turn, grant)
            grant_name = waiting.judged.verdict.grant if resolved is None else f"request:{resolved.request}"
            for event in said.start(waiting.call, grant_name, resolved.request if resolved else None):
                yield event
            # On disk before Pi may begin: whatever happens now, the log knows under which grant.
            await self._turn.committed()
        else:
            for event in said.refuse(waiting.call, refusal):
                yield event
            stops = resolved.then == "stop" if resolved else waiting.judged.verdict.decision == "deny_abort"
            if stops:
                self.stopped = f"{waiting.request.title or waiting.call.name} was declined."
        value = msgspec.json.encode(answer).decode()
        await link.send({"type": "extension_ui_response", "id": waiting.id, "value": value})
        if self.stopped is not None:
            await link.send({"type": "abort"})

    async def close(self) -> None:
        for task in self._asked:
            task.cancel()
        if self._asked:
            await asyncio.wait(self._asked, timeout=CLEANUP_S)
        await self._own.close()

    def _ask(self, waiting: Waiting) -> None:
        task = asyncio.create_task(self._turn.request(waiting.request), name=f"request {waiting.request.request}")
        self._asked[task] = waiting

    def _lasting(self, waiting: Waiting, resolved: RequestResolved) -> GrantAdded | None:
        offered = waiting.request.offers
        if waiting.judged is None or not 0 <= resolved.offer < len(offered):
            return None
        return GrantAdded(
            tool=waiting.judged.spec.name,
            scope=resolved.scope,
            match=offered[resolved.offer].match,
            agent=self._turn.agent.id,
            request=resolved.request,
        )

    def _question(self, line: Line) -> RequestOpened:
        title = str(line.get("title") or "Pi asks")
        message = line.get("message")
        options: tuple[str, ...] = ("Yes", "No") if line.get("method") == "confirm" else ()
        if isinstance(told := line.get("options"), list):
            options = tuple(str(option) for option in told)
        question = Question(
            question=f"{title}\n{message}" if isinstance(message, str) else title,
            header=title[:40],
            options=tuple(QuestionOption(label=option) for option in options),
        )
        return RequestOpened(
            request=self._turn.new_id(),
            kind="question",
            agent=self._turn.agent.id,
            title=title,
            questions=(question,),
        )


def _refusal(judged: Judged, resolved: RequestResolved | None) -> str | None:
    if resolved is None:
        return None if judged.verdict.decision == "allow" else judged.verdict.why
    said = f" They said: {resolved.text}" if resolved.text else ""
    if resolved.status == "expired":
        return "Nobody answered in time; it was not run."
    if resolved.status != "answered":
        return "The question was withdrawn; it was not run."
    return None if resolved.verdict == "allow" else f"The person declined this call; it was not run.{said}"


def _answer_line(waiting: Waiting, resolved: RequestResolved) -> Mapping[str, Any]:
    answer = resolved.answers[0] if resolved.answers else None
    if resolved.status != "answered" or answer is None:
        return {"cancelled": True}
    value = answer.custom_text or (answer.selected[0] if answer.selected else "")
    return {"confirmed": value == "Yes"} if waiting.dialog == "confirm" else {"value": value}

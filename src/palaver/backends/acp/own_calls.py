"""Calls of our tools in one turn of an ACP agent: each found among the calls that the agent tells of, judged, carried out.

Used by the conduct of a turn. A call reaches us twice: from the agent as an update over ACP, and from its MCP client through
`tools`, in either order and without a common name. They are one call when tool and arguments are the same; of equal ones it
makes no difference which is which. One that the agent tells nothing of is carried out all the same, unless somebody would
have to be asked.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from palaver.approval.program_calls import Judged, Judging
from palaver.backends.acp.events import Call, Translation
from palaver.backends.acp.tools import NAME, OwnCall
from palaver.backends.base import Turn
from palaver.backends.own_tools import OwnCalls, describe_call
from palaver.clock import Clock
from palaver.schema.events import RequestResolved
from palaver.tools.base import Tool, ToolResult

TOLD_S = 10.0
"""For the agent's word of a call that is here already: it comes through another pipe. opencode 1.18 took four seconds where
fifteen others wanted the processor."""
PREFIXES = (f"{NAME}_", f"mcp_{NAME}_", f"mcp__{NAME}__")
"""How agents call the tools of a server: opencode 1.18, Gemini CLI 0.61, Claude Code."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    own: OwnCall
    until_s: float


class OwnTurn:
    def __init__(self, turn: Turn, calls: OwnCalls, judging: Judging, clock: Clock) -> None:
        self._turn = turn
        self._clock = clock
        self._calls = calls
        self._judging = judging
        self._waiting: list[_Waiting] = []
        self._paired: set[str] = set()

    def tool_of(self, call: Call) -> Tool | None:
        """The tool of ours that a call of the agent's is for."""
        names = (call.name.removeprefix(prefix) for prefix in PREFIXES if call.name.startswith(prefix))
        return next((self._calls.tools[name] for name in names if name in self._calls.tools), None)

    def tool_called(self, own: OwnCall) -> Tool | None:
        return self._calls.tools.get(own.name)

    def judged(self, tool: Tool, call: Call) -> Judged:
        return self._judging.judge(self._turn, *describe_call(tool, call.input, self._turn.project))

    # -- the two ends of a call

    def heard(self, own: OwnCall) -> None:
        self._waiting.append(_Waiting(own, self._clock.monotonic_s() + TOLD_S))

    def left_s(self) -> float | None:
        """How long to wait for the agent's word at most."""
        if not self._waiting:
            return None
        return max(0.0, min(waiting.until_s for waiting in self._waiting) - self._clock.monotonic_s())

    def pair(self, said: Translation) -> Iterator[tuple[OwnCall, Call]]:
        """Those whose two ends have met. What has waited long enough begins by itself."""
        for waiting in list(self._waiting):
            own = waiting.own
            if own.answer.done():
                self._waiting.remove(waiting)
            elif (call := self._find_told(own, said)) is not None:
                self._waiting.remove(waiting)
                self._paired.add(call.id)
                yield own, call
            elif waiting.until_s <= self._clock.monotonic_s():
                self._waiting.remove(waiting)
                self._begin_untold(own)

    def _find_told(self, own: OwnCall, said: Translation) -> Call | None:
        for call in said.open_calls:
            same = self._is_for(call, own.name) and (not call.input or call.input == own.given)
            if call.id not in self._paired and (same or (call.input and call.input == own.given)):
                return call
        return None

    def _is_for(self, call: Call, name: str) -> bool:
        tool = self.tool_of(call)
        return tool is not None and tool.spec.name == name

    def _begin_untold(self, own: OwnCall) -> None:
        tool = self.tool_called(own)
        if tool is not None:
            verdict = self._judging.judge(self._turn, *describe_call(tool, own.given, self._turn.project)).verdict
            if verdict.decision != "allow":
                return self.refuse(own, verdict.why)
        return self.begin(own, self._turn.new_id())

    # -- what becomes of it

    def begin(self, own: OwnCall, call: str) -> None:
        async def answer(result: ToolResult) -> None:
            if not own.answer.done():
                own.answer.set_result(result)

        give_up = self._calls.begin(own.name, own.given, call, answer)
        # The agent wants it no longer: whoever works for it is stopped.
        own.answer.add_done_callback(lambda answer: give_up() if answer.cancelled() else None)

    def refuse(self, own: OwnCall, why: str) -> None:
        if not own.answer.done():
            own.answer.set_result(ToolResult(ok=False, error=why))

    async def given_up(self) -> None:
        """Returns once the agent has given a call up; what it had asked is then `withdraw`."""
        await self._calls.given_up.wait()

    def withdraw(self) -> list[RequestResolved]:
        return self._calls.withdraw()

    async def close(self) -> None:
        await self._calls.close()

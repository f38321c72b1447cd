"""Tools whose effect a test can count and hold back."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from palaver.approval.policy import Policy
from palaver.schema.events import RequestOpened, RequestResolved
from palaver.schema.view import Question
from palaver.tools.base import Proposal, ToolResult, ToolSpec, Workplace
from palaver.tools.toolbox import Toolbox

Work = Callable[[Mapping[str, Any], Workplace], Awaitable[ToolResult]]


class CountingTool:
    """Implements `tools.base.Tool`. `world` stands for the files it would change: it is part of the hash."""

    def __init__(
        self,
        name: str,
        work: Work | None = None,
        *,
        reads_only: bool = False,
        edits_only: bool = False,
        required: tuple[str, ...] = (),
        writes: bool = False,
    ) -> None:
        """With `writes` a call says that it changes the file `path` and nothing else."""
        self.spec = ToolSpec(
            name=name,
            description=f"The {name} of a test.",
            parameters={"type": "object", "properties": {}, "required": list(required)},
            reads_only=reads_only,
            edits_only=edits_only,
        )
        self.world = ""
        self.runs: list[dict[str, Any]] = []
        self.running = 0
        self.most_at_once = 0
        self._required = required
        self._writes = writes
        self._work = work

    def propose(self, arguments: Mapping[str, Any], root: Path) -> Proposal | ToolResult:
        for name in self._required:
            if name not in arguments:
                return ToolResult(ok=False, error_code="bad_arguments", error=f"`{name}` is missing.")
        text = msgspec.json.encode(arguments, order="deterministic").decode()
        return Proposal(
            title=f"{self.spec.name} {text}",
            hash=f"{self.spec.name}:{text}:{self.world}",
            preview=text,
            match=text,
            reads_only=self.spec.reads_only,
            writes=(str(arguments.get("path")),) if self._writes else None,
        )

    async def run(self, arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        self.runs.append(dict(arguments))
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        try:
            if self._work is not None:
                return await self._work(arguments, place)
            await asyncio.sleep(0)
            return ToolResult(ok=True, output=f"{self.spec.name} done")
        finally:
            self.running -= 1


class AskingTool:
    """Implements `tools.base.Asking`."""

    spec = ToolSpec(name="ask", description="Asks.", parameters={"type": "object"}, reads_only=True)

    def ask(self, arguments: Mapping[str, Any]) -> RequestOpened | ToolResult:
        if "question" not in arguments:
            return ToolResult(ok=False, error_code="bad_arguments", error="`question` is missing.")
        question = Question(question=str(arguments["question"]))
        return RequestOpened(request="", kind="question", title=question.question, questions=(question,))

    def answered(self, arguments: Mapping[str, Any], resolved: RequestResolved) -> ToolResult:
        if resolved.status != "answered" or resolved.verdict == "deny":
            return ToolResult(ok=False, error_code="no_answer", error=f"no answer ({resolved.status})")
        return ToolResult(ok=True, output=f"{arguments['question']} {resolved.text}")


def toolbox(*tools: CountingTool | AskingTool, policy: Policy = Policy()) -> Toolbox:  # noqa: B008 - frozen
    return Toolbox(tools={tool.spec.name: tool for tool in tools}, policy=policy, sandbox="none: a test")

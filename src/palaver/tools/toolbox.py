"""The tools an agent may use in one place, with the policy over them.

The API loop calls, for each tool call of a model: `propose`, then `verdict`; on `ask` it opens a request bound to the
proposal's hash; it commits `tool.started` with the grant; then `run` with that hash. `run` proposes again and refuses
when what would happen is no longer what was allowed. Nothing here asks a person, records an event or keeps state.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from palaver.tools.base import Proposal, Tool, ToolResult, ToolSpec, Workplace
from palaver.tools.policy import Grant, Mode, Policy, Verdict


@dataclass(frozen=True, slots=True)
class Toolbox:
    tools: Mapping[str, Tool]
    policy: Policy = field(default_factory=Policy)
    sandbox: str = "none: runs as you, process tree killed on stop"
    """What holds a running tool, in words for the person who approves."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """The server's own, read once by the composition root. See `Workplace.environment`."""

    def only(self, names: Iterable[str]) -> "Toolbox":
        """The same box with these tools alone (an agent's `allowed_tools`). Unknown names are ignored."""
        return replace(self, tools={name: self.tools[name] for name in names if name in self.tools})

    def specs(self, mode: Mode) -> tuple[ToolSpec, ...]:
        """What the model is told of. Plan mode leaves out what can only edit."""
        specs = (tool.spec for tool in self.tools.values())
        return tuple(spec for spec in specs if not (mode == "plan" and spec.edits_only))

    async def propose(self, name: str, arguments: Mapping[str, Any], root: Path) -> Proposal | ToolResult:
        """What the call would do, or at once the failed result of a call that makes no sense."""
        tool = self.tools.get(name)
        if tool is None:
            return _unknown_tool(name, self.tools)
        # In a thread: a proposal reads the files it would change.
        return await asyncio.to_thread(tool.propose, arguments, root)

    def verdict(self, name: str, proposal: Proposal, mode: Mode, grants: Iterable[Grant] = ()) -> Verdict:
        return self.policy.verdict(self.tools[name].spec, proposal, mode, grants)

    async def run(
        self, name: str, arguments: Mapping[str, Any], place: Workplace, approved_hash: str | None = None
    ) -> ToolResult:
        """Run the call to its result. Cancelling ends everything it started before the cancellation goes on.

        With `approved_hash`, what would happen now must still be what was allowed; else the result has the error code
        `changed`, nothing has run, and the caller asks again.
        """
        tool = self.tools.get(name)
        if tool is None:
            return _unknown_tool(name, self.tools)
        if approved_hash is not None:
            now = await self.propose(name, arguments, place.root)
            if isinstance(now, ToolResult):
                return now
            if now.hash != approved_hash:
                return ToolResult(
                    ok=False,
                    error_code="changed",
                    error="What this call would change is no longer what was approved; nothing was done. Try again.",
                )
        return await tool.run(arguments, replace(place, environment={**self.environment, **place.environment}))


def _unknown_tool(name: str, known: Iterable[str]) -> ToolResult:
    return ToolResult(
        ok=False, error_code="unknown_tool", error=f"There is no tool {name!r}. There are: {', '.join(sorted(known))}."
    )

"""The tool `grep`: lines by regular expression. Also runs the searching program (`search.py`) for `glob`."""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from palaver.backends.process import Ladder, allowed_environment, spawn
from palaver.errors import AgentError, CallerError
from palaver.tools.arguments import decode, failure_of, parameters_of
from palaver.tools.base import Proposal, ToolResult, ToolSpec, Workplace
from palaver.tools.files.paths import Root
from palaver.tools.output import Collector
from palaver.tools.proposal import fingerprint, visible
from palaver.tools.thread_pool import run_in_pool

SEARCH_LIMIT_S = 30.0
"""A search of a large project takes a second; what takes longer is a pattern that backtracks without end."""
PATTERN_LIMIT_CHARS = 2000


class GrepArguments(msgspec.Struct, frozen=True):
    pattern: Annotated[
        str, Meta(min_length=1, max_length=PATTERN_LIMIT_CHARS, description="Python regular expression, line by line.")
    ]
    path: Annotated[str, Meta(description="File or folder to search, relative to the project folder.")] = "."


SPEC = ToolSpec(
    name="grep",
    description="Search file contents. Answers path:line:text. Binary files and what .gitignore names are left out.",
    parameters=parameters_of(GrepArguments),
    reads_only=True,
)


class Grep:
    @property
    def spec(self) -> ToolSpec:
        return SPEC

    def propose(self, arguments: Mapping[str, Any], root: Path) -> Proposal | ToolResult:
        try:
            asked = decode(arguments, GrepArguments)
            path = Root(root).locate(asked.path)
        except CallerError as error:
            return failure_of(error)
        title = visible(f"Search {path} for {asked.pattern}")
        return Proposal(title=title, hash=fingerprint("grep", arguments, root, {}), reads_only=True, match=path)

    async def run(self, arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        try:
            asked = decode(arguments, GrepArguments)
            start = await run_in_pool(Root(place.root).locate, asked.path)
        except CallerError as error:
            return failure_of(error)
        return await search("grep", asked.pattern, start, place)


async def search(kind: Literal["glob", "grep"], pattern: str, start: str, place: Workplace) -> ToolResult:
    """Run the searching program to its end, or to the end of our patience."""
    collector = Collector(place, live=False)
    try:
        async with (
            asyncio.timeout(SEARCH_LIMIT_S),
            spawn(
                [sys.executable, "-I", "-m", "palaver.tools.files.search"],
                cwd=place.root,
                environment=allowed_environment(place.environment),
                stdin=True,
                # It only reads, so it may be ended at once.
                ladder=Ladder(interrupt_s=0, terminate_s=0),
            ) as child,
        ):
            await child.write(msgspec.json.encode({"kind": kind, "pattern": pattern, "start": start}))
            child.close_stdin()
            async for line in child.lines():
                await collector.feed(line + b"\n")
            ended = await child.ended()
            said = await collector.finish()
    except TimeoutError:
        return ToolResult(
            ok=False,
            error_code="timed_out",
            error=f"The search took longer than {SEARCH_LIMIT_S:.0f} s and was stopped. Use a simpler pattern or a path.",
        )
    except AgentError as error:
        return ToolResult(ok=False, error_code=error.code, error=error.message)
    if ended.code != 0:
        return ToolResult(ok=False, error_code="invalid", error=child.stderr_tail.decode(errors="replace").strip())
    return said.result() if said.text else ToolResult(ok=True, output="[nothing found]", total_lines=0)

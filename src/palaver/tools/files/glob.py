"""The tool `glob`: files by the shape of their path."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from palaver.errors import CallerError
from palaver.tools.arguments import decode, failure_of, parameters_of
from palaver.tools.base import Proposal, ToolResult, ToolSpec, Workplace
from palaver.tools.files.grep import PATTERN_LIMIT_CHARS, search
from palaver.tools.files.paths import Root
from palaver.tools.proposal import fingerprint, visible
from palaver.tools.thread_pool import run_in_pool

_SPECIAL = frozenset("*?[{")


class GlobArguments(msgspec.Struct, frozen=True):
    pattern: Annotated[
        str,
        Meta(min_length=1, max_length=PATTERN_LIMIT_CHARS, description="For example src/**/*.py or docs/*.{md,txt}."),
    ]


SPEC = ToolSpec(
    name="glob",
    description="Find files by path pattern, relative to the project folder. What .gitignore names is left out.",
    parameters=parameters_of(GlobArguments),
    reads_only=True,
)


class Glob:
    @property
    def spec(self) -> ToolSpec:
        return SPEC

    def propose(self, arguments: Mapping[str, Any], root: Path) -> Proposal | ToolResult:
        try:
            asked = decode(arguments, GlobArguments)
            start, _ = _split(asked.pattern, Root(root))
        except CallerError as error:
            return failure_of(error)
        title = visible(f"Find {asked.pattern}")
        return Proposal(title=title, hash=fingerprint("glob", arguments, root, {}), reads_only=True, match=start)

    async def run(self, arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        try:
            asked = decode(arguments, GlobArguments)
            start, pattern = await run_in_pool(_split, asked.pattern, Root(place.root))
        except CallerError as error:
            return failure_of(error)
        return await search("glob", pattern, start, place)


def _split(pattern: str, root: Root) -> tuple[str, str]:
    """Where to begin, link-free beneath the root, and the pattern from there: what no wildcard precedes is a plain path."""
    names = pattern.split("/")
    plain = 0
    while plain < len(names) - 1 and not _SPECIAL & set(names[plain]):
        plain += 1
    start = "/".join(names[:plain])
    if pattern.startswith("/") and not start:
        start = "/"
    return root.locate(start or "."), "/".join(names[plain:])

"""The tool `chat_assistant_post`: how an agent speaks that must not speak in plain text (`strict_inbox`).

What it posts is a message of its own on every screen and in the inbox. The model knows it from the call; it is not shown
to it a second time.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from palaver.context.linearize import POSTED
from palaver.errors import CallerError, Invalid
from palaver.schema.content import TextPart
from palaver.schema.events import MessageAdded
from palaver.tools.arguments import decode, failure_of, parameters_of
from palaver.tools.base import Proposal, ToolResult, ToolSpec, Workplace
from palaver.tools.proposal import fingerprint

NAME = "chat_assistant_post"


class PostArguments(msgspec.Struct, frozen=True):
    content: Annotated[str, Meta(min_length=1, max_length=60_000, description="What to say.")]
    mime: Annotated[str, Meta(max_length=128, description="What kind of text.")] = "text/markdown"


SPEC = ToolSpec(
    name=NAME,
    description="Say something to the people you work for. It is the only way: plain text of yours reaches nobody.",
    parameters=parameters_of(PostArguments),
    # Speaking changes nothing but the conversation.
    reads_only=True,
)


class ChatPost:
    @property
    def spec(self) -> ToolSpec:
        return SPEC

    def propose(self, arguments: Mapping[str, Any], root: Path) -> Proposal | ToolResult:
        try:
            asked = _parse(arguments)
        except CallerError as error:
            return failure_of(error)
        return Proposal(
            title="Say something", hash=fingerprint(NAME, arguments, root, {}), reads_only=True, match=asked.content
        )

    async def run(self, arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        try:
            asked = _parse(arguments)
        except CallerError as error:
            return failure_of(error)
        if place.host is None:
            return failure_of(Invalid("There is no conversation here to speak in."))
        content = (TextPart(text=asked.content, mime=asked.mime),)
        await place.host.emit(
            MessageAdded(message=f"{place.call}-post", role="assistant", content=content, event_kind=POSTED)
        )
        return ToolResult(ok=True, output="Posted.")


def _parse(arguments: Mapping[str, Any]) -> PostArguments:
    asked = decode(arguments, PostArguments)
    if not asked.content.strip():
        raise Invalid("`content` says nothing.")
    return asked

"""Session files for the tests: the recorded ones, and small ones written line by line."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from palaver.history.programs.foreign import ForeignConversation
from palaver.schema.view import ImageBlock, TextBlock, ThinkingBlock, ToolBlock

SAMPLES = Path(__file__).parent / "samples"
"""Written by the real programs (Claude Code 2.1.325, Codex 0.163.0, Pi 0.87.1); long texts of their own are cut."""


def sample(name: str) -> list[bytes]:
    return (SAMPLES / name).read_bytes().splitlines(keepends=True)


def written(objects: Iterable[Any]) -> list[bytes]:
    return [msgspec.json.encode(one) + b"\n" for one in objects]


def texts(conversation: ForeignConversation) -> list[tuple[str, str]]:
    """Who said what, without the lines that only order the scripted model."""
    found: list[tuple[str, str]] = []
    for message in conversation.messages:
        said = [block.text for block in message.blocks if isinstance(block, TextBlock)]
        if said:
            found.append((message.role, "\n".join(said).partition("\n!")[0]))
    return found


def tools(conversation: ForeignConversation) -> list[ToolBlock]:
    return [block for message in conversation.messages for block in message.blocks if isinstance(block, ToolBlock)]


def thoughts(conversation: ForeignConversation) -> list[ThinkingBlock]:
    return [block for message in conversation.messages for block in message.blocks if isinstance(block, ThinkingBlock)]


def images(conversation: ForeignConversation) -> Iterator[ImageBlock]:
    return (block for message in conversation.messages for block in message.blocks if isinstance(block, ImageBlock))

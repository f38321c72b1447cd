"""The record of a conversation as parts to be quoted: for another program that goes on with it, and for a summary.

Pure. Each speaker has parts of its own, so that no tool's output can pass for a line of the person's: what an agent wanted of
a tool is one, what the tool answered another. Texts are cut here, before they are quoted.
"""

from collections.abc import Callable

import msgspec

from palaver.context.quotes import EARLIER_PERSON, Part, block_source, name
from palaver.schema.view import ImageBlock, Message, TextBlock, ToolBlock

Edit = Callable[[str], str]
"""Redacts and shortens one text."""


def record_parts(message: Message, edit_result: Edit, edit_text: Edit = str) -> list[Part]:
    """What was said in a message, by whom. Thoughts are left out, and calls whose arguments never came whole."""
    parts: list[Part] = []
    for place, block in enumerate(message.blocks):
        source = block_source(message, place) or EARLIER_PERSON
        match block:
            case TextBlock() if block.text.strip():
                cut = "" if block.status == "done" else ", interrupted"
                parts.append(Part(f"{source}{cut}", edit_text(block.text)))
            case ToolBlock() if block.status != "input":
                parts += _call_parts(source, block, edit_result)
            case ImageBlock():
                parts.append(Part(source, "[an image]"))
            case _:
                pass
    return parts


def _call_parts(agent: str, tool: ToolBlock, edit: Edit) -> list[Part]:
    arguments = msgspec.json.encode(tool.input).decode() if tool.input is not None else tool.input_text
    result = tool.output or (tool.error.message if tool.error else "")
    known = f"tool {name(tool.name)}"
    parts = [Part(f"{agent}, to {known}", edit(arguments))]
    if result.strip():
        parts.append(Part(f"{known}, {tool.status}", edit(result)))
    else:
        parts.append(Part(f"{known}, {tool.status}", "(no output)"))
    return parts
